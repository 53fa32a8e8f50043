"""What a method is: it plans, as plain data, which lessons and merges a round consists of."""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from calmfed.aids import Aid
from calmfed.data.views import Samples
from calmfed.lesson import Lesson
from calmfed.models import ModelSpec
from calmfed.recipe import Recipe
from calmfed.rules import Rule
from calmfed.snapshot import State
from calmfed.streams import Stream


@dataclass(frozen=True)
class Merge:
    """An owner averages models of its own architecture and is offered the mean.

    Attributes:
        owner: Who averages.
        models: Whose models, the owner's own among them, sorted by name.
    """

    owner: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """One round: lessons on frozen snapshots, then merges of what the owners adopted.

    Attributes:
        lessons: Independent of each other; they can run anywhere, in any order.
        merges: Carried out after all lessons, on models frozen anew.
    """

    lessons: tuple[Lesson, ...]
    merges: tuple[Merge, ...] = ()


@dataclass(frozen=True)
class Round:
    """What a method may know when it plans.

    Attributes:
        number: 1 for the first.
        active: Names of the active clients, sorted.
        specs: Their architectures.
        recipe: How students train.
        seed: Of the run.
    """

    number: int
    active: tuple[str, ...]
    specs: Mapping[str, ModelSpec]
    recipe: Recipe
    seed: int

    def stream(self, purpose: str, client: str = "") -> Stream:
        """A random stream of this round."""
        return Stream(self.seed, purpose, self.number, client)

    def lesson(
        self,
        student: str,
        host: str,
        teachers: tuple[str, ...] = (),
        rule: Rule | None = None,
        aids: tuple[Aid, ...] = (),
    ) -> Lesson:
        """A lesson of this round, on the stream of its student."""
        stream = self.stream("lesson", student)
        return Lesson(student, host, teachers, rule, self.recipe, stream, aids)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.specs[self.active[0]].classes

    def others(self, name: str) -> tuple[str, ...]:
        """The other active clients."""
        return tuple(other for other in self.active if other != name)


class Commons(Protocol):
    """What a method with a server or a joint phase works with, before and after the lessons.

    Attributes:
        memory: Tensors by name that outlive the round: a server's, or clients' besides their
            models. A lesson's aids are handed theirs from here.
    """

    memory: MutableMapping[str, State]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a sample."""
        ...

    @property
    def public(self) -> Tensor:
        """The public samples, [P, C, H, W]."""
        ...

    def samples(self, client: str) -> Samples:
        """A client's training samples, for what happens at that client."""
        ...

    def features(self, client: str, x: Tensor) -> Tensor:
        """What a client's model sees in its own samples, [n, F]; its passes are counted."""
        ...

    def validation(self, client: str) -> Samples:
        """A client's validation split, for what it finds out about itself."""
        ...

    def predict(self, client: str, x: Tensor) -> Tensor:
        """What a client's model as it stands says about samples: logits [n, C]."""
        ...

    def score(self, clients: Sequence[str], x: Tensor) -> dict[str, Tensor]:
        """What clients' models say about common samples: finite logits [n, C] by name.

        Their passes are counted as those of teachers; one whose model overflows says nothing.
        """
        ...

    def state(self, client: str) -> State:
        """A client's model as it stands; not to be changed in place."""
        ...

    def held(self, client: str) -> int:
        """How many samples a client trains on."""
        ...

    def initial(self, spec: ModelSpec) -> State:
        """The model that a server starts from."""
        ...

    def model(self, spec: ModelSpec, state: State) -> nn.Module:
        """A new model in this state, to be trained or asked."""
        ...

    def bring_home(self, client: str, state: State, *, at_home: bool) -> None:
        """Bring a model back from where it was trained; its owner adopts it or not."""
        ...

    def send(self, client: str, state: State) -> None:
        """Send an owner a model, unless it has that already; it adopts it or not."""
        ...

    def moved(self, state: State, times: int = 1) -> None:
        """Count tensors that travel, so many times."""
        ...

    def studied(self, samples: int) -> None:
        """Count forward and backward passes of students."""
        ...

    def passed(self, samples: int) -> None:
        """Count forward passes of teachers."""
        ...


@dataclass(frozen=True)
class Method:
    """A way to spend a round; its fields are its settings.

    A serverless method is nothing but its `plan`. One with a server or a joint phase also has
    `before` and `after`, and keeps what outlives a round in the memory of the commons.
    """

    summary: ClassVar[str] = ""
    """One line for `calmfed list methods`."""

    variants: ClassVar[Mapping[str, str]] = {}
    """What may stand behind the colon, and what it means."""

    recipe: ClassVar[Mapping[str, Any]] = {}
    """Where its recipe departs from the general one."""

    headline: ClassVar[str] = "best"
    """Which checkpoint speaks for it where only one is shown, "best" or "last"."""

    reads_public: ClassVar[bool] = False
    """Whether it needs public samples."""

    prototypes: ClassVar[str | None] = None
    """Under which name class prototypes are remembered, by which samples are also classified."""

    one_architecture: ClassVar[bool] = False
    """Whether all clients must have the same architecture."""

    @property
    def features(self) -> int | None:
        """How many features all models must have; None where that is their own affair."""
        return None

    def before(self, round_: Round, commons: Commons) -> None:
        """What happens before the models are frozen and the lessons begin."""

    def plan(self, round_: Round) -> Plan:
        """The lessons and merges of a round."""
        raise NotImplementedError

    def after(self, round_: Round, commons: Commons) -> None:
        """What happens after lessons and merges were adopted."""

    def also(self, clients: Mapping[str, ModelSpec]) -> Mapping[str, Mapping[str, str]]:
        """Checkpoints beside last and best: whose model is kept under which name in memory.

        A client whose name is not there yet counts with its last model.
        """
        return {}

    def variant(self, name: str) -> "Method":
        """This method in one of its `variants`; never called with another name."""
        raise NotImplementedError(name)


@dataclass(frozen=True)
class AtHome(Method):
    """Each active client studies its own samples, judged by the other active clients.

    Attributes:
        rule: How they judge; None means that nobody helps.
    """

    rule: Rule | None = None

    def plan(self, round_: Round) -> Plan:
        """One lesson a client, at home."""
        return Plan(
            tuple(
                round_.lesson(name, name, round_.others(name), self.rule)
                if self.rule is not None
                else round_.lesson(name, name)
                for name in round_.active
            )
        )

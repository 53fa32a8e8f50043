"""What a method is: it plans, as plain data, which lessons and merges a round consists of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from calmfed.lesson import Lesson, Recipe
from calmfed.models import ModelSpec
from calmfed.rules import Rule
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
        self, student: str, host: str, teachers: tuple[str, ...] = (), rule: Rule | None = None
    ) -> Lesson:
        """A lesson of this round, on the stream of its student."""
        return Lesson(student, host, teachers, rule, self.recipe, self.stream("lesson", student))

    def others(self, name: str) -> tuple[str, ...]:
        """The other active clients."""
        return tuple(other for other in self.active if other != name)


@dataclass(frozen=True)
class Method:
    """A way to spend a round; its fields are its settings."""

    summary: ClassVar[str] = ""
    """One line for `calmfed list methods`."""

    variants: ClassVar[Mapping[str, str]] = {}
    """What may stand behind the colon, and what it means."""

    recipe: ClassVar[Mapping[str, Any]] = {}
    """Where its recipe departs from the general one."""

    headline: ClassVar[str] = "best"
    """Which checkpoint speaks for it where only one is shown, "best" or "last"."""

    def plan(self, round_: Round) -> Plan:
        """The lessons and merges of a round."""
        raise NotImplementedError

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

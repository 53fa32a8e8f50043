"""What all share in one round of a simulation: what is offered, remembered, moved and told."""

from collections.abc import Iterator, MutableMapping, Sequence

import torch
from torch import Tensor, nn

from calmfed.data.views import Samples
from calmfed.models import ModelSpec
from calmfed.simulate.checkpoint import ClientState, Counters
from calmfed.simulate.record import Event
from calmfed.simulate.store import StateRef, StateStore
from calmfed.simulate.venue import Venue
from calmfed.snapshot import State, encode, state_of
from calmfed.streams import Stream
from calmfed.workshop import features_of, new_model, predict


class Memory(MutableMapping[str, State]):
    """Tensors by name, kept in the store, so that the checkpoint need only know their names."""

    def __init__(self, store: StateStore, refs: dict[str, StateRef]) -> None:
        self._store = store
        self.refs = refs

    def __getitem__(self, name: str) -> State:
        return self._store.get(self.refs[name])

    def __setitem__(self, name: str, state: State) -> None:
        self.refs[name] = self._store.put(state)

    def __delitem__(self, name: str) -> None:
        del self.refs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.refs)

    def __len__(self) -> int:
        return len(self.refs)


class RoundCommons:
    """The simulator's side of a joint phase (see `calmfed.methods.Commons`), and of adoption.

    Attributes:
        memory: What the method remembers.
        events: What happened so far, in order.
    """

    def __init__(
        self,
        venue: Venue,
        number: int,
        clients: dict[str, ClientState],
        counters: Counters,
        memory: dict[str, StateRef],
    ) -> None:
        self.memory: MutableMapping[str, State] = Memory(venue.store, memory)
        self.events: list[Event] = []
        self._venue = venue
        self._number = number
        self._clients = clients
        self._counters = counters

    def tell(self, client: str, metric: str, value: object) -> None:
        """Write an event of this round down."""
        self.events.append(Event(self._number, client, metric, value))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a sample."""
        return self._venue.federation.shape

    @property
    def public(self) -> Tensor:
        """The public samples, [P, C, H, W]."""
        return self._venue.federation.public

    def samples(self, client: str) -> Samples:
        """A client's training samples."""
        return self._venue.samples(client)

    def features(self, client: str, x: Tensor) -> Tensor:
        """What a client's model sees in its own samples, [n, F]; its passes are counted."""
        model = self.model(self._venue.federation.members.specs[client], self.state(client))
        self._counters.teacher_passes += len(x)
        found = features_of(model.eval(), x, self._venue.federation.config.teacher_batch)
        self._counters.unheard += not bool(torch.isfinite(found).all())
        return found

    def validation(self, client: str) -> Samples:
        """A client's validation split."""
        return self._venue.federation.clients[client].validation

    def predict(self, client: str, x: Tensor) -> Tensor:
        """What a client's model as it stands says about samples: logits [n, C]."""
        spec = self._venue.federation.members.specs[client]
        model = self._venue.workshop.teacher(spec, self.state(client))
        return predict(model, x, self._venue.federation.config.teacher_batch)

    def score(self, clients: Sequence[str], x: Tensor) -> dict[str, Tensor]:
        """What clients' models say about common samples: finite logits [n, C] by name."""
        said = {name: self.predict(name, x) for name in clients}
        sound = {name: logits for name, logits in said.items() if torch.isfinite(logits).all()}
        self._counters.teacher_passes += len(said) * len(x)
        self._counters.unheard += len(said) - len(sound)
        return sound

    def state(self, client: str) -> State:
        """A client's model as it stands."""
        return self._venue.store.get(self._clients[client].last)

    def held(self, client: str) -> int:
        """How many samples a client trains on."""
        return len(self._venue.federation.members.training[client])

    def initial(self, spec: ModelSpec) -> State:
        """The model that a server starts from, drawn for its architecture."""
        stream = Stream(self._venue.federation.config.seed, "initialise server", client=spec.name)
        with stream.torch_generator():
            return state_of(spec.build())

    def model(self, spec: ModelSpec, state: State) -> nn.Module:
        """A new model in this state, to be trained or asked."""
        return new_model(spec, state)

    def bring_home(self, client: str, state: State, *, at_home: bool) -> None:
        """Bring a model back from where it was trained; its owner adopts it or not."""
        if not at_home:
            self.moved(state)
        self.decide(client, self._venue.store.put(state), at_home=at_home)

    def send(self, client: str, state: State) -> None:
        """Send an owner a model, unless it has that already; it adopts it or not."""
        offered = self._venue.store.put(state)
        if offered != self._clients[client].last:
            self._counters.bytes_moved += offered.nbytes
            self.decide(client, offered)

    def moved(self, state: State, times: int = 1) -> None:
        """Count tensors that travel, so many times."""
        self._counters.bytes_moved += times * len(encode(state))

    def passed(self, samples: int) -> None:
        """Count forward passes of teachers."""
        self._counters.teacher_passes += samples

    def studied(self, samples: int) -> None:
        """Count forward and backward passes of students."""
        self._counters.samples_studied += samples

    def decide(self, client: str, offered: StateRef, *, at_home: bool = False) -> bool:
        """Let an owner decide on a state, and keep it if it adopts; whether it does."""
        store, mine = self._venue.store, self._clients[client]
        verdict = self._venue.federation.clients[client].adopt(
            store.get(offered),
            store.get(mine.last),
            mine.score,
            self._venue.workshop,
            self._venue.federation.config.teacher_batch,
            at_home=at_home,
        )
        if verdict.drop is not None and not at_home:
            self.tell(client, "drop", verdict.drop)
        if verdict.refusal is not None:
            self._counters.refusals += 1
            self.tell(client, "refused", verdict.refusal)
        elif verdict.score is not None:
            mine.last, mine.score = offered, verdict.score
        return verdict.adopted

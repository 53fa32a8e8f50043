"""A federation of linear models on two numbers, whose joint phases can be worked out by hand."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

import calmfed
from calmfed.data.views import Samples
from calmfed.methods import Round
from calmfed.models import ModelSpec
from calmfed.recipe import Recipe
from calmfed.snapshot import State, encode, same, state_of
from calmfed.workshop import features_of, new_model, predict

PLAIN = Recipe(epochs=1, batch=64, lr=0.1, momentum=0, weight_decay=0)


@calmfed.register_model("linear_by_hand")
def by_hand(channels: int, classes: int, width: float) -> nn.Module:
    """Two numbers to logits, without a bias."""
    return nn.Sequential(nn.Flatten(), nn.Linear(2, classes, bias=False))


SPEC = ModelSpec("linear_by_hand", 1, 2)


def weights(*rows: Sequence[float]) -> State:
    """A model: one row of weights a class."""
    return {"1.weight": torch.tensor([list(map(float, row)) for row in rows])}


def inputs(*pairs: Sequence[float]) -> Tensor:
    """Samples of two numbers each, [n, 1, 1, 2]."""
    return torch.tensor([list(map(float, pair)) for pair in pairs])[:, None, None]


def round_of(*names: str, number: int = 1, recipe: Recipe = PLAIN) -> Round:
    return Round(number, names, dict.fromkeys(names, SPEC), recipe, seed=0)


@dataclass
class Hand:
    """Commons whose clients are the given states; each adopts whatever it is sent."""

    states: dict[str, State]
    data: dict[str, Samples] = field(default_factory=dict)
    public: Tensor = field(default_factory=lambda: torch.empty(0))
    memory: MutableMapping[str, State] = field(default_factory=dict)
    shape = (1, 1, 2)
    bytes_moved = passes = samples_studied = 0

    def predict(self, client: str, x: Tensor) -> Tensor:
        return predict(new_model(SPEC, self.states[client]).eval(), x, 512)

    def features(self, client: str, x: Tensor) -> Tensor:
        self.passes += len(x)
        return features_of(new_model(SPEC, self.states[client]).eval(), x, 512)

    def score(self, clients: Sequence[str], x: Tensor) -> dict[str, Tensor]:
        self.passes += len(clients) * len(x)
        said = {name: self.predict(name, x) for name in clients}
        return {name: logits for name, logits in said.items() if torch.isfinite(logits).all()}

    def samples(self, client: str) -> Samples:
        return self.data[client]

    validation = samples

    def held(self, client: str) -> int:
        return len(self.data[client])

    def state(self, client: str) -> State:
        return self.states[client]

    def model(self, spec: ModelSpec, state: State) -> nn.Module:
        return new_model(spec, state)

    def initial(self, spec: ModelSpec) -> State:
        return state_of(spec.build())

    def send(self, client: str, state: State) -> None:
        if not same(self.states[client], state):
            self.moved(state)
            self.states[client] = state

    def bring_home(self, client: str, state: State, *, at_home: bool) -> None:
        if not at_home:
            self.moved(state)
        self.states[client] = state

    def moved(self, state: State, times: int = 1) -> None:
        self.bytes_moved += times * len(encode(state))

    def studied(self, samples: int) -> None:
        self.samples_studied += samples

    def passed(self, samples: int) -> None:
        self.passes += samples


def held(*labels: int, x: Tensor | None = None, classes: int = 2) -> Samples:
    """Samples with these labels."""
    y = torch.tensor(labels)
    return Samples(torch.zeros(len(y), 1, 1, 2) if x is None else x, y, classes)

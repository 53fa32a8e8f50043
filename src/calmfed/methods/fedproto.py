"""`fedproto`: clients exchange what each class looks like to them on average.

Tan et al., "FedProto: federated prototype learning across heterogeneous clients", AAAI 2022.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from calmfed import checks
from calmfed.aids import PrototypePull
from calmfed.errors import UserError
from calmfed.methods.base import Commons, Method, Plan, Round
from calmfed.methods.registry import register_method
from calmfed.snapshot import State

PROTOTYPES = "prototypes"


@register_method("fedproto")
@dataclass(frozen=True)
class FedProto(Method):
    """Features of a class are drawn towards the mean of all clients' means.

    Attributes:
        pull: Weight of the squared distance from the prototype.
        feature_size: To how many features every architecture is projected.
    """

    summary = "a server averages class prototypes, and clients' features are drawn to them"
    prototypes = PROTOTYPES

    pull: float = 1.0
    feature_size: int = 512

    def __post_init__(self) -> None:
        checks.at_least_zero("pull", self.pull)
        if self.feature_size < 1:
            raise UserError(f"feature_size must be at least 1, got {self.feature_size}")

    @property
    def features(self) -> int:
        """All models have as many features."""
        return self.feature_size

    def before(self, round_: Round, commons: Commons) -> None:
        """Whoever is active fetches the prototypes."""
        if round_.number > 1:
            commons.moved(commons.memory[PROTOTYPES], times=len(round_.active))

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at home, with the prototypes that are known so far."""
        aids = (PrototypePull(PROTOTYPES, self.pull),) if round_.number > 1 else ()
        return Plan(tuple(round_.lesson(name, name, aids=aids) for name in round_.active))

    def after(self, round_: Round, commons: Commons) -> None:
        """Every active client tells its class means; a class nobody held keeps its prototype."""
        means, held = [], []
        for name in round_.active:
            samples = commons.samples(name)
            features = commons.features(name, samples.x)
            if not torch.isfinite(features).all():
                continue
            mean, has = class_means(features, samples.y, samples.classes)
            commons.moved({"mean": mean[has]})
            means.append(mean)
            held.append(has)
        known = commons.memory.get(PROTOTYPES, unknown(round_.classes, self.feature_size))
        if means:
            known = merged(known, torch.stack(means), torch.stack(held))
        commons.memory[PROTOTYPES] = known


def class_means(features: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """The mean features of each class, [C, F], zero where there is none, and which there are, [C].

    Args:
        features: [n, F].
        labels: [n].
        classes: C.
    """
    counts = torch.bincount(labels, minlength=classes)
    sums = torch.zeros(classes, features.shape[1]).index_add_(0, labels, features)
    return sums / counts.clamp(min=1)[:, None], counts > 0


def merged(known: State, means: Tensor, held: Tensor) -> State:
    """The unweighted mean over those clients that hold a class, as in the authors' code.

    Args:
        known: The prototypes so far: ``mean`` [C, F] and ``known`` [C].
        means: Of each client, [J, C, F].
        held: Which classes each has, [J, C].
    """
    count = held.sum(dim=0)
    fresh = (means * held[:, :, None]).sum(dim=0) / count.clamp(min=1)[:, None]
    told = count > 0
    return {
        "mean": torch.where(told[:, None], fresh, known["mean"]),
        "known": known["known"] | told,
    }


def unknown(classes: int, features: int) -> State:
    """Before anybody told anything."""
    return {
        "mean": torch.zeros(classes, features),
        "known": torch.zeros(classes, dtype=torch.bool),
    }

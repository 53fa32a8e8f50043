"""`fedprox`: as `fedavg`, but clients stay near the server's model while they train.

Li et al., "Federated optimization in heterogeneous networks", MLSys 2020.
"""

from dataclasses import dataclass

from calmfed import checks
from calmfed.aids import Proximity
from calmfed.methods.base import Plan, Round
from calmfed.methods.fedavg import FedAvg
from calmfed.methods.registry import register_method


@register_method("fedprox")
@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedAvg with ``mu / 2 |w - w_server|^2`` added to each batch's loss.

    Attributes:
        mu: How strongly.
    """

    summary = "as fedavg, with a proximal term (reference only: one architecture)"

    mu: float = 0.01

    def __post_init__(self) -> None:
        checks.at_least_zero("mu", self.mu)

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at home, kept near where it begins: the server's model."""
        aids = (Proximity(self.mu),)
        return Plan(tuple(round_.lesson(name, name, aids=aids) for name in round_.active))

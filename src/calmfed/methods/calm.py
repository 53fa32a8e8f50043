"""`calm`: three smooth gates decide how far teachers are believed (Ying and Tian).

Class-wise Agreement and Label-Gated Disagreement Modulation for Decentralized Federated Learning.
"""

from dataclasses import dataclass, field, replace
from itertools import combinations

from calmfed.methods.base import AtHome
from calmfed.methods.registry import register_method
from calmfed.rules import Calm, Rule, gated

_GATES = {"1": "soft agreement target", "2": "disagreement", "3": "label"}
_SUBSETS = ["".join(chosen) for size in (1, 2, 3) for chosen in combinations(_GATES, size)]


@register_method("calm")
@dataclass(frozen=True)
class CalmDistillation(AtHome):
    """Distil as far as agreement, disagreement and the label allow; any subset of the gates."""

    summary = "distil at home through CALM's gates: soft agreement, disagreement, label"
    variants = {s: "gates kept: " + ", ".join(_GATES[gate] for gate in s) for s in _SUBSETS}  # noqa: RUF012 - a ClassVar by its base

    rule: Rule | None = field(default_factory=Calm)

    def variant(self, name: str) -> "CalmDistillation":
        """Leave only some gates on: "12" is soft target and disagreement."""
        assert isinstance(self.rule, Calm)  # noqa: S101 - for the type checker: the field's default
        return replace(self, rule=gated(name, self.rule))

"""`visit`: models travel to study at other clients' data, and equals merge.

A teacher at home speaks only about inputs like one's own, so it passes on little about classes
that one does not hold. A model that studies elsewhere sees them. Related: sequential model
transfer (Tram-FL, arXiv 2308.04762; cyclic weight transfer), mutual learning on one aggregator's
data (DFML), averages per architecture (FedDF), logit adjustment (Menon et al. 2021) and logits
calibration (FedLC, arXiv 2209.00189) for the prior-corrected cross-entropy.
"""

from dataclasses import dataclass, replace

from calmfed.methods.base import Merge, Method, Plan, Round
from calmfed.methods.registry import register_method
from calmfed.rules import Calm, ConfidenceWeighted, HardFilter, Rule, Uniform

_RULES: dict[str, Rule] = {
    "uniform": Uniform(),
    "hard": HardFilter(),
    "calm": Calm(),
    "confidence": ConfidenceWeighted(),
}


@register_method("visit")
@dataclass(frozen=True)
class Visit(Method):
    """Study abroad, then merge among equals; each of the two movements can be switched off.

    Attributes:
        abroad: Whether the active models change places for a lesson; else they study at home.
        merge: Whether active models of one architecture are then averaged.
        rule: With a rule, all active snapshots are teachers at every host, the visitor's own
            among them, so that it does not forget.
    """

    summary = "models study at other clients' data and equals merge (ours)"
    variants = {name: f"with all active snapshots as teachers, rule {name}" for name in _RULES}  # noqa: RUF012 - a ClassVar by its base
    recipe = {"ce": "prior", "kd_weight": 0.3}  # noqa: RUF012 - a ClassVar by its base
    headline = "last"  # a skewed validation split would choose a locally biased model

    abroad: bool = True
    merge: bool = True
    rule: Rule | None = None

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at a host drawn for it, and one merge a client with equals."""
        teachers = round_.active if self.rule is not None else ()
        lessons = tuple(
            round_.lesson(name, host, teachers, self.rule)
            for name, host in self.hosts(round_).items()
        )
        return Plan(lessons, merges_among_equals(round_) if self.merge else ())

    def hosts(self, round_: Round) -> dict[str, str]:
        """Who studies where: the active list shifted by a drawn 1..K-1, so all have one guest."""
        active = round_.active
        if not self.abroad or len(active) == 1:
            return {name: name for name in active}
        shift = int(round_.stream("visit").generator().integers(1, len(active)))
        return {name: active[(p + shift) % len(active)] for p, name in enumerate(active)}

    def variant(self, name: str) -> "Visit":
        """With teachers, judged by the named rule."""
        return replace(self, rule=_RULES[name])


def merges_among_equals(round_: Round) -> tuple[Merge, ...]:
    """One merge for each active client that has an active equal."""
    equals: dict[object, list[str]] = {}
    for name in round_.active:
        equals.setdefault(round_.specs[name], []).append(name)
    return tuple(
        Merge(name, tuple(equals[round_.specs[name]]))
        for name in round_.active
        if len(equals[round_.specs[name]]) > 1
    )

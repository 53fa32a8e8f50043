"""`hard`: outlying teachers are censored per class, the rest believed in full."""

from dataclasses import dataclass, field

from calmfed.methods.base import AtHome
from calmfed.methods.registry import register_method
from calmfed.rules import HardFilter, Rule


@register_method("hard")
@dataclass(frozen=True)
class HardFiltering(AtHome):
    """Distil from the teachers that do not deviate too far, class by class."""

    summary = "as uniform, but teachers that deviate are dropped per class (median threshold)"

    rule: Rule | None = field(default_factory=HardFilter)

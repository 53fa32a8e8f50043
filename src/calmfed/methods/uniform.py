"""`uniform`: every teacher is believed alike and in full (Eq. 2, "Uniform KD")."""

from dataclasses import dataclass, field

from calmfed.methods.base import AtHome
from calmfed.methods.registry import register_method
from calmfed.rules import Rule, Uniform


@register_method("uniform")
@dataclass(frozen=True)
class UniformDistillation(AtHome):
    """Distil from the plain mean of the other active clients on one's own samples."""

    summary = "distil at home from the plain mean of the other active clients"

    rule: Rule | None = field(default_factory=Uniform)

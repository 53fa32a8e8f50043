"""`confidence`: teachers weighted per sample by how well they know its label (CA-MKD)."""

from dataclasses import dataclass, field

from calmfed.methods.base import AtHome
from calmfed.methods.registry import register_method
from calmfed.rules import ConfidenceWeighted, Rule


@register_method("confidence")
@dataclass(frozen=True)
class ConfidenceDistillation(AtHome):
    """Distil with the weights of Zhang et al., "Confidence-aware multi-teacher knowledge
    distillation", ICASSP 2022.
    """  # noqa: D205 - one sentence that does not fit a line

    summary = "as uniform, but teachers weigh by their confidence on the label (CA-MKD)"

    rule: Rule | None = field(default_factory=ConfidenceWeighted)

"""A client: its model's architecture, its samples, and what it lets into its model."""

import math
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from calmfed.data.views import Samples
from calmfed.models import ModelSpec
from calmfed.snapshot import State, is_finite, misfit
from calmfed.workshop import Workshop, predict

ADOPT_TOLERANCE = 0.55
"""How much prior-corrected validation accuracy an owner lets a visit cost (see docs)."""


@dataclass(frozen=True)
class Score:
    """How a model does on its owner's validation split.

    Attributes:
        accuracy: Of its plain predictions.
        corrected: Of its predictions after the owner's log label frequencies are added: a model
            that has learned to see more classes is not punished for it.
        loss: Mean cross-entropy of the plain predictions; it settles ties.
    """

    accuracy: float
    corrected: float
    loss: float

    def better_than(self, other: "Score") -> bool:
        """More accurate, or as accurate at a smaller loss."""
        return (self.accuracy, -self.loss) > (other.accuracy, -other.loss)


@dataclass(frozen=True)
class Verdict:
    """What an owner decides on a state it is offered.

    Attributes:
        refusal: Why it keeps what it had; None where it adopts.
        score: Of the offered state; None where it could not be run.
        drop: How much corrected accuracy the offered state costs; negative where it gains.
    """

    refusal: str | None
    score: Score | None
    drop: float | None

    @property
    def adopted(self) -> bool:
        """Whether the owner takes it."""
        return self.refusal is None


@dataclass(frozen=True)
class Client:
    """One participant, without the state of its model, which its surroundings keep.

    Attributes:
        name: Its name; teachers are stacked in the order of names.
        spec: Its architecture.
        validation: The samples its model is checked on.
        log_frequencies: Logarithms of the class frequencies in its training samples, [classes].
        tolerance: The largest drop of corrected validation accuracy it takes from a lesson
            abroad or a merge.
    """

    name: str
    spec: ModelSpec
    validation: Samples
    log_frequencies: Tensor
    tolerance: float = ADOPT_TOLERANCE

    def check(self, state: State, workshop: Workshop, batch: int) -> Score:
        """Score a state on the validation split."""
        model = workshop.teacher(self.spec, state)
        logits = predict(model, self.validation.x, batch)
        labels = self.validation.y
        corrected = logits + self.log_frequencies
        return Score(
            accuracy=(logits.argmax(dim=1) == labels).double().mean().item(),
            corrected=(corrected.argmax(dim=1) == labels).double().mean().item(),
            loss=F.cross_entropy(logits.double(), labels).item(),
        )

    def adopt(
        self,
        offered: State,
        own: State,
        own_score: Score,
        workshop: Workshop,
        batch: int,
        *,
        at_home: bool = False,
    ) -> Verdict:
        """Decide whether to take a state in place of one's own.

        It must be of the client's own architecture and finite. One that comes from elsewhere must
        also not break the client's validation split beyond the tolerance.

        Args:
            offered: The outcome of a lesson or a merge.
            own: The state it would replace.
            own_score: That state's score.
            workshop: Where models are run.
            batch: Validation samples at once.
            at_home: Whether the owner trained it itself, which needs no such test.
        """
        if (reason := misfit(offered, own)) is not None:
            return Verdict(f"not of its architecture: {reason}", None, None)
        if not is_finite(offered):
            return Verdict("not finite", None, None)
        score = self.check(offered, workshop, batch)
        drop = own_score.corrected - score.corrected
        if not math.isfinite(score.loss):
            return Verdict("predictions not finite", None, None)
        if not at_home and drop > self.tolerance:
            return Verdict(f"validation accuracy dropped by {drop:.3f}", score, drop)
        return Verdict(None, score, drop)

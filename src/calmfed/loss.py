"""What a student minimises: labels and, as far as they are trusted, its teachers (Eq. 2 and 10)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from calmfed import checks
from calmfed.rules import Judgement


def distillation_loss(
    student_logits: Tensor,
    labels: Tensor,
    judgement: Judgement,
    kd_weight: float = 0.7,
    *,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Eq. 10: the batch mean of ``(1 - alpha) CE + alpha lambda T^2 KL(qbar || softmax(z / T))``.

    Eq. 2 is the same with a rule whose trust is one.

    Args:
        student_logits: z, [B, C]; the gradient flows through them alone.
        labels: Class indices [B] or distributions [B, C].
        judgement: Target ``qbar``, trust ``lambda`` and temperature T, as a rule gives them.
        kd_weight: alpha, the share of the teachers, in [0, 1].
        log_prior: Logarithms of the class frequencies in the training data, [C]. Where given, the
            cross-entropy is taken on ``z + log_prior`` (``ce="prior"``), so that classes absent
            there are not pushed down; the distillation uses the plain logits.

    Returns:
        The loss, a scalar.
    """
    checks.tensor("student_logits", student_logits)
    if student_logits.ndim != 2 or len(student_logits) == 0:
        raise ValueError(
            "student_logits must be [samples, classes] of at least one sample, "
            f"got shape {list(student_logits.shape)}"
        )
    checks.logits("student_logits", student_logits)
    checks.labels("labels", labels, *student_logits.shape)
    checks.fraction("kd_weight", kd_weight)
    if not isinstance(judgement, Judgement):
        raise ValueError(f"judgement must be a Judgement, got {type(judgement).__name__}")
    if judgement.target.shape != student_logits.shape:
        raise ValueError(
            f"judgement must be of the student's samples and classes {list(student_logits.shape)}, "
            f"got a target of shape {list(judgement.target.shape)}"
        )
    checks.target("judgement.target", judgement.target)
    checks.trust("judgement.trust", judgement.trust, len(student_logits))
    checks.temperature("judgement.temperature", judgement.temperature)
    if log_prior is not None:
        checks.logits("log_prior", log_prior)
        if log_prior.shape != student_logits.shape[1:]:
            raise ValueError(
                f"log_prior must be one number a class [{student_logits.shape[1]}], "
                f"got shape {list(log_prior.shape)}"
            )
    if labels.ndim == 1:
        labels = labels.long()
    return objective(student_logits, labels, judgement, kd_weight, log_prior)


def objective(
    logits: Tensor,
    labels: Tensor,
    judgement: Judgement | None,
    kd_weight: float,
    log_prior: Tensor | None,
) -> Tensor:
    """`distillation_loss` for input that was checked once for a whole lesson.

    A lesson without teachers has cross-entropy alone, with weight one.
    """
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()  # half precision is for the model, not for its loss
    shifted = logits if log_prior is None else logits + log_prior
    if judgement is None:
        return F.cross_entropy(shifted, labels)
    cross_entropy = F.cross_entropy(shifted, labels, reduction="none")
    distillation = divergence_from_target(logits, judgement)
    per_sample = (1 - kd_weight) * cross_entropy + kd_weight * judgement.trust * distillation
    return per_sample.mean()  # Eq. 10


def divergence_from_target(logits: Tensor, judgement: Judgement) -> Tensor:
    """``T^2 KL(qbar || softmax(z / T))``, [B]."""
    temperature, target = judgement.temperature, judgement.target
    log_student = F.log_softmax(logits / temperature, dim=-1)
    per_class = torch.xlogy(target, target) - target * log_student
    return temperature**2 * per_class.sum(dim=-1)

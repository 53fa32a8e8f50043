"""How a student trains."""

from dataclasses import dataclass

import torch
from torch import nn

from calmfed import checks
from calmfed.data.views import check_augmentation
from calmfed.errors import UserError, nearest

CROSS_ENTROPIES = ("plain", "prior")


@dataclass(frozen=True)
class Recipe:
    """How a student trains.

    Attributes:
        epochs: Passes over the host's samples.
        batch: Samples a step.
        lr: Learning rate of SGD; its state is fresh in each lesson.
        momentum: Of SGD.
        weight_decay: Of SGD.
        kd_weight: alpha of Eq. 2 and 10, the share of the teachers.
        ce: ``"plain"`` cross-entropy, or ``"prior"``: on logits plus the log label frequencies
            of the host's training samples.
        augment: ``"none"``, ``"crop"`` or ``"crop_flip"``.
        teacher_batch: Samples that a teacher predicts at once.
    """

    epochs: int = 5
    batch: int = 64
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    kd_weight: float = 0.7
    ce: str = "plain"
    augment: str = "none"
    teacher_batch: int = 512

    def __post_init__(self) -> None:
        # batch norm cannot train on a single sample
        for name, least in (("epochs", 1), ("batch", 2), ("teacher_batch", 1)):
            if getattr(self, name) < least:
                raise UserError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("lr", "momentum", "weight_decay"):
            checks.at_least_zero(name, getattr(self, name))
        checks.fraction("kd_weight", self.kd_weight)
        if self.ce not in CROSS_ENTROPIES:
            raise UserError(f"unknown ce {self.ce!r}: {nearest(self.ce, CROSS_ENTROPIES)}")
        check_augmentation(self.augment)

    def optimiser(self, student: nn.Module) -> torch.optim.Optimizer:
        """SGD in a fresh state."""
        return torch.optim.SGD(
            student.parameters(),
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )

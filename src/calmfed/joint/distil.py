"""A server's model learns on unlabelled samples what an ensemble says about them (FedDF)."""

import numpy as np
import torch
from torch import Tensor, nn

from calmfed.loss import divergence_from_target
from calmfed.rules import Judgement


def distil(
    student: nn.Module,
    x: Tensor,
    target: Tensor,
    rng: np.random.Generator,
    *,
    steps: int,
    batch: int,
    lr: float,
) -> int:
    """Train a model on ``KL(target || softmax(z))``, in place, with Adam on a cosine.

    Args:
        student: The model.
        x: Samples, [P, C, H, W].
        target: What the ensemble says about them, [P, C].
        rng: Where the batches are drawn from.
        steps: How many batches.
        batch: Samples a step, all different; all samples where there are fewer.
        lr: Learning rate of Adam, which falls to zero on a cosine.

    Returns:
        Forward and backward passes.
    """
    if len(x) < 2:  # batch norm cannot train on a single sample
        return 0
    optimiser = torch.optim.Adam(student.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    size = min(batch, len(x))
    student.train()
    for _ in range(steps):
        chosen = torch.from_numpy(rng.choice(len(x), size, replace=False))
        judgement = Judgement(target[chosen], torch.ones(size), 1.0)
        optimiser.zero_grad()
        divergence_from_target(student(x[chosen]), judgement).mean().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
        schedule.step()
    optimiser.zero_grad()
    return steps * size

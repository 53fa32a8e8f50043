"""Models that are in one place train together and learn from each other as they go (DFML)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calmfed.data.views import Samples, View
from calmfed.recipe import Recipe


def study_together(
    students: Sequence[nn.Module],
    sizes: Sequence[int],
    samples: Samples,
    view: View,
    recipe: Recipe,
    share: float,
) -> None:
    """Train all students on one stream, in place.

    Student n minimises ``(1 - a) CE_n + a sum_{m != n} w_m KL(p_m || p_n)``: no gradient flows
    through the others' predictions p_m, and the weights w_m of the others are in proportion to
    their sizes and add up to one.

    Args:
        students: At least one.
        sizes: How many parameters each has.
        samples: Of the host.
        view: The stream.
        recipe: How each trains; ``ce="prior"`` adds the host's log label frequencies to the
            logits of the cross-entropy, and only to those.
        share: a.
    """
    log_prior = samples.log_frequencies() if recipe.ce == "prior" else 0.0
    optimisers = [recipe.optimiser(student) for student in students]
    order = torch.from_numpy(view.order)
    for student in students:
        student.train()
    for span in view.batches(recipe.batch):
        x, y = view.show(samples.x, span), samples.y[order[span]]
        log_p = [student(x) for student in students]
        labels = [F.cross_entropy(logits + log_prior, y) for logits in log_p]
        log_p = [F.log_softmax(logits, dim=1) for logits in log_p]
        total = torch.stack(labels).sum() * (1 - share)
        if len(students) > 1:
            total = total + share * torch.stack(mutual_divergences(log_p, sizes)).sum()
        for optimiser in optimisers:
            optimiser.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        for optimiser in optimisers:
            optimiser.step()
    for optimiser in optimisers:
        optimiser.zero_grad()


def mutual_divergences(log_p: Sequence[Tensor], sizes: Sequence[int]) -> list[Tensor]:
    """For each n, ``sum_{m != n} w_m KL(p_m || p_n)``, the mean over the batch.

    One whose predictions are not finite has nothing to say: the others learn from the rest.

    Args:
        log_p: Logarithms of each one's predictions, [B, C]; at least two.
        sizes: What the weights are in proportion to.
    """
    sound = [m for m, said in enumerate(log_p) if bool(torch.isfinite(said).all())]
    found = []
    for n, own in enumerate(log_p):
        others = [m for m in sound if m != n]
        if not others:
            found.append(own.new_zeros(()))
            continue
        whole = sum(sizes[m] for m in others)
        parts = [
            sizes[m] / whole * F.kl_div(own, log_p[m].detach(), reduction="none", log_target=True)
            for m in others
        ]
        found.append(torch.stack(parts).sum(dim=(0, 2)).mean())
    return found

"""One round of distillation at home, written out in plain torch: the yardstick for the simulator.

It makes the same forward and backward passes on batches of the same sizes, channels last, every
teacher judged once in large batches, and does nothing else.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calmfed.models import ModelSpec


def make_models(specs: list[ModelSpec]) -> list[nn.Module]:
    return [
        spec.build().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for spec in specs
    ]


def bare_round(
    models: list[nn.Module],
    samples: list[tuple[Tensor, Tensor]],
    epochs: int = 5,
    batch: int = 64,
    temperature: float = 4.0,
    kd_weight: float = 0.7,
) -> None:
    """Each model judges everybody's samples, then each trains on its own."""
    targets = []
    with torch.no_grad():
        for model in models:
            model.eval()
        for host, (x, _) in enumerate(samples):
            teachers = [model for other, model in enumerate(models) if other != host]
            logits = [torch.cat([t(part) for part in torch.split(x, 512)]) for t in teachers]
            targets.append((torch.stack(logits) / temperature).softmax(dim=-1).mean(dim=0))
    for model, (x, y), target in zip(models, samples, targets, strict=True):
        optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
        model.train()
        for _ in range(epochs):
            for chosen in torch.split(torch.randperm(len(y)), batch):
                logits = model(x[chosen].contiguous(memory_format=torch.channels_last))
                kl = F.kl_div(
                    (logits / temperature).log_softmax(dim=-1),
                    target[chosen],
                    reduction="batchmean",
                )
                ce = F.cross_entropy(logits, y[chosen])
                loss = (1 - kd_weight) * ce + kd_weight * temperature**2 * kl
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                optimiser.step()

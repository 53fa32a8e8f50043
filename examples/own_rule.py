"""A rule of one's own, used on bare logits and in a method's place."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

import calmfed
from calmfed.methods import AtHome
from calmfed.rules import Judgement, Rule


@dataclass(frozen=True)
class Loudest:
    """Per sample, believe the one teacher that is surest of anything."""

    temperature: float = 4.0

    def __call__(self, teacher_logits: Tensor, labels: Tensor) -> Judgement:
        """Logits [J, B, C] and labels [B] to a target [B, C] and a trust [B]."""
        q = (teacher_logits / self.temperature).softmax(dim=-1)
        loudest = q.max(dim=-1).values.argmax(dim=0)  # [B]
        target = q[loudest, torch.arange(q.shape[1])]
        return Judgement(target, torch.ones(len(target)), self.temperature)


@calmfed.register_method("loudest")
@dataclass(frozen=True)
class LoudestDistillation(AtHome):
    """Distil at home from the loudest of the other active clients."""

    summary = "distil at home from the teacher that is surest"

    rule: Rule | None = field(default_factory=Loudest)


logits, labels = torch.randn(9, 32, 10), torch.randint(0, 10, (32,))
for rule in (calmfed.Uniform(), calmfed.Calm(), Loudest()):
    judgement = rule(logits, labels)
    loss = calmfed.distillation_loss(torch.zeros(32, 10), labels, judgement)
    print(f"{type(rule).__name__:8} trust {judgement.trust.mean():.2f}, loss {loss:.3f}")

result = calmfed.run(method="loudest,temperature=2", clients=6, active=3, rounds=5, width=0.1)
print(f"loudest at T = 2: {result.accuracy:.1%}")

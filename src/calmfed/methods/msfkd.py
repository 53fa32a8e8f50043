"""`msfkd`: "MSFKD-style": teachers are weighed class by class by how well they know the class.

Ours: no source of the method that the reference compares under this name could be read. Client j
reports its recall r_jc on class c of its validation split; public samples whose weighted target
is confident enough are digested, then each client trains privately.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from calmfed import checks
from calmfed.aids import Digest
from calmfed.data.views import Samples
from calmfed.methods.base import Commons, Method, Plan, Round
from calmfed.methods.fedmd import AGREED, check_digest, nothing
from calmfed.methods.registry import register_method


@register_method("msfkd")
@dataclass(frozen=True)
class MSFKDStyle(Method):
    """Public samples labelled by the clients that know the class, where they are sure enough.

    Attributes:
        confidence: What the target's largest entry must exceed for a sample to be used.
        temperature: Of teachers and students on public samples.
        digest_epochs: Passes over the public samples.
        digest_batch: Public samples a step.
    """

    summary = "MSFKD-style (ours): as fedmd, teachers weighed per class by validation recall"
    reads_public = True

    confidence: float = 0.5
    temperature: float = 1.0
    digest_epochs: int = 1
    digest_batch: int = 256

    def __post_init__(self) -> None:
        checks.fraction("confidence", self.confidence)
        checks.temperature("temperature", self.temperature)
        check_digest(self.digest_epochs, self.digest_batch)

    def before(self, round_: Round, commons: Commons) -> None:
        """Every active client scores the public samples and says which classes it knows."""
        q, recalls = [], []
        for name, logits in commons.score(round_.active, commons.public).items():
            own = commons.validation(name)
            q.append((logits / self.temperature).softmax(dim=1))
            recalls.append(recall(commons.predict(name, own.x), own))
            commons.passed(len(own))
            commons.moved({"said": q[-1], "recall": recalls[-1]})
        agreed = nothing(round_.classes)
        if q:
            target = weighed_by_class(torch.stack(q), torch.stack(recalls))
            index = (target.max(dim=1).values > self.confidence).nonzero()[:, 0]
            agreed = {"target": target[index], "index": index}
        commons.moved(agreed, times=len(round_.active))
        commons.memory[AGREED] = agreed

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at home, which begins with the public samples."""
        aids = (Digest(AGREED, "kl", self.temperature, self.digest_epochs, self.digest_batch),)
        return Plan(tuple(round_.lesson(name, name, aids=aids) for name in round_.active))


def recall(logits: Tensor, samples: Samples) -> Tensor:
    """The share of each class that is recognised, [C]; 0 for a class that is not there.

    Args:
        logits: Of the samples, [n, C].
        samples: With their labels.
    """
    right = (logits.argmax(dim=1) == samples.y).float()
    hits = torch.bincount(samples.y, weights=right, minlength=samples.classes)
    counts = torch.bincount(samples.y, minlength=samples.classes)
    return hits / counts.clamp(min=1)


def weighed_by_class(q: Tensor, recalls: Tensor) -> Tensor:
    """``sum_j r_jc q_jc / sum_j r_jc``, renormalised over c; a class nobody knows has no share.

    Args:
        q: Predictions of the teachers, [J, B, C].
        recalls: r, [J, C].

    Returns:
        Distributions, [B, C]; uniform where nobody knows any class.
    """
    weights = recalls / recalls.sum(dim=0).clamp(min=torch.finfo(recalls.dtype).tiny)
    mass = (weights[:, None, :] * q).sum(dim=0)
    total = mass.sum(dim=1, keepdim=True)
    return torch.where(total > 0, mass / total, torch.full_like(mass, 1 / q.shape[2]))

"""`fedmd`: clients agree on public samples by the mean of their logits, and each fits the mean.

Li and Wang, "FedMD: heterogenous federated learning via model distillation", 2019. Their start on
labelled public samples is left out: here nobody has labels for them.
"""

from dataclasses import dataclass

import torch

from calmfed import checks
from calmfed.aids import Digest
from calmfed.errors import UserError, nearest
from calmfed.methods.base import Commons, Method, Plan, Round
from calmfed.methods.registry import register_method
from calmfed.snapshot import State

AGREED = "agreed"
LOSSES = ("l1", "kl")


@register_method("fedmd")
@dataclass(frozen=True)
class FedMD(Method):
    """Score public samples, average the logits, fit the average, then train privately.

    Attributes:
        loss: ``"l1"`` between logits, as in the authors' code, or ``"kl"`` between softened
            predictions.
        temperature: Of the softening.
        digest_epochs: Passes over the public samples.
        digest_batch: Public samples a step.
    """

    summary = "clients fit the mean of their logits on public samples, then train privately"
    reads_public = True

    loss: str = "l1"
    temperature: float = 4.0
    digest_epochs: int = 1
    digest_batch: int = 256

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise UserError(f"unknown loss {self.loss!r}: {nearest(self.loss, LOSSES)}")
        checks.temperature("temperature", self.temperature)
        check_digest(self.digest_epochs, self.digest_batch)

    def before(self, round_: Round, commons: Commons) -> None:
        """Every active client scores the public samples; what they agree on is the mean."""
        said = commons.score(round_.active, commons.public)
        for logits in said.values():
            commons.moved({"said": logits})
        agreed = nothing(round_.classes)
        if said:
            mean = torch.stack(list(said.values())).mean(dim=0)
            target = mean if self.loss == "l1" else (mean / self.temperature).softmax(dim=1)
            agreed = {"target": target, "index": torch.arange(len(target))}
        commons.moved({"target": agreed["target"]}, times=len(round_.active))
        commons.memory[AGREED] = agreed

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at home, which begins with the public samples."""
        aids = (Digest(AGREED, self.loss, self.temperature, self.digest_epochs, self.digest_batch),)
        return Plan(tuple(round_.lesson(name, name, aids=aids) for name in round_.active))


def nothing(classes: int) -> State:
    """What is agreed on when nobody has anything to say."""
    return {"target": torch.empty(0, classes), "index": torch.empty(0, dtype=torch.long)}


def check_digest(epochs: int, batch: int) -> None:
    """Refuse settings with which public samples cannot be studied."""
    for name, value, least in (("digest_epochs", epochs, 1), ("digest_batch", batch, 2)):
        if value < least:
            raise UserError(f"{name} must be at least {least}, got {value}")

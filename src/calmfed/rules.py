"""Rules: how a pool of teachers and the true labels become a target and a trust in it.

A rule is called as ``rule(teacher_logits, labels)`` with logits [J, B, C] and class indices [B]
(or distributions [B, C]) and answers with a `Judgement`.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from calmfed import checks, gates


@dataclass(frozen=True)
class Judgement:
    """What the teachers say about a batch, and how far to believe it.

    Attributes:
        target: Distillation target ``qbar``, [B, C] float32, on the simplex.
        trust: ``lambda`` of Eq. 9, [B] float32 in [0, 1].
        temperature: T at which the target was softened and the student must be.
        disagreement_trust: ``lambda_dis`` of Eq. 7, [B], the label-free part of the trust.
        label_trust: ``g`` of Eq. 8, [B], the part that knows the label. Both are for the record
            alone, and None for a rule without such parts.
    """

    target: Tensor
    trust: Tensor
    temperature: float
    disagreement_trust: Tensor | None = None
    label_trust: Tensor | None = None

    def __getitem__(self, samples: Tensor | slice) -> "Judgement":
        """What a student needs of the judgement of some of the samples."""
        return Judgement(self.target[samples], self.trust[samples], self.temperature)


class Rule(Protocol):
    """Anything that judges a pool of teachers."""

    @property
    def temperature(self) -> float:
        """T of Eq. 1."""
        ...

    def __call__(self, teacher_logits: Tensor, labels: Tensor) -> Judgement:
        """Judge logits [J, B, C] of J teachers against the labels of B samples."""
        ...


@dataclass(frozen=True)
class Uniform:
    """The plain mean of the teachers, believed in full: Eq. 2's target."""

    temperature: float = 4.0

    def __post_init__(self) -> None:
        checks.temperature("temperature", self.temperature)

    def __call__(self, teacher_logits: Tensor, labels: Tensor) -> Judgement:
        """Judge by the mean."""
        log_q = _softened(teacher_logits, labels, self.temperature)
        return _believed(gates.log_consensus(log_q).exp(), self.temperature)


@dataclass(frozen=True)
class Calm:
    """The three gates of CALM, Eq. 3 to 9; infinite scales and a zero exponent switch them off.

    Attributes:
        temperature: T of Eq. 1.
        tau: Agreement scale of gate 1 (Eq. 4); ``inf`` makes the target the plain mean.
        sigma: Tolerance to disagreement of gate 2 (Eq. 7); ``inf`` makes its factor one.
        eta: Exponent of the label gate 3 (Eq. 8); zero makes its factor one.
        floor: The least that gate 2 leaves (Eq. 7), before gate 3 multiplies it.
    """

    temperature: float = 4.0
    tau: float = 0.1
    sigma: float = 1.0
    eta: float = 0.5
    floor: float = 0.05

    def __post_init__(self) -> None:
        checks.temperature("temperature", self.temperature)
        checks.above_zero("tau", self.tau)
        checks.above_zero("sigma", self.sigma)
        checks.at_least_zero("eta", self.eta)
        checks.fraction("floor", self.floor)

    def __call__(self, teacher_logits: Tensor, labels: Tensor) -> Judgement:
        """Judge by agreement, disagreement and the label."""
        log_q = _softened(teacher_logits, labels, self.temperature)  # Eq. 1
        log_target = gates.log_agreement_target(log_q, self.tau)  # Eq. 3-5
        d = gates.log_disagreement(log_q, log_target)  # Eq. 6
        lambda_dis = gates.gate_disagreement(d, self.sigma, self.floor)  # Eq. 7
        g = gates.gate_label(log_target, labels, self.eta)  # Eq. 8
        return Judgement(
            target=log_target.exp().float(),
            trust=(lambda_dis * g).float(),  # Eq. 9
            temperature=self.temperature,
            disagreement_trust=lambda_dis.float(),
            label_trust=g.float(),
        )


@dataclass(frozen=True)
class HardFilter:
    """Per sample and class, teachers that deviate too far are dropped and the rest averaged.

    The reference says only "per-class censoring of teachers with an adaptive median threshold";
    this is our reading of it. Teacher j is kept for class c where
    ``Delta_jc <= kappa * median_j Delta_jc`` (the lower median; ties within 1e-6 are kept), the
    kept are averaged and the result renormalised. Where no mass is left, the plain mean stands in.
    """

    temperature: float = 4.0
    kappa: float = 1.0

    def __post_init__(self) -> None:
        checks.temperature("temperature", self.temperature)
        checks.at_least_zero("kappa", self.kappa)

    def __call__(self, teacher_logits: Tensor, labels: Tensor) -> Judgement:
        """Judge by what is left after the censoring."""
        q = _softened(teacher_logits, labels, self.temperature).exp()
        delta = gates.deviation(q)
        threshold = self.kappa * delta.median(dim=0).values  # torch's median is the lower one
        kept = (delta <= threshold + 1e-6).double()
        mean = (kept * q).sum(dim=0) / kept.sum(dim=0).clamp_min(1)
        mass = mean.sum(dim=-1, keepdim=True)
        return _believed(torch.where(mass > 0, mean / mass, q.mean(dim=0)), self.temperature)


@dataclass(frozen=True)
class ConfidenceWeighted:
    """Teachers weighted per sample by how well they know its label (CA-MKD, Zhang et al. 2022).

    ``w_j = (1 - softmax_j(CE_j)) / (J - 1)``, where ``CE_j`` is teacher j's cross-entropy on the
    true label at temperature one; one teacher alone has weight one. Only the weighting of logits,
    not the paper's matching of features, which unlike models do not share.
    """

    temperature: float = 4.0

    def __post_init__(self) -> None:
        checks.temperature("temperature", self.temperature)

    def __call__(self, teacher_logits: Tensor, labels: Tensor) -> Judgement:
        """Judge by each teacher's confidence on the label."""
        q = _softened(teacher_logits, labels, self.temperature).exp()
        if len(q) == 1:
            return _believed(q[0], self.temperature)
        log_p = gates.log_soften(teacher_logits, 1.0)
        cross_entropy = torch.stack([-_expected(teacher, labels) for teacher in log_p])  # [J, B]
        weight = (1 - F.softmax(cross_entropy, dim=0)) / (len(q) - 1)
        return _believed((weight[..., None] * q).sum(dim=0), self.temperature)


def gated(gates_on: str, rule: Calm | None = None) -> Calm:
    """CALM with only some of its gates: ``gated("12")`` is soft target and disagreement.

    Args:
        gates_on: Which of the gates 1, 2 and 3 stay on.
        rule: Where the scales of those come from; the defaults of `Calm` if not given.
    """
    rule = rule or Calm()
    return Calm(
        temperature=rule.temperature,
        tau=rule.tau if "1" in gates_on else math.inf,
        sigma=rule.sigma if "2" in gates_on else math.inf,
        eta=rule.eta if "3" in gates_on else 0.0,
        floor=rule.floor,
    )


def _softened(teacher_logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Check a rule's input and soften it: log q of Eq. 1, [J, B, C] float64."""
    checks.teacher_logits("teacher_logits", teacher_logits)
    checks.labels("labels", labels, *teacher_logits.shape[1:])
    return gates.log_soften(teacher_logits, temperature)


def _believed(target: Tensor, temperature: float) -> Judgement:
    one = torch.ones(len(target), device=target.device)
    return Judgement(target.float(), one, temperature)


def _expected(log_p: Tensor, labels: Tensor) -> Tensor:
    """Log-likelihood of the labels (expected, for distributions), [B]."""
    if labels.ndim == 1:
        return log_p.gather(1, labels[:, None].long())[:, 0]
    return (log_p * labels.detach().double()).sum(dim=-1)

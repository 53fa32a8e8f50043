"""The three gates of CALM (equations 1 and 3 to 9) as pure functions on tensors.

Shapes: J teachers, B samples, C classes; ``q`` is [J, B, C], a target [B, C], a trust [B].
Every function takes any float dtype, computes in float64 on logarithms, returns float32 and lets
no gradient through. The ``log_*`` functions are the same equations before they are rounded:
rules chain those, so that a probability which float32 would round to zero still counts.

Equation numbers are those of Ying and Tian, "CALM: Class-wise Agreement and Label-Gated
Disagreement Modulation for Decentralized Federated Learning".
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from calmfed import checks


def soften(logits: Tensor, temperature: float) -> Tensor:
    """Eq. 1: ``q = softmax(logits / T)`` over the last dimension.

    Args:
        logits: Finite logits, [..., C].
        temperature: T, above zero and finite.

    Returns:
        Probabilities of the same shape, float32.
    """
    checks.logits("logits", logits)
    checks.temperature("temperature", temperature)
    return _rounded(log_soften(logits, temperature).exp())


def consensus(q: Tensor) -> Tensor:
    """Eq. 3, left: the teachers' plain mean ``q~_c = mean_j q_jc``, [B, C]."""
    checks.teachers("q", q)
    return _rounded(log_consensus(_log(q)).exp())


def agreement(q: Tensor, tau: float) -> Tensor:
    """Eq. 3 and 4: how far each teacher agrees with the consensus on each class.

    Args:
        q: Soft predictions, [J, B, C].
        tau: Agreement scale, above zero; ``inf`` makes every weight exactly one.

    Returns:
        ``a_jc = exp(-|q_jc - q~_c| / tau)``, [J, B, C].
    """
    checks.teachers("q", q)
    checks.above_zero("tau", tau)
    return _rounded((-deviation(q.detach().double()) / tau).exp())


def agreement_target(q: Tensor, tau: float) -> Tensor:
    """Eq. 5: the agreement-weighted mean of the teachers, renormalised over classes, [B, C]."""
    checks.teachers("q", q)
    checks.above_zero("tau", tau)
    return _rounded(log_agreement_target(_log(q), tau).exp())


def disagreement(q: Tensor, target: Tensor) -> Tensor:
    """Eq. 6: the teachers' mean divergence from the target, ``d = mean_j KL(q_j || target)``, [B].

    It is infinite where a teacher believes in a class that the target rules out.
    """
    checks.teachers("q", q)
    checks.target("target", target, like=q)
    return _rounded(log_disagreement(_log(q), _log(target)))


def disagreement_gate(d: Tensor, sigma: float, floor: float) -> Tensor:
    """Eq. 7: ``lambda_dis = clip(exp(-d / sigma), floor, 1)``, [B].

    Args:
        d: Disagreement, [B], at least zero; infinity is allowed.
        sigma: Tolerance, above zero; ``inf`` switches the gate off: exactly one everywhere.
        floor: The least trust that disagreement alone leaves, in [0, 1].
    """
    checks.divergence("d", d)
    checks.above_zero("sigma", sigma)
    checks.fraction("floor", floor)
    return _rounded(gate_disagreement(d.detach().double(), sigma, floor))


def label_gate(target: Tensor, labels: Tensor, eta: float) -> Tensor:
    """Eq. 8: ``g = (target_y) ** eta``, how far the target supports the true label, [B].

    Args:
        target: Distillation target, [B, C].
        labels: Class indices, [B], or distributions over classes, [B, C]; for a distribution
            ``target_y`` is the mass the target gives it, ``sum_c labels_c target_c``.
        eta: Strength, at least zero; zero switches the gate off: exactly one everywhere.
    """
    checks.target("target", target)
    checks.labels("labels", labels, len(target), target.shape[-1])
    checks.at_least_zero("eta", eta)
    return _rounded(gate_label(_log(target), labels, eta))


# The equations themselves, in float64 and on logarithms.


def log_soften(logits: Tensor, temperature: float) -> Tensor:
    """Eq. 1 on logarithms: [..., C] to [..., C]."""
    logits = logits.detach().double()
    logits = logits - logits.amax(dim=-1, keepdim=True)  # before the division, which may overflow
    return F.log_softmax(logits / temperature, dim=-1)


def log_consensus(log_q: Tensor) -> Tensor:
    """Eq. 3, left: [J, B, C] to [B, C]."""
    return torch.logsumexp(log_q, dim=0) - math.log(len(log_q))


def deviation(q: Tensor) -> Tensor:
    """Eq. 3, right: ``Delta_jc = |q_jc - q~_c|``, [J, B, C]."""
    return (q - q.mean(dim=0)).abs()


def log_agreement_target(log_q: Tensor, tau: float) -> Tensor:
    """Eq. 5: [J, B, C] to [B, C].

    The weights of Eq. 4 enter only through their share ``a_jc / sum_j a_jc``, a softmax over the
    teachers of ``-Delta / tau``: so they cannot all underflow together.
    """
    if math.isinf(tau):
        return log_consensus(log_q)
    tau = max(tau, 1e-300)  # where the limit is long reached, and the division does not overflow
    log_share = F.log_softmax(-deviation(log_q.exp()) / tau, dim=0)
    log_mean = torch.logsumexp(log_share + log_q, dim=0)
    return F.log_softmax(log_mean, dim=-1)


def log_disagreement(log_q: Tensor, log_target: Tensor) -> Tensor:
    """Eq. 6: [J, B, C] and [B, C] to [B]; rounding below zero is cut off."""
    return divergence(log_q, log_target).mean(dim=0).clamp_min(0)


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """``KL(p || q)`` over the last dimension, where ``0 log 0 = 0``."""
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), 0.0).sum(dim=-1)


def gate_disagreement(d: Tensor, sigma: float, floor: float) -> Tensor:
    """Eq. 7: [B] to [B]."""
    if math.isinf(sigma):
        return torch.ones_like(d)
    return (-d / sigma).exp().clamp(floor, 1)


def gate_label(log_target: Tensor, labels: Tensor, eta: float) -> Tensor:
    """Eq. 8: [B, C] and labels to [B]."""
    if eta == 0:
        return torch.ones_like(log_target[:, 0])
    return (eta * log_mass_on(log_target, labels)).exp().clamp_max(1)


def log_mass_on(log_target: Tensor, labels: Tensor) -> Tensor:
    """The logarithm of the target's mass on the label, ``log target_y``, [B]."""
    if labels.ndim == 1:
        return log_target.gather(1, labels[:, None].long())[:, 0]
    return torch.logsumexp(log_target + labels.detach().double().log(), dim=-1)


def _log(q: Tensor) -> Tensor:
    return q.detach().double().log()


def _rounded(x: Tensor) -> Tensor:
    return x.detach().to(torch.float32)

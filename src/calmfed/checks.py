"""Arguments that cannot be right are refused by name, with what was wrong with them."""

import math

import torch
from torch import Tensor


def number(name: str, value: object) -> None:
    """A plain number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")


def above_zero(name: str, value: float) -> None:
    """A scale: above zero, infinity allowed."""
    number(name, value)
    if not value > 0:  # written so that NaN fails too
        raise ValueError(f"{name} must be above zero, got {value}")


def temperature(name: str, value: float) -> None:
    """T of Eq. 1: above zero and finite, because the loss multiplies by its square."""
    number(name, value)
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above zero, got {value}")


def at_least_zero(name: str, value: float) -> None:
    """A finite strength that may be zero; torch's own numbers end at about 3.4e38."""
    number(name, value)
    if not 0 <= value <= torch.finfo(torch.float32).max:
        raise ValueError(f"{name} must be a finite number of at least zero, got {value}")


def fraction(name: str, value: float) -> None:
    """A number in [0, 1]."""
    number(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")


def tensor(name: str, value: object) -> None:
    """A tensor, and not an array or a list."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a torch tensor, got {type(value).__name__}")


def logits(name: str, value: Tensor) -> None:
    """Finite floating-point logits over at least one class."""
    tensor(name, value)
    if not value.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {value.dtype}")
    if value.ndim == 0 or value.shape[-1] == 0:
        raise ValueError(f"{name} must end in a dimension of classes, got shape {_shape(value)}")
    finite = torch.isfinite(value)
    if not finite.all():
        where = torch.nonzero(~finite)
        raise ValueError(
            f"{name} must be finite: {len(where)} of {value.numel()} values are NaN or infinite, "
            f"the first at {where[0].tolist()}"
        )


def teacher_logits(name: str, value: Tensor) -> None:
    """Logits of at least one teacher, [J, B, C]."""
    _three_dimensions(name, value)
    logits(name, value)


def teachers(name: str, q: Tensor) -> None:
    """Soft predictions of at least one teacher, [J, B, C], on the simplex."""
    _three_dimensions(name, q)
    _probabilities(name, q)


def target(name: str, value: Tensor, like: Tensor | None = None) -> None:
    """A target [B, C] on the simplex, for the same samples and classes as ``like`` [J, B, C]."""
    tensor(name, value)
    if value.ndim != 2:
        raise ValueError(f"{name} must be [samples, classes], got shape {_shape(value)}")
    if like is not None and value.shape != like.shape[1:]:
        raise ValueError(
            f"{name} must be {_shape(like)[1:]} like the teachers' predictions, got {_shape(value)}"
        )
    _probabilities(name, value)


def trust(name: str, value: Tensor, samples: int) -> None:
    """One trust a sample, [B], in [0, 1]."""
    tensor(name, value)
    if value.shape != (samples,):
        raise ValueError(f"{name} must be one number a sample [{samples}], got {_shape(value)}")
    if not ((value >= 0) & (value <= 1)).all():
        raise ValueError(
            f"{name} must lie in [0, 1], got {value.min().item()}..{value.max().item()}"
        )


def divergence(name: str, value: Tensor) -> None:
    """Divergences, [B]: at least zero, infinity allowed."""
    tensor(name, value)
    if value.ndim != 1:
        raise ValueError(f"{name} must be one number a sample, got shape {_shape(value)}")
    if not (value >= 0).all():
        raise ValueError(f"{name} must be at least zero and not NaN, got {value.min().item()}")


def labels(name: str, value: Tensor, samples: int, classes: int) -> None:
    """Class indices [B] in 0..C-1, or distributions [B, C] on the simplex."""
    tensor(name, value)
    if value.ndim not in (1, 2) or len(value) != samples:
        raise ValueError(
            f"{name} must be class indices [{samples}] or distributions [{samples}, {classes}], "
            f"got shape {_shape(value)}"
        )
    if value.ndim == 2:
        if value.shape[1] != classes:
            raise ValueError(f"{name} must have {classes} classes, got shape {_shape(value)}")
        _probabilities(name, value)
        return
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise ValueError(f"{name} must be integer class indices, got {value.dtype}")
    value = value.long()  # torch cannot compare all of its integers
    if samples and not (int(value.min()) >= 0 and int(value.max()) < classes):
        raise ValueError(
            f"{name} must lie in 0..{classes - 1}, got {int(value.min())}..{int(value.max())}"
        )


def _three_dimensions(name: str, value: Tensor) -> None:
    tensor(name, value)
    if value.ndim != 3:
        raise ValueError(f"{name} must be [teachers, samples, classes], got shape {_shape(value)}")
    if len(value) == 0:
        raise ValueError(f"{name} holds no teacher: shape {_shape(value)}")


def _probabilities(name: str, value: Tensor) -> None:
    logits(name, value)
    if (value < 0).any():
        raise ValueError(f"{name} must not be negative, got {value.min().item()}")
    sums = value.detach().double().sum(dim=-1)
    off = (sums - 1).abs()
    # float16 and bfloat16 predictions add up to one only as far as they can write numbers
    slack = max(1e-4, 2 * torch.finfo(value.dtype).eps)
    if value.numel() and off.max() > slack:
        raise ValueError(
            f"{name} must add up to one over the classes, got {sums.flatten()[off.argmax()]:.6g}"
        )


def _shape(value: Tensor) -> list[int]:
    return list(value.shape)

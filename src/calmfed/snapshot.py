"""A model's state as bytes and back: safetensors, never pickle."""

from collections.abc import Mapping, Sequence

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from calmfed.errors import DataError

State = dict[str, Tensor]
"""Everything a model has learned, parameters and buffers by name; never changed in place."""


def state_of(model: nn.Module) -> State:
    """A copy of a model's state, plainly laid out in memory."""
    return {
        name: tensor.detach().clone(memory_format=torch.contiguous_format)
        for name, tensor in model.state_dict().items()
    }


def encode(state: Mapping[str, Tensor]) -> bytes:
    """A state as safetensors bytes, the same for the same state."""
    return safetensors.torch.save({name: state[name].contiguous() for name in sorted(state)})


def decode(data: bytes, origin: str) -> State:
    """A state from safetensors bytes; ``origin`` names them in the error when they are damaged."""
    try:
        return safetensors.torch.load(data)
    except (SafetensorError, KeyError) as error:  # KeyError: a type that torch does not have
        raise DataError(f"{origin} is not a readable safetensors snapshot: {error}") from error


def misfit(state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> str | None:
    """Say why a state is not of the same architecture as one's own; None where it is."""
    if missing := sorted(own.keys() - state.keys()):
        return (
            f"lacks {missing[0]} and {len(missing) - 1} more"
            if missing[1:]
            else (f"lacks {missing[0]}")
        )
    if foreign := sorted(state.keys() - own.keys()):
        return f"has {foreign[0]}, which the architecture does not"
    for name, tensor in own.items():
        if state[name].shape != tensor.shape or state[name].dtype != tensor.dtype:
            return (
                f"{name} is {state[name].dtype} {list(state[name].shape)}, "
                f"not {tensor.dtype} {list(tensor.shape)}"
            )
    return None


def same(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    """Whether two states are equal bit by bit, types and shapes included."""
    return a.keys() == b.keys() and all(
        a[n].dtype == b[n].dtype and a[n].shape == b[n].shape and torch.equal(a[n], b[n]) for n in a
    )


def is_finite(state: Mapping[str, Tensor]) -> bool:
    """Whether no tensor holds NaN or infinity."""
    return all(bool(torch.isfinite(t).all()) for t in state.values() if t.is_floating_point())


def average(states: Sequence[State], weights: Sequence[int] | None = None) -> State:
    """The mean of states of one architecture, parameters and buffers; integers are rounded.

    The sum runs in float64 over the order given, so equals that average the same list get the
    same bits.

    Args:
        states: At least one.
        weights: How much each counts, as numbers of samples; alike if not given.
    """
    counts = [1] * len(states) if weights is None else list(weights)
    mean: State = {}
    for name, first in states[0].items():
        shares = [state[name].double() * n for state, n in zip(states, counts, strict=True)]
        total = torch.stack(shares).sum(dim=0) / sum(counts)
        mean[name] = (
            total.to(first.dtype) if first.is_floating_point() else (total.round().to(first.dtype))
        )
    return mean

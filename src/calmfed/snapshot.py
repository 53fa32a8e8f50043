"""A model's state as bytes and back: safetensors, never pickle."""

from collections.abc import Mapping

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


def is_finite(state: Mapping[str, Tensor]) -> bool:
    """Whether no tensor holds NaN or infinity."""
    return all(bool(torch.isfinite(t).all()) for t in state.values() if t.is_floating_point())


def average(states: list[State]) -> State:
    """The mean of states of one architecture, parameters and buffers; integers are rounded.

    The sum runs in float64 over the order given, so equals that average the same list get the
    same bits.
    """
    mean: State = {}
    for name, first in states[0].items():
        total = torch.stack([state[name].double() for state in states]).sum(dim=0) / len(states)
        mean[name] = (
            total.to(first.dtype) if first.is_floating_point() else (total.round().to(first.dtype))
        )
    return mean

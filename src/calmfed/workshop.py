"""Modules at work: one bench an architecture, on which snapshots are laid in turn."""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from calmfed.errors import UserError
from calmfed.models import ModelSpec
from calmfed.snapshot import State, state_of

Teacher = Callable[[Tensor], Tensor]
"""Anything that maps samples [B, C, H, W] to logits [B, classes]."""


class Workshop:
    """Builds each architecture once and loads states into it, instead of building it anew.

    A model's state is in its ``state_dict``, so a loaded module is the model. Students and
    teachers have benches of their own: a loaded teacher never disturbs a student at work.
    """

    def __init__(self) -> None:
        self._benches: dict[tuple[ModelSpec, str], nn.Module] = {}

    def student(self, spec: ModelSpec, state: State) -> nn.Module:
        """The model, until the next student of its architecture is asked for."""
        return self._lay_out(spec, state, "student")

    def teacher(self, spec: ModelSpec, state: State) -> nn.Module:
        """The model in evaluation mode, until the next teacher of its architecture."""
        return self._lay_out(spec, state, "teacher").eval()

    def _lay_out(self, spec: ModelSpec, state: State, role: str) -> nn.Module:
        if (spec, role) not in self._benches:
            with torch.random.fork_rng(devices=[]):  # these weights are overwritten below
                model = spec.build()
            self._benches[spec, role] = _channels_last(model)
        model = self._benches[spec, role]
        model.load_state_dict(state)
        return model


def try_out(spec: ModelSpec, shape: tuple[int, int, int]) -> None:
    """Refuse an architecture that cannot take part, before anything is begun with it.

    Args:
        spec: The architecture.
        shape: Channels, height and width of a sample.
    """
    try:
        with torch.random.fork_rng(devices=[]):
            model: object = spec.build()
        if not isinstance(model, nn.Module):
            raise TypeError(f"it is built as {type(model).__name__}, not a torch.nn.Module")
        before = set(state_of(model))
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise TypeError("it has no parameter to learn")
        with torch.no_grad():
            logits: object = _channels_last(model).eval()(
                torch.zeros(2, *shape).contiguous(memory_format=torch.channels_last)
            )
        if not isinstance(logits, Tensor) or not logits.is_floating_point():
            raise TypeError(f"it answers with {type(logits).__name__}, not with logits")
        if logits.shape != (2, spec.classes):
            raise TypeError(
                f"two samples should give logits [2, {spec.classes}], but give {list(logits.shape)}"
            )
        if set(state_of(model)) != before:
            raise TypeError("it makes layers only when it is used: make them all at once")
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"model {spec.name!r} cannot take part with samples of {'x'.join(map(str, shape))}: "
            f"{reason[:200]}"
        ) from error


def _channels_last(model: nn.Module) -> nn.Module:
    """Lay a model's weights out for images, which halves the time of training on a CPU."""
    with contextlib.suppress(RuntimeError):  # weights of five dimensions cannot be laid out so
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types only the other overloads
    return model


def predict(model: Teacher, x: Tensor, batch: int) -> Tensor:
    """Logits of a model on samples [n, C, H, W], ``batch`` at a time, without gradient."""
    with torch.no_grad():
        parts = [model(x[i : i + batch]) for i in range(0, len(x), batch)]
        return torch.cat(parts).float()

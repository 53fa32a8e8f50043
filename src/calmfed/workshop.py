"""Modules at work: one bench an architecture, on which snapshots are laid in turn."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from calmfed.models import ModelSpec
from calmfed.snapshot import State

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
            self._benches[spec, role] = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types only the other overloads
        model = self._benches[spec, role]
        model.load_state_dict(state)
        return model


def predict(model: Teacher, x: Tensor, batch: int) -> Tensor:
    """Logits of a model on samples [n, C, H, W], ``batch`` at a time, without gradient."""
    with torch.no_grad():
        return torch.cat([model(x[i : i + batch]) for i in range(0, len(x), batch)])

"""Modules at work: one bench an architecture, on which snapshots are laid in turn."""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calmfed.errors import UserError
from calmfed.models import ModelSpec
from calmfed.models.features import classifier, listen
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
            self._benches[spec, role] = new_model(spec, state)
        model = self._benches[spec, role]
        model.load_state_dict(state)
        return model


def new_model(spec: ModelSpec, state: State) -> nn.Module:
    """A model in a state, laid out for images."""
    with torch.random.fork_rng(devices=[]):  # these weights are overwritten below
        model = _channels_last(spec.build())
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
        x = torch.zeros(2, *shape).contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            answer = _check_logits(_channels_last(model).eval()(x), spec.classes)
            if spec.features is not None:
                _check_classifier(model, x, answer)
        with torch.random.fork_rng(devices=[]):  # dropout draws in training
            logits = _check_logits(model.train()(x), spec.classes)
        loss = F.cross_entropy(logits.float(), torch.zeros(2, dtype=torch.long))
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
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


def _check_logits(answer: object, classes: int) -> Tensor:
    """Logits of two samples, or a `TypeError` that says what they are instead."""
    if not isinstance(answer, Tensor) or not answer.is_floating_point():
        raise TypeError(f"it answers with {type(answer).__name__}, not with logits")
    if answer.shape != (2, classes):
        raise TypeError(
            f"two samples should give logits [2, {classes}], but give {list(answer.shape)}"
        )
    if not torch.isfinite(answer).all():
        raise TypeError("new, it already answers with NaN or infinity")
    return answer


def _check_classifier(model: nn.Module, x: Tensor, logits: Tensor) -> None:
    """Raise a `TypeError` if logits are not what the last linear layer makes of features."""
    heard, stop = listen(model)
    model(x)
    stop()
    if not heard or not torch.equal(classifier(model)(heard[0]), logits):
        raise TypeError("it has no last linear layer that makes its logits, as prototypes need")


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


def features_of(model: nn.Module, x: Tensor, batch: int) -> Tensor:
    """What a model sees in samples before it decides, [n, F], without gradient."""
    heard, stop = listen(model)
    parts = []
    with torch.no_grad():
        for i in range(0, len(x), batch):
            model(x[i : i + batch])
            parts.append(heard[0].float())
    stop()
    return torch.cat(parts)


class NearestPrototype:
    """Decides by which class prototype the features of a sample are nearest to."""

    def __init__(self, model: nn.Module, prototypes: State) -> None:
        self._model = model
        self._prototypes = prototypes

    def __call__(self, x: Tensor) -> Tensor:
        """Minus the mean squared distances from the prototypes, [B, C], in place of logits."""
        features = features_of(self._model, x, len(x))
        distances = (features[:, None] - self._prototypes["mean"]).square().mean(dim=2)
        return torch.where(self._prototypes["known"], -distances, -torch.inf)

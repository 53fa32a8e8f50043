"""Architectures by name: the names that a configuration uses and that a peer may send."""

import importlib
import pkgutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from torch import nn

from calmfed.errors import UserError, nearest
from calmfed.models.features import with_features

Factory = Callable[[int, int, float], nn.Module]
"""Builds a model from (channels, classes, width), its weights drawn from torch's generator."""

F = TypeVar("F", bound=Factory)

_FACTORIES: dict[str, Factory] = {}


@dataclass(frozen=True)
class ModelSpec:
    """Which architecture, and its arguments; everything but the weights.

    Attributes:
        name: Its registered name.
        channels: Of the input.
        classes: Of the output.
        width: Factor on the number of channels inside.
        features: How many features its classifier gets, by a projection; None for its own number.
    """

    name: str
    channels: int = 3
    classes: int = 10
    width: float = 1.0
    features: int | None = None

    def build(self) -> nn.Module:
        """A new model, its weights drawn from torch's global generator."""
        model = create(self.name, self.channels, self.classes, self.width)
        return model if self.features is None else with_features(model, self.features)


def register_model(name: str) -> Callable[[F], F]:
    """Register a function or class called as ``(channels, classes, width)`` under a name.

    Everything that such a model learns must be in its ``state_dict``: between lessons only that
    is kept. Its forward pass takes [B, channels, H, W] and gives logits [B, classes].
    """
    if not isinstance(name, str) or not name or set(name) & set(" ,:"):
        raise UserError(
            f'a model needs a name, as in @register_model("mine"), without blank, comma and colon; '
            f"got {name!r}"
        )

    def register(factory: F) -> F:
        if not _built_in(factory):
            _load_built_in()  # so that a name which is taken is refused here
        known = _FACTORIES.get(name, factory)
        if (known.__module__, known.__qualname__) != (factory.__module__, factory.__qualname__):
            taken = f"{known.__module__}.{known.__qualname__}"
            raise UserError(f"there is a model {name!r} already: {taken}")
        _FACTORIES[name] = factory
        return factory

    return register


def names() -> list[str]:
    """All registered architectures."""
    _load_built_in()
    return sorted(_FACTORIES)


def check_name(name: str) -> None:
    """Raise a `UserError` with the nearest right name for one that is not registered."""
    _load_built_in()
    if name not in _FACTORIES:
        raise UserError(f"unknown model {name!r}: {nearest(name, _FACTORIES)}")


def create(name: str, channels: int = 3, classes: int = 10, width: float = 1.0) -> nn.Module:
    """Build a registered architecture.

    Args:
        name: One of `names`.
        channels: Input channels, at least 1.
        classes: Output logits, at least 2.
        width: Factor on the channels inside, above zero.
    """
    check_name(name)
    if channels < 1:
        raise UserError(f"channels must be at least 1, got {channels}")
    if classes < 2:
        raise UserError(f"classes must be at least 2, got {classes}")
    if not 0 < width < float("inf"):
        raise UserError(f"width must be above zero, got {width}")
    return _FACTORIES[name](channels, classes, width)


def own_factories(names: Collection[str]) -> dict[str, Factory]:
    """Those of the named models that a user registered; worker processes are handed these."""
    _load_built_in()
    return {
        name: factory
        for name, factory in _FACTORIES.items()
        if name in names and not _built_in(factory)
    }


def _built_in(factory: Factory) -> bool:
    return factory.__module__.startswith("calmfed.models.")


def _load_built_in() -> None:
    package = importlib.import_module("calmfed.models")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"calmfed.models.{module.name}")

"""What a model sees in a sample before it decides: the input of its last linear layer."""

from collections.abc import Callable

from torch import Tensor, nn

from calmfed.errors import UserError


def classifier(model: nn.Module) -> nn.Linear:
    """The last linear layer, which makes logits of features."""
    name = _last_linear(model)
    found = model.get_submodule(name)
    assert isinstance(found, nn.Linear)  # noqa: S101 - for the type checker: looked for by type
    return found


def with_features(model: nn.Module, size: int) -> nn.Module:
    """Let a model have so many features, by a linear projection before its classifier."""
    name = _last_linear(model)
    old = classifier(model)
    new = nn.Sequential(
        nn.Linear(old.in_features, size),
        nn.Linear(size, old.out_features, bias=old.bias is not None),
    )
    if not name:
        return new
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, new)
    return model


def listen(model: nn.Module) -> tuple[list[Tensor], Callable[[], None]]:
    """Note the features of each forward pass.

    Returns:
        A list that holds those of the latest pass, [B, features], and what ends the listening.
    """
    heard: list[Tensor] = []

    def note(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        heard[:] = given

    return heard, classifier(model).register_forward_pre_hook(note).remove


def _last_linear(model: nn.Module) -> str:
    names: list[str] = [n for n, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise UserError("a model without a linear layer has no features to compare")
    return names[-1]

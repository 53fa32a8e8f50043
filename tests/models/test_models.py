"""The built-in architectures, and registering one's own."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calmfed import models
from calmfed.errors import UserError
from calmfed.models import ModelSpec, create, register_model, registry
from calmfed.models.resnet import ResidualBlock

BUILT_IN = ["cnn6", "resnet18", "resnet18_half"]


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.fixture
def _names_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    models.names()
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))


@pytest.mark.parametrize(
    ("name", "count"), [("resnet18", 11_173_962), ("resnet18_half", 2_797_610), ("cnn6", 816_202)]
)
def test_the_sizes_are_those_of_the_reference(name: str, count: int) -> None:
    with torch.device("meta"):
        assert parameters(create(name)) == count


def conv(before: int, after: int, side: int = 3) -> int:
    """A convolution without bias and the batch norm behind it."""
    return before * after * side**2 + 2 * after


@pytest.mark.parametrize("width", [0.25, 0.5, 2.0])
@pytest.mark.parametrize(("name", "base"), [("resnet18", 64), ("resnet18_half", 32)])
def test_the_size_of_a_resnet_by_hand(name: str, base: int, width: float) -> None:
    b = int(base * width)
    stages = conv(1, b) + 4 * conv(b, b)
    for before in (b, 2 * b, 4 * b):
        after = 2 * before
        stages += conv(before, after) + 3 * conv(after, after) + conv(before, after, side=1)
    with torch.device("meta"):
        assert parameters(create(name, 1, 11, width)) == stages + 11 * (8 * b + 1)


@pytest.mark.parametrize("width", [0.25, 0.5, 2.0])
def test_the_size_of_cnn6_by_hand(width: float) -> None:
    widths = [1, *(int(w * width) for w in (64, 64, 128, 128, 192, 192))]
    convs = sum(conv(before, after) for before, after in pairwise(widths))
    with torch.device("meta"):
        assert parameters(create("cnn6", 1, 11, width)) == convs + 11 * (widths[-1] + 1)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize(
    ("channels", "height", "width"),
    [(1, 8, 8), (1, 28, 28), (1, 32, 101), (1, 16, 50), (2, 16, 16), (3, 32, 32), (4, 9, 13)],
)
def test_every_shape_of_input_trains(name: str, channels: int, height: int, width: int) -> None:
    torch.manual_seed(0)
    model = create(name, channels, 5, 0.125)
    logits = model(torch.randn(2, channels, height, width))
    assert logits.shape == (2, 5)
    logits.sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    assert model.eval()(torch.randn(1, channels, height, width)).shape == (1, 5)


def test_cnn6_does_not_pool_what_is_one_wide_already() -> None:
    model = create("cnn6", 1, 5, 0.125)
    for height, width in ((1, 1), (4, 4), (2, 64)):
        assert model(torch.randn(2, 1, height, width)).shape == (2, 5)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_narrowest_widths_still_have_two_channels(name: str) -> None:
    model = create(name, 1, 2, 1e-9)
    assert model(torch.randn(3, 1, 8, 8)).shape == (3, 2)
    assert min(m.out_channels for m in model.modules() if isinstance(m, nn.Conv2d)) == 2


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_layout_in_memory_does_not_change_the_numbers(name: str) -> None:
    torch.manual_seed(0)
    model = create(name, 3, 5, 0.125).eval()
    x = torch.randn(4, 3, 16, 16)
    expected = model(x)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    found = model(x.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", BUILT_IN)
def test_in_evaluation_mode_a_sample_is_answered_by_itself(name: str) -> None:
    torch.manual_seed(0)
    model = create(name, 1, 5, 0.125)
    model(torch.randn(8, 1, 8, 8))  # moves the running statistics off their start
    model.eval()
    x = torch.randn(4, 1, 8, 8)
    torch.testing.assert_close(model(x[2:3]), model(x)[2:3], rtol=1e-4, atol=1e-5)


def test_weights_are_drawn_from_torchs_generator() -> None:
    spec = ModelSpec("cnn6", 1, 5, 0.1)
    weights = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        weights.append(torch.cat([p.flatten() for p in spec.build().parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_all_built_in_models_have_names() -> None:
    assert set(BUILT_IN) <= set(models.names())
    for name in BUILT_IN:
        models.check_name(name)


def test_an_unknown_name_is_told_with_the_nearest_right_one() -> None:
    for ask in (lambda: models.check_name("resnet-18"), lambda: create("resnet-18")):
        with pytest.raises(
            UserError, match=r"unknown model 'resnet-18': did you mean 'resnet18'\? known: .*cnn6, "
        ):
            ask()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10, 1.0), "channels must be at least 1, got 0"),
        ((3, 1, 1.0), "classes must be at least 2, got 1"),
        ((3, 10, 0.0), "width must be above zero, got 0"),
        ((3, 10, -1.0), "width must be above zero, got -1"),
        ((3, 10, float("nan")), "width must be above zero, got nan"),
        ((3, 10, float("inf")), "width must be .*, got inf"),
    ],
)
def test_arguments_that_make_no_model_are_named(
    arguments: tuple[int, int, float], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        create("cnn6", *arguments)


class Flat(nn.Module):
    """A user's own model."""

    def __init__(self, channels: int, classes: int, width: float) -> None:
        super().__init__()
        self.arguments = (channels, classes, width)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(x.mean(dim=(2, 3)))
        return answer


@pytest.mark.usefixtures("_names_restored")
def test_ones_own_model_is_registered_and_built_by_name() -> None:
    assert register_model("flat")(Flat) is Flat
    assert "flat" in models.names()
    model = ModelSpec("flat", 2, 7, 0.5).build()
    assert isinstance(model, Flat)
    assert model.arguments == (2, 7, 0.5)
    assert registry.own_factories(["flat", "cnn6"]) == {"flat": Flat}
    assert registry.own_factories(["cnn6"]) == {}


@pytest.mark.usefixtures("_names_restored")
def test_a_name_can_be_registered_again_by_its_owner_alone() -> None:
    register_model("flat")(Flat)
    register_model("flat")(Flat)  # a module that is loaded again

    def other(channels: int, classes: int, width: float) -> nn.Module:
        return Flat(channels, classes, width)

    with pytest.raises(UserError, match=r"there is a model 'flat' already: .*\.Flat"):
        register_model("flat")(other)
    assert isinstance(create("flat"), Flat)


@pytest.mark.usefixtures("_names_restored")
def test_a_built_in_name_cannot_be_taken_even_by_a_function_of_the_same_name() -> None:
    def cnn6(channels: int, classes: int, width: float) -> nn.Module:
        return Flat(channels, classes, width)

    cnn6.__qualname__ = "cnn6"
    with pytest.raises(UserError, match=r"'cnn6' already: calmfed\.models\.cnn\.cnn6"):
        register_model("cnn6")(cnn6)
    assert not isinstance(create("cnn6"), Flat)


def normed(x: Tensor, held: dict[str, Tensor], name: str) -> Tensor:
    """A batch norm in evaluation mode, by its formula."""
    mean, variance, weight, bias = (
        held[f"{name}.{part}"][:, None, None]
        for part in ("running_mean", "running_var", "weight", "bias")
    )
    return (x - mean) / (variance + 1e-5).sqrt() * weight + bias


def test_cnn6_written_out() -> None:
    """Convolution, norm and ReLU six times, halved after each pair, averaged, linear."""
    model = create("cnn6", channels=1, classes=3, width=0.1).eval()
    held = model.state_dict()
    x = torch.arange(2 * 64.0).reshape(2, 1, 8, 8).sin()
    out = x
    for i in range(6):
        out = F.conv2d(out, held[f"convs.{i}.weight"], padding=1)
        out = normed(out, held, f"norms.{i}").clamp_min(0)
        out = F.max_pool2d(out, 2) if i % 2 else out
    out = out.mean(dim=(2, 3)) @ held["head.weight"].T + held["head.bias"]
    torch.testing.assert_close(model(x), out)


def test_a_residual_block_written_out() -> None:
    block = ResidualBlock(2, 4, stride=2).eval()
    held = block.state_dict()

    x = torch.arange(128.0).reshape(1, 2, 8, 8).cos()
    out = normed(F.conv2d(x, held["conv1.weight"], stride=2, padding=1), held, "norm1").clamp_min(0)
    out = normed(F.conv2d(out, held["conv2.weight"], padding=1), held, "norm2")
    out = out + normed(F.conv2d(x, held["shortcut.0.weight"], stride=2), held, "shortcut.1")
    torch.testing.assert_close(block(x), out.clamp_min(0))

"""ResNet-18 with the stem for small images, at two widths (He et al. 2016)."""

from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

from calmfed.models.registry import register_model
from calmfed.models.widths import scaled


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; the first may halve the map."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        """[B, before, H, W] to [B, after, H / stride, W / stride]."""
        out = F.relu(self.norm1(self.conv1(x)), inplace=True)
        out = self.norm2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out, inplace=True)


class ResNet18(nn.Module):
    """Four stages of two residual blocks behind a 3x3 stem."""

    def __init__(self, channels: int, classes: int, base: int) -> None:
        super().__init__()
        widths = (base, 2 * base, 4 * base, 8 * base)
        self.stem = nn.Conv2d(channels, base, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(base)
        stages: list[nn.Module] = []
        before = base
        for i, after in enumerate(widths):
            stages += [
                ResidualBlock(before, after, stride=1 if i == 0 else 2),
                ResidualBlock(after, after, stride=1),
            ]
            before = after
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[B, channels, H, W] to logits [B, classes]."""
        out = F.relu(self.norm(self.stem(x)), inplace=True)
        out = self.stages(out).mean(dim=(2, 3))
        return cast(Tensor, self.head(out))


@register_model("resnet18")
def resnet18(channels: int, classes: int, width: float) -> ResNet18:
    """ResNet-18, 64 channels at the stem: 11,173,962 parameters at 3 channels and 10 classes."""
    return ResNet18(channels, classes, scaled(64, width))


@register_model("resnet18_half")
def resnet18_half(channels: int, classes: int, width: float) -> ResNet18:
    """ResNet-18 at half the width, 2,797,610 parameters at 3 channels and 10 classes."""
    return ResNet18(channels, classes, scaled(32, width))

"""CNN-6: six plain convolutions, the smallest of the three models."""

from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

from calmfed.models.registry import register_model
from calmfed.models.widths import scaled


class CNN6(nn.Module):
    """Six 3x3 convolutions with batch norm, a max pool after each pair, mean pool, linear."""

    def __init__(self, channels: int, classes: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        befores = (channels, *widths[:-1])
        self.convs = nn.ModuleList(
            nn.Conv2d(before, after, 3, padding=1, bias=False)
            for before, after in zip(befores, widths, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(after) for after in widths)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        """[B, channels, H, W] to logits [B, classes]."""
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = F.relu(norm(conv(x)), inplace=True)
            if i % 2 == 1 and min(x.shape[2:]) > 1:  # a map that is 1 wide has nothing to pool
                x = F.max_pool2d(x, 2)
        return cast(Tensor, self.head(x.mean(dim=(2, 3))))


@register_model("cnn6")
def cnn6(channels: int, classes: int, width: float) -> CNN6:
    """CNN-6: 816,202 parameters at 3 channels and 10 classes."""
    return CNN6(channels, classes, tuple(scaled(w, width) for w in (64, 64, 128, 128, 192, 192)))

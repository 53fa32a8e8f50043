"""The samples a host holds, and the order and guise in which a lesson shows them."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calmfed.data.dataset import Images
from calmfed.errors import UserError, nearest

AUGMENTATIONS = ("none", "crop", "crop_flip")


@dataclass(frozen=True)
class Normalisation:
    """Per-channel constants that bring samples to mean zero and deviation one.

    All clients must share them; in a fleet they are agreed on, in the simulator they are measured
    on the training samples of the federation.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def of(cls, images: Images) -> "Normalisation":
        """Measure the constants of images [n, channels, height, width].

        Float64, some samples at a time, so that no second copy of the data set is made. A channel
        that never changes is only shifted.
        """
        parts = [images[i : i + 1024] for i in range(0, len(images), 1024)]
        count = images.size / images.shape[1]
        mean = sum(part.sum(axis=(0, 2, 3), dtype=np.float64) for part in parts) / count
        squares = sum(np.square(part - mean[:, None, None]).sum(axis=(0, 2, 3)) for part in parts)
        deviation = np.sqrt(squares / count)
        return cls(tuple(mean.tolist()), tuple(np.where(deviation > 0, deviation, 1.0).tolist()))

    def __call__(self, images: Images) -> Tensor:
        """Images [n, C, H, W] as a normalised float32 tensor, channels last in memory."""
        mean = np.asarray(self.mean, np.float32)
        deviation = np.asarray(self.deviation, np.float32)
        last = np.ascontiguousarray(np.moveaxis(images, 1, -1), np.float32)
        return torch.from_numpy((last - mean) / deviation).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Samples:
    """Labelled samples of one client, ready for a model.

    Attributes:
        x: [n, C, H, W] float32, channels last in memory.
        y: [n] int64.
        classes: How many classes there are in the federation, held here or not.
    """

    x: Tensor
    y: Tensor
    classes: int

    def __len__(self) -> int:
        return len(self.y)

    def log_frequencies(self) -> Tensor:
        """Logarithms of the class frequencies with add-half smoothing, [classes].

        ``log((n_c + 1/2) / (n + C/2))``: finite for classes that are absent.
        """
        counts = torch.bincount(self.y, minlength=self.classes).double()
        return ((counts + 0.5) / (len(self) + 0.5 * self.classes)).log().float()


@dataclass(frozen=True)
class View:
    """A training stream: which sample comes when, and how it is turned.

    Attributes:
        order: Indices into the samples, [epochs * n], one shuffled pass after the other.
        shifts: Down and right shift of each shown sample, [epochs * n, 2]; None without crops.
        flips: Whether each shown sample is mirrored, [epochs * n]; None without flips.
        epoch: Length of one pass, n.
    """

    order: NDArray[np.int64]
    shifts: NDArray[np.int64] | None
    flips: NDArray[np.bool_] | None
    epoch: int

    def __len__(self) -> int:
        return len(self.order)

    @property
    def augmented(self) -> bool:
        """Whether a sample looks different each time it is shown."""
        return self.shifts is not None or self.flips is not None

    def show(self, x: Tensor, span: slice) -> Tensor:
        """The samples of a span of the stream, [span, C, H, W], channels last in memory."""
        chosen = torch.from_numpy(self.order[span])
        last = x.permute(0, 2, 3, 1)
        if self.shifts is None:
            shown = last[chosen]
        else:
            shown = _shifted(last, chosen, torch.from_numpy(self.shifts[span]))
        if self.flips is not None:
            flips = torch.from_numpy(self.flips[span])
            shown = torch.where(flips[:, None, None, None], shown.flip(2), shown)
        return shown.permute(0, 3, 1, 2)

    def batches(self, size: int) -> list[slice]:
        """Cut the stream into batches; none crosses the end of a pass.

        A trailing batch of one sample joins the one before, because batch norm cannot train on
        a single sample.
        """
        spans = []
        for start in range(0, len(self), self.epoch):
            end = start + self.epoch
            cuts = list(range(start, end, size))
            if len(cuts) > 1 and end - cuts[-1] == 1:
                cuts.pop()
            spans += [slice(a, b) for a, b in zip(cuts, [*cuts[1:], end], strict=True)]
        return spans


def check_augmentation(name: str) -> None:
    """Raise a `UserError` for an augmentation that does not exist."""
    if name not in AUGMENTATIONS:
        raise UserError(f"unknown augmentation {name!r}: {nearest(name, AUGMENTATIONS)}")


def lay_out(
    n: int, epochs: int, augment: str, size: tuple[int, int], rng: np.random.Generator
) -> View:
    """Lay out a training stream of ``epochs`` shuffled passes over ``n`` samples.

    Args:
        n: Samples a pass.
        epochs: Passes.
        augment: ``"none"``, ``"crop"`` (shifted by up to an eighth of each side, the edge filled
            with zeros, which is the mean) or ``"crop_flip"`` (also mirrored every other time).
        size: Height and width of a sample.
        rng: Where the draw comes from.
    """
    check_augmentation(augment)
    order = np.concatenate([rng.permutation(n) for _ in range(epochs)])
    shifts = flips = None
    if augment in ("crop", "crop_flip"):
        reach = [max(1, side // 8) for side in size]
        shifts = np.stack([rng.integers(-r, r + 1, epochs * n) for r in reach], axis=1)
    if augment == "crop_flip":
        flips = rng.random(epochs * n) < 0.5
    return View(order, shifts, flips, n)


def _shifted(last: Tensor, chosen: Tensor, shifts: Tensor) -> Tensor:
    """Pick samples from [n, H, W, C] and move each by its own (down, right), filling with zero."""
    height, width = last.shape[1:3]
    rows = torch.arange(height) - shifts[:, :1]  # [B, H]: the row that lands here
    columns = torch.arange(width) - shifts[:, 1:]
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[
        :, None, :
    ]
    picked = last[
        chosen[:, None, None],
        rows.clamp(0, height - 1)[:, :, None],
        columns.clamp(0, width - 1)[:, None, :],
    ]
    return picked * inside[..., None]

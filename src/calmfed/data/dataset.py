"""What a data set is to the rest of the house."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calmfed.errors import DataError

Images = NDArray[np.uint8] | NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """A labelled training and test set, and perhaps unlabelled public samples.

    Attributes:
        name: What reports call it.
        train_x: Training samples, [n, channels, height, width], uint8 or float32.
        train_y: Their labels 0..classes-1, [n] int64.
        test_x: Test samples, shaped and typed like ``train_x``.
        test_y: Their labels.
        labels: The classes by name.
        public_x: Unlabelled samples outside both, for the methods that need a public set.
    """

    name: str
    train_x: Images
    train_y: Labels
    test_x: Images
    test_y: Labels
    labels: tuple[str, ...]
    public_x: Images | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together, naming the one that is wrong."""
        for part in ("train", "test"):
            _check_part(self.name, part, *self.part(part), classes=self.classes)
        parts = {"test_x": self.test_x}
        if self.public_x is not None:
            parts["public_x"] = self.public_x
        for key, x in parts.items():
            if x.dtype != self.train_x.dtype or x.shape[1:] != self.train_x.shape[1:]:
                raise DataError(
                    f"{self.name}: {key} is {x.dtype} {list(x.shape[1:])} a sample, but train_x is "
                    f"{self.train_x.dtype} {list(self.train_x.shape[1:])}"
                )

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a sample."""
        channels, height, width = self.train_x.shape[1:]
        return channels, height, width

    def part(self, name: str) -> tuple[Images, Labels]:
        """The samples and labels of ``"train"`` or ``"test"``."""
        return (self.train_x, self.train_y) if name == "train" else (self.test_x, self.test_y)


def _check_part(name: str, part: str, x: Images, y: Labels, classes: int) -> None:
    if x.ndim != 4 or x.dtype not in (np.uint8, np.float32):
        raise DataError(
            f"{name}: {part}_x must be uint8 or float32 [n, channels, height, width], "
            f"got {x.dtype} {list(x.shape)}"
        )
    if y.ndim != 1 or y.dtype != np.int64:
        raise DataError(
            f"{name}: {part}_y must be one int64 label a sample, got {y.dtype} {list(y.shape)}"
        )
    if len(y) != len(x):
        raise DataError(f"{name}: {part}_x holds {len(x)} samples, but {part}_y {len(y)} labels")
    if x.size == 0:
        raise DataError(f"{name}: {part}_x holds no samples, or empty ones: {list(x.shape)}")
    if y.min() < 0 or y.max() >= classes:
        raise DataError(f"{name}: {part}_y must lie in 0..{classes - 1}, got {y.min()}..{y.max()}")
    if x.dtype == np.float32 and not np.isfinite(x).all():
        raise DataError(f"{name}: {part}_x holds values that are not finite")

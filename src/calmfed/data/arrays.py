"""Anybody's own arrays as a data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calmfed.data.dataset import Dataset, Images, Labels
from calmfed.errors import DataError

CHANNELS = (1, 3, 4)
"""How many channels an axis may have to be taken for the channel axis."""

MAX_CLASSES = 65_536
"""Unnamed classes beyond this are taken for labels that were never 0..C-1."""


def from_arrays(
    train_x: NDArray[Any],
    train_y: NDArray[Any],
    test_x: NDArray[Any],
    test_y: NDArray[Any],
    *,
    labels: Sequence[str] | None = None,
    public_x: NDArray[Any] | None = None,
    layout: str | None = None,
    name: str = "arrays",
) -> Dataset:
    """Make a data set of arrays in any of the usual layouts.

    Args:
        train_x: Training samples [n, h, w], [n, h, w, c] or [n, c, h, w]. uint8 stays, floats
            become float32, other whole numbers become uint8 if they lie in 0..255.
        train_y: Their labels 0..C-1 as whole numbers, [n] or [n, 1].
        test_x: Test samples, laid out like the training samples.
        test_y: Their labels.
        labels: The classes' names; their numbers by default.
        public_x: Unlabelled samples, laid out alike.
        layout: ``NHW``, ``NHWC`` or ``NCHW``. By default three axes are NHW, and of four the
            last or the second is the channel axis, whichever alone has length 1, 3 or 4.
        name: What reports and errors call the data set.

    Raises:
        DataError: If an array cannot be used; it says which and why.

    >>> import numpy as np
    >>> x, y = np.zeros((6, 8, 8, 3), np.uint8), np.arange(6) % 2
    >>> from_arrays(x, y, x, y, labels=["cat", "dog"]).shape
    (3, 8, 8)
    """
    held = {"train_x": train_x, "test_x": test_x}
    if public_x is not None:
        held["public_x"] = public_x
    chosen = layout or _layout(np.asarray(train_x).shape, f"{name}: train_x")
    samples = {key: _samples(np.asarray(x), chosen, f"{name}: {key}") for key, x in held.items()}
    answers = {
        key: _answers(np.asarray(y), f"{name}: {key}")
        for key, y in (("train_y", train_y), ("test_y", test_y))
    }
    classes = 1 + max((int(y.max()) for y in answers.values() if len(y)), default=0)
    return Dataset(
        name=name,
        train_x=samples["train_x"],
        train_y=answers["train_y"],
        test_x=samples["test_x"],
        test_y=answers["test_y"],
        labels=_names(labels, classes, name),
        public_x=samples.get("public_x"),
    )


def _layout(shape: tuple[int, ...], where: str) -> str:
    """Tell from a shape which axis is what."""
    if len(shape) == 3:
        return "NHW"
    if len(shape) != 4:
        raise DataError(
            f"{where} should be [n, h, w], [n, h, w, c] or [n, c, h, w], but is {list(shape)}"
        )
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if first == last:
        both = "both of these have" if first else "neither of these has"
        raise DataError(
            f"{where} is {list(shape)}, and its channels could not be told from its shape (the "
            f"second or the last axis should be 1, 3 or 4, and {both} such a length): "
            "say which it is, NHWC or NCHW, as layout= or as the text array `layout` of an npz"
        )
    return "NCHW" if first else "NHWC"


def _samples(x: NDArray[Any], layout: str, where: str) -> Images:
    """Lay samples out as [n, c, h, w] and make them uint8 or float32."""
    if layout not in ("NHW", "NHWC", "NCHW"):
        raise DataError(f"{where}: a layout is NHW, NHWC or NCHW, not {layout!r}")
    if x.ndim != len(layout):
        raise DataError(f"{where} should be {layout}, as the layout is, but is {list(x.shape)}")
    if layout == "NHW":
        x = x[:, None]
    elif layout == "NHWC":
        x = x.transpose(0, 3, 1, 2)
    if x.dtype.kind == "f":
        # A value too large for float32 becomes infinite, which the data set refuses by name.
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(x, dtype=np.float32)
    if x.dtype.kind not in "ui":
        raise DataError(f"{where} should be uint8 or float, but is {x.dtype}")
    if x.size and (x.min() < 0 or x.max() > 255):
        raise DataError(
            f"{where} holds whole numbers {x.min()}..{x.max()}, beyond 0..255: "
            "save it as uint8 or float32"
        )
    return np.ascontiguousarray(x, dtype=np.uint8)


def _answers(y: NDArray[Any], where: str) -> Labels:
    """Make labels [n] of int64."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        hint = "; of one-hot rows take argmax(axis=1)" if y.ndim == 2 else ""
        raise DataError(
            f"{where} should be one label a sample, [n] or [n, 1], but is {list(y.shape)}{hint}"
        )
    if y.dtype.kind not in "uifb":
        raise DataError(f"{where} should be whole numbers 0..C-1, but is {y.dtype}")
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.floor(y))).all():
        raise DataError(f"{where} should be whole numbers 0..C-1, but holds fractions or NaN")
    if len(y) and y.min() < 0:
        raise DataError(f"{where} should be 0..C-1, but holds {y.min()}")
    if len(y) and y.max() >= MAX_CLASSES:
        raise DataError(f"{where} should be 0..C-1, but holds {y.max()}: number the classes anew")
    return y.astype(np.int64)


def _names(labels: Sequence[str] | None, classes: int, name: str) -> tuple[str, ...]:
    if labels is None:
        return tuple(str(number) for number in range(classes))
    if len(labels) < classes:
        raise DataError(
            f"{name}: labels names {len(labels)} of the classes, but labels up to {classes - 1} "
            f"occur: name at least {classes}"
        )
    return tuple(str(label) for label in labels)

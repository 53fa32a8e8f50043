"""OrganAMNIST and PathMNIST in 28 x 28, from the publisher's npz files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calmfed.data.dataset import Dataset
from calmfed.data.reading import read_npz
from calmfed.data.registry import register_dataset
from calmfed.data.source import PUBLIC_SAMPLES, File, Source, spread
from calmfed.errors import DataError


def _file(name: str, md5: str, size: int) -> File:
    url = f"https://zenodo.org/records/10519652/files/{name}?download=1"
    return File(name, url, f"md5:{md5}", size)


ORGAN = _file("organamnist.npz", "68e3f8846a6bd62f0c9bf841c0d9eacc", 38_000_000)
PATH = _file("pathmnist.npz", "a8b06965200029087d5bd730944a56c1", 206_000_000)

GREY = (0.299, 0.587, 0.114)
"""What red, green and blue weigh in a grey level (ITU-R BT.601)."""


@register_dataset("organamnist")
class OrganAMnist(Source):
    """34,561 and 17,778 slices of organs; the 6,491 validation slices are not used."""

    summary = "OrganAMNIST: 28x28 grey CT slices of eleven organs"
    files = (ORGAN,)
    public_files = (PATH,)
    public = f"{PUBLIC_SAMPLES:,} of PathMNIST's training images, in grey"
    classes = 11
    shape = (1, 28, 28)
    labels = (
        "bladder",
        "femur-left",
        "femur-right",
        "heart",
        "kidney-left",
        "kidney-right",
        "liver",
        "lung-left",
        "lung-right",
        "pancreas",
        "spleen",
    )

    def load(self, folder: Path, public: bool) -> Dataset:
        """Read the training and the test part."""
        public_x = None
        if public:
            path = folder / PATH.name
            rgb = images(path, read_npz(path, ["train_images"])["train_images"], channels=3)
            public_x = grey(rgb[spread(len(rgb), PUBLIC_SAMPLES)])
        return read(folder / ORGAN.name, self.name, self.labels, channels=1, public_x=public_x)


@register_dataset("pathmnist")
class PathMnist(Source):
    """89,996 and 7,180 patches of tissue; the 10,004 validation patches are not used."""

    summary = "PathMNIST: 28x28 colour patches of nine kinds of colon tissue"
    files = (PATH,)
    classes = 9
    shape = (3, 28, 28)
    labels = (
        "adipose",
        "background",
        "debris",
        "lymphocytes",
        "mucus",
        "smooth muscle",
        "normal colon mucosa",
        "cancer-associated stroma",
        "colorectal adenocarcinoma epithelium",
    )

    def load(self, folder: Path, public: bool) -> Dataset:
        """Read the training and the test part."""
        return read(folder / PATH.name, self.name, self.labels, channels=3, public_x=None)


def read(
    path: Path,
    name: str,
    labels: tuple[str, ...],
    *,
    channels: int,
    public_x: NDArray[np.uint8] | None,
) -> Dataset:
    """Both parts of one file as a data set."""
    held = read_npz(path, ["train_images", "train_labels", "test_images", "test_labels"])
    parts: dict[str, tuple[NDArray[np.uint8], NDArray[np.int64]]] = {}
    for part in ("train", "test"):
        x = images(path, held[f"{part}_images"], channels)
        y = held[f"{part}_labels"]
        if y.shape != (len(x), 1) or y.dtype.kind not in "ui":
            raise DataError(
                f"{path}: {part}_labels should be whole numbers [{len(x)}, 1], "
                f"but is {y.dtype} {list(y.shape)}"
            )
        if len(y) == 0 or y.min() < 0 or y.max() >= len(labels):
            raise DataError(f"{path}: {part}_labels should lie in 0..{len(labels) - 1}")
        parts[part] = x, y[:, 0].astype(np.int64)
    return Dataset(name, *parts["train"], *parts["test"], labels=labels, public_x=public_x)


def images(path: Path, x: NDArray[Any], channels: int) -> NDArray[np.uint8]:
    """From [n, 28, 28] or [n, 28, 28, 3] to [n, channels, 28, 28]."""
    sample = (28, 28) if channels == 1 else (28, 28, channels)
    if x.dtype != np.uint8 or x.shape[1:] != sample:
        raise DataError(
            f"{path}: images should be uint8 {['n', *sample]}, but are {x.dtype} {list(x.shape)}"
        )
    return np.ascontiguousarray(x.reshape(-1, 28, 28, channels).transpose(0, 3, 1, 2))


def grey(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """From colour [n, 3, h, w] to grey [n, 1, h, w], rounded to the nearest level."""
    level = np.tensordot(rgb, np.array(GREY), axes=([1], [0]))
    return np.rint(level).astype(np.uint8)[:, None]

"""CIFAR-10 and CIFAR-100, from their binary version: records of label bytes and 3,072 pixels."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calmfed.data.dataset import Dataset
from calmfed.data.reading import read_tar
from calmfed.data.registry import register_dataset
from calmfed.data.source import PUBLIC_SAMPLES, File, Source, spread
from calmfed.errors import DataError

CIFAR10 = File(
    "cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "md5:c32a1d4ab5d03f1284b67883e8d87530",
    170_000_000,
)
CIFAR100 = File(
    "cifar-100-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    "md5:03b5dce01913d631647c71ecec9e9cb8",
    169_000_000,
)
PIXELS = 3 * 32 * 32


@register_dataset("cifar10")
class Cifar10(Source):
    """50,000 and 10,000 photographs in ten classes; CIFAR-100's training images are public."""

    summary = "CIFAR-10: 32x32 colour photographs of ten kinds of things"
    files = (CIFAR10,)
    public_files = (CIFAR100,)
    public = f"{PUBLIC_SAMPLES:,} of CIFAR-100's training images"
    classes = 10
    shape = (3, 32, 32)
    FOLDER: ClassVar[str] = "cifar-10-batches-bin"

    def load(self, folder: Path, public: bool) -> Dataset:
        """Read the six batches."""
        path = folder / CIFAR10.name
        batches = [f"{self.FOLDER}/data_batch_{number}.bin" for number in range(1, 6)]
        test = f"{self.FOLDER}/test_batch.bin"
        names = f"{self.FOLDER}/batches.meta.txt"
        held = read_tar(path, [*batches, test, names])
        parts = [records(held[batch], f"{path}: {batch}", limits=(10,)) for batch in batches]
        test_x, test_y = records(held[test], f"{path}: {test}", limits=(10,))
        return Dataset(
            name=self.name,
            train_x=np.concatenate([x for x, _ in parts]),
            train_y=np.concatenate([y for _, y in parts]),
            test_x=test_x,
            test_y=test_y,
            labels=label_names(held[names], f"{path}: {names}", 10),
            public_x=public_images(folder / CIFAR100.name) if public else None,
        )


@register_dataset("cifar100")
class Cifar100(Source):
    """50,000 and 10,000 photographs in a hundred classes; the twenty coarse ones are not used."""

    summary = "CIFAR-100: 32x32 colour photographs of a hundred kinds of things"
    files = (CIFAR100,)
    classes = 100
    shape = (3, 32, 32)

    def load(self, folder: Path, public: bool) -> Dataset:
        """Read both parts, with the fine labels."""
        path = folder / CIFAR100.name
        train, test, names = (
            f"cifar-100-binary/{name}" for name in ("train.bin", "test.bin", "fine_label_names.txt")
        )
        held = read_tar(path, [train, test, names])
        train_x, train_y = records(held[train], f"{path}: {train}", limits=(20, 100))
        test_x, test_y = records(held[test], f"{path}: {test}", limits=(20, 100))
        return Dataset(
            name=self.name,
            train_x=train_x,
            train_y=train_y,
            test_x=test_x,
            test_y=test_y,
            labels=label_names(held[names], f"{path}: {names}", 100),
        )


def public_images(path: Path) -> NDArray[np.uint8]:
    """CIFAR-100's training images without their labels, evenly thinned out."""
    train = "cifar-100-binary/train.bin"
    x, _ = records(read_tar(path, [train])[train], f"{path}: {train}", limits=(20, 100))
    return x[spread(len(x), PUBLIC_SAMPLES)]


def records(
    data: bytes, where: str, limits: tuple[int, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Take one binary batch apart.

    Args:
        data: The batch: records of one byte a label, then red, green and blue planes row by row.
        where: What an error names.
        limits: For each label byte of a record, how many classes it may name.

    Returns:
        Images [n, 3, 32, 32] and the last label byte of each [n].
    """
    length = len(limits) + PIXELS
    if not data or len(data) % length:
        raise DataError(f"{where} should hold records of {length} bytes, but has {len(data)} bytes")
    table = np.frombuffer(data, dtype=np.uint8).reshape(-1, length)
    for column, limit in enumerate(limits):
        if table[:, column].max() >= limit:
            raise DataError(
                f"{where} has a label {table[:, column].max()}, but there are {limit} classes"
            )
    images = table[:, len(limits) :].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(images), table[:, len(limits) - 1].astype(np.int64)


def label_names(data: bytes, where: str, classes: int) -> tuple[str, ...]:
    """The classes' names, one a line; the publisher's files end in empty lines."""
    names = tuple(data.decode("utf-8", errors="replace").split())
    if len(names) != classes:
        raise DataError(f"{where} should name {classes} classes, but names {len(names)}")
    return names

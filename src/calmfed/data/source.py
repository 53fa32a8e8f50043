"""What a data set's own file tells the rest: where it comes from and how it is read."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calmfed.data.dataset import Dataset

PUBLIC_SAMPLES = 5_000
"""How many public samples are used where there are more."""


@dataclass(frozen=True)
class File:
    """One file as its publisher offers it.

    Attributes:
        name: Its name in the cache folder.
        url: Where it is downloaded from.
        checksum: Algorithm and hex digest, as ``md5:0123...``.
        size: About how many bytes it has.
    """

    name: str
    url: str
    checksum: str
    size: int


class Source(ABC):
    """A data set that can be had by name. A subclass in ``calmfed.data.sources`` is all it takes.

    Attributes:
        name: The name it is registered under, with its argument where it takes one.
        summary: One line for the list.
        files: What has to be in the folder before ``load`` is called; may be empty.
        public_files: What ``load`` needs besides when the public set is wanted.
        public: What the public set is, or None where there is none.
        classes: How many classes, or None where only the data tell.
        shape: Channels, height and width, or None where only the data tell.
        argument: What follows the name and a colon, as ``PATH`` in ``npz:PATH``; such a class is
            constructed with that text.
    """

    name: str = ""
    summary: ClassVar[str]
    files: ClassVar[tuple[File, ...]] = ()
    public_files: ClassVar[tuple[File, ...]] = ()
    public: ClassVar[str | None] = None
    classes: ClassVar[int | None] = None
    shape: ClassVar[tuple[int, int, int] | None] = None
    argument: ClassVar[str | None] = None

    @abstractmethod
    def load(self, folder: Path, public: bool) -> Dataset:
        """Read the files in the folder; they are there and their checksums were right.

        Args:
            folder: Where ``files`` are, and ``public_files`` if the public set is wanted.
            public: Whether ``public_x`` is wanted; asked for only where ``has_public()``.
        """

    def prepare(self, folder: Path) -> None:  # noqa: B027 - most have nothing to prepare
        """Make what each load would otherwise make; the files are there."""

    def has_public(self) -> bool:
        """Whether there is a public set."""
        return self.public is not None

    def require(self, folder: Path) -> None:  # noqa: B027 - most have nothing to require
        """Raise a `DataError` if what no download can bring is missing."""

    def where(self, folder: Path) -> str:
        """Say where the data lie."""
        return str(folder)


def spread(count: int, wanted: int) -> NDArray[np.int64]:
    """Choose ``wanted`` of ``count`` positions, evenly spread from the first on.

    Publishers put what belongs together side by side, so the first ones would be a one-sided
    choice; and no random generator means the same choice under every version of NumPy.

    Returns:
        Rising indices, all of them where ``wanted`` is not below ``count``.

    >>> spread(10, 4).tolist()
    [0, 2, 5, 7]
    """
    wanted = min(count, wanted)
    return np.arange(wanted, dtype=np.int64) * count // max(wanted, 1)

"""What can be said of the data sets, as plain data for a table or JSON."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calmfed.data.download import cache_folder
from calmfed.data.registry import load, names, source
from calmfed.data.source import Source


@dataclass(frozen=True)
class Entry:
    """One line of the list of data sets; ``fetched`` is None where a name is only a pattern."""

    name: str
    summary: str
    classes: int | None
    shape: tuple[int, int, int] | None
    download_bytes: int
    fetched: bool | None
    public: str | None


@dataclass(frozen=True)
class FileState:
    """One of a data set's files, and whether it is in the folder."""

    name: str
    path: str
    url: str
    checksum: str
    size: int
    present: bool
    public: bool


@dataclass(frozen=True)
class Description:
    """One data set looked at closely; what only the data tell is None while they are not here.

    Attributes:
        name: Its name.
        summary: What it is.
        where: Where the data lie.
        public: What its public set is, or None.
        files: Its files.
        labels: The classes.
        shape: Channels, height and width.
        dtype: The samples' type.
        counts: For ``train`` and ``test``, the samples of each class.
        bytes: What the samples take in memory.
    """

    name: str
    summary: str
    where: str
    public: str | None
    files: tuple[FileState, ...]
    labels: tuple[str, ...] = ()
    shape: tuple[int, int, int] | None = None
    dtype: str | None = None
    counts: dict[str, tuple[int, ...]] | None = None
    bytes: int | None = None


def overview(folder: str | Path | None = None) -> list[Entry]:
    """All data sets, one line each; nothing is read."""
    root = cache_folder(folder)
    entries = []
    for name in names():
        item = source(name)
        entries.append(
            Entry(
                name=name,
                summary=item.summary,
                classes=item.classes,
                shape=item.shape,
                download_bytes=sum(file.size for file in item.files),
                fetched=None if item.argument else _fetched(item, root),
                public=item.public,
            )
        )
    return entries


def describe(name: str, *, folder: str | Path | None = None) -> Description:
    """Look at one data set; what is not there yet is not downloaded for it."""
    item = source(name)
    root = cache_folder(folder)
    files = tuple(
        FileState(
            name=file.name,
            path=str(root / file.name),
            url=file.url,
            checksum=file.checksum,
            size=file.size,
            present=(root / file.name).is_file(),
            public=file in item.public_files,
        )
        for file in item.files + item.public_files
    )
    about = Description(
        name=name,
        summary=item.summary,
        where=item.where(root),
        public=item.public if item.has_public() else None,
        files=files,
        shape=item.shape,
    )
    if not _fetched(item, root):
        return about
    data = load(name, folder=root)
    return Description(
        name=name,
        summary=about.summary,
        where=about.where,
        public=about.public,
        files=files,
        labels=data.labels,
        shape=data.shape,
        dtype=str(data.train_x.dtype),
        counts={
            part: tuple(np.bincount(data.part(part)[1], minlength=data.classes).tolist())
            for part in ("train", "test")
        },
        bytes=data.train_x.nbytes + data.test_x.nbytes,
    )


def _fetched(item: Source, root: Path) -> bool:
    return all((root / file.name).is_file() for file in item.files)

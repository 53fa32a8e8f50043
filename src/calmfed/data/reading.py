"""Opening publishers' archives, with one clear error for all that can be wrong with them."""

import contextlib
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calmfed.errors import DataError, UserError

# What the standard library, NumPy and SciPy were seen to raise on damaged files.
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    AttributeError,
    SyntaxError,
    struct.error,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise into a ``DataError`` that names it."""
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path} is not there") from error
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{path} cannot be read: it is damaged or not what its name says ({reason[:120]})"
        ) from error


def members(
    path: Path, read: Callable[[int], None] = lambda count: None
) -> Iterator[tuple[str, tarfile.TarFile, tarfile.TarInfo]]:
    """The plain files of a tar.gz, in one pass from front to back.

    Args:
        path: The archive.
        read: Called after each file with how many of the archive's bytes were read so far.

    Yields:
        Each one's name without a leading ``./``, the archive, and its entry there.
    """
    with (
        reading(path),
        path.open("rb") as packed,
        tarfile.open(fileobj=packed, mode="r:gz") as archive,
    ):
        for member in archive:
            if member.isreg():
                yield member.name.removeprefix("./"), archive, member
            read(packed.tell())


def read_tar(path: Path, wanted: Collection[str]) -> dict[str, bytes]:
    """The wanted files of a tar.gz as bytes.

    Raises:
        DataError: If the archive is damaged, or holds not all of them.
    """
    found: dict[str, bytes] = {}
    for name, archive, member in members(path):
        if name in wanted:
            found[name] = content(path, archive, member)
            if len(found) == len(wanted):
                break
    missing = [name for name in wanted if name not in found]
    if missing:
        raise DataError(f"{path} holds no {missing[0]}")
    return found


def content(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """One file of a tar.gz, or an error where it ends too early."""
    with reading(path):
        stream = archive.extractfile(member)
        data = b"" if stream is None else stream.read()
    if len(data) != member.size:
        raise DataError(f"{path} ends in the middle of {member.name}")
    return data


def npz_keys(path: Path) -> list[str]:
    """The keys of an npz."""
    with _npz(path) as archive:
        return list(archive.files)


def read_npz(
    path: Path, required: Collection[str], optional: Collection[str] = ()
) -> dict[str, NDArray[Any]]:
    """Arrays of an npz by key; pickled objects are refused.

    Raises:
        DataError: If the file is damaged, or a required key is missing.
    """
    with _npz(path) as archive:
        missing = [key for key in required if key not in archive.files]
        if missing:
            there = ", ".join(archive.files) or "nothing"
            raise DataError(f"{path} has no {', '.join(missing)}; it holds {there}")
        keys = [*required, *(key for key in optional if key in archive.files)]
        arrays = {key: archive[key] for key in keys}
    for key, array in arrays.items():
        # A member that is not in NumPy's format comes back as bytes.
        if not isinstance(array, np.ndarray):
            raise DataError(f"{path}: {key} is not an array")
    return arrays


@contextlib.contextmanager
def _npz(path: Path) -> Iterator[Any]:
    with reading(path):
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise DataError(f"{path} holds a single array, not an npz of several")
        with archive:
            yield archive

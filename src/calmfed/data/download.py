"""Publishers' files: into the cache folder, checked, and never half."""

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from calmfed.data.source import File
from calmfed.errors import DataError
from calmfed.progress import Progress

BLOCK = 1 << 18
"""Bytes asked for at a time: small enough for a smooth bar, large enough to cost nothing."""

LONG = 1 << 28
"""Bytes beyond which the checking of a file shows how far it is."""


def cache_folder(folder: str | Path | None = None) -> Path:
    """The folder for publishers' files: this one, else ``CALMFED_DATA``, else the user's cache."""
    chosen = folder or os.environ.get("CALMFED_DATA")
    if chosen:
        return Path(chosen).expanduser().resolve()
    import pooch

    return Path(pooch.os_cache("calmfed"))


def ensure(file: File, folder: Path) -> Path:
    """Have a file in the folder with the right checksum, downloading it if it is not there.

    Raises:
        DataError: If it cannot be downloaded, or what is there is not it.
    """
    path = folder / file.name
    if not path.exists():
        _download(file, path)
        return path
    expected, found = file.checksum, _checksum(path, file)
    if found != expected:
        raise DataError(
            f"{path} is not the published file: expected {expected}, found {found}; "
            f"delete it, or put the file from {file.url} in its place"
        )
    return path


def digest(path: Path, algorithm: str) -> str:
    """The hex digest of a file, remembered beside it as long as its size and time stay the same.

    Hashing gigabytes at each load would cost more than reading them. So a change that keeps both
    size and time goes unnoticed.
    """
    try:
        state = path.stat()
        key = {"size": state.st_size, "mtime_ns": state.st_mtime_ns}
        memory = path.with_name(f".{path.name}.{algorithm}.json")
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            known = json.loads(memory.read_text(encoding="utf-8"))
            if all(known[field] == value for field, value in key.items()):
                return str(known["digest"])
        found = _hash(path, algorithm)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    # A folder that cannot be written to is hashed anew each time.
    with contextlib.suppress(OSError), replacing(memory) as out:
        out.write(json.dumps({**key, "digest": found}).encode())
    return found


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that appears under its name only when it is whole.

    What is written goes to a hidden file in the same folder, removed again if anything goes wrong.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as out:
            yield out
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _download(file: File, path: Path) -> None:
    import pooch
    import requests

    # Without "identity" a server may pack an already packed file, and the checksum fails.
    try:
        with replacing(path) as out:
            with Progress(f"fetching {file.name}", unit="bytes") as progress:
                pooch.HTTPDownloader(
                    progressbar=progress, chunk_size=BLOCK, headers={"Accept-Encoding": "identity"}
                )(file.url, out, None)
            out.flush()
            algorithm = file.checksum.partition(":")[0]
            found = f"{algorithm}:{_hash(Path(out.name), algorithm)}"
            if found != file.checksum:
                raise DataError(
                    f"{file.url} did not send {file.name}: expected {file.checksum}, found {found}"
                )
    except requests.RequestException as error:
        raise DataError(
            f"{file.name} cannot be downloaded ({_reason(error)}): get it from {file.url} "
            f"and put it into {path.parent} (checksum {file.checksum})"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def _reason(error: Exception) -> str:
    """A request's failure in a few words; its own text is a paragraph of addresses."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    if isinstance(error, requests.exceptions.SSLError):
        return "the server could not prove who it is"
    return "no connection"


def _checksum(path: Path, file: File) -> str:
    algorithm = file.checksum.partition(":")[0]
    return f"{algorithm}:{digest(path, algorithm)}"


def _hash(path: Path, algorithm: str) -> str:
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    size = path.stat().st_size
    with path.open("rb") as stream, contextlib.ExitStack() as stack:
        show = None
        if size > LONG:
            title = f"checking {path.name}"
            show = stack.enter_context(Progress(title, unit="bytes", total=size))
        while block := stream.read(BLOCK):
            hasher.update(block)
            if show is not None:
                show.update(len(block))
    return hasher.hexdigest()

"""One run, one process: a directory that is being worked in is not entered twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calmfed.errors import UserError

try:
    import fcntl
except ImportError:  # not on Windows, where nothing then guards a directory
    fcntl = None  # type: ignore[assignment]

LOCK = "run.lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a directory, made if need be, until the block ends or the process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise UserError(f"{folder} cannot be used as a directory: {error.strerror}") from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"{folder} is in use by another process") from None
        yield

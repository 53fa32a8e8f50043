"""What is said to a user whose input cannot be used."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake that its user can put right: one sentence, no traceback, exit code 2."""


class DataError(UserError):
    """A data file that is missing, damaged or not what it should be; the message names it."""


class Interrupted(Exception):  # noqa: N818 - not an error: the work is kept and goes on later
    """The user stopped a run; what it had done is on disk and a later start resumes it."""


def from_system(error: OSError) -> UserError:
    """What the operating system refused, as one sentence: a full disk, a name too long."""
    where = f"{error.filename}: " if error.filename else ""
    return UserError(f"{where}{error.strerror or error}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which of the known names a wrong one probably meant.

    >>> nearest("unifrom", ["calm", "uniform"])
    "did you mean 'uniform'? known: calm, uniform"
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return f"{hint}known: {', '.join(names)}"

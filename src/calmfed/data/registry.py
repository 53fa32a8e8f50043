"""Data sets by name.

A new one is one file in ``calmfed/data/sources`` with one ``@register_dataset(name)`` in it: every
module there is found by itself, the first time that a name is asked for.
"""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from calmfed.data.dataset import Dataset
from calmfed.data.download import cache_folder, ensure
from calmfed.data.source import Source
from calmfed.errors import UserError, nearest

SourceType = TypeVar("SourceType", bound=type[Source])

_SOURCES: dict[str, type[Source]] = {}


def register_dataset(name: str) -> Callable[[SourceType], SourceType]:
    """Give a ``Source`` subclass its name.

    Args:
        name: What users write; no colon in it, for what follows a colon is the argument.

    Raises:
        ValueError: If another class has the name.
    """

    def register(kind: SourceType) -> SourceType:
        known = _SOURCES.setdefault(name, kind)
        if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
            raise ValueError(f"two data sets are called {name!r}: {known} and {kind}")
        _SOURCES[name] = kind  # the newer one of a module that was loaded again
        kind.name = name
        return kind

    return register


def names() -> tuple[str, ...]:
    """All names, sorted; one that takes an argument shows it, as ``npz:PATH``."""
    return tuple(
        f"{name}:{kind.argument}" if kind.argument else name
        for name, kind in sorted(_sources().items())
    )


def source(name: str) -> Source:
    """The data set of this name, nothing read or downloaded yet.

    Raises:
        UserError: If there is none, with the name that was probably meant.
    """
    known = _sources()
    key, colon, argument = name.partition(":")
    if key not in known:
        raise UserError(f"no data set is called {name!r}: {nearest(key, names())}")
    kind = known[key]
    if kind.argument is None:
        if colon:
            raise UserError(f"{key} takes nothing after its name, got {name!r}")
        return kind()
    if not argument:
        raise UserError(f"{key} needs to know which: write {key}:{kind.argument}")
    found: Source = kind(argument)  # type: ignore[call-arg]  # the contract of `argument`
    found.name = name
    return found


def fetch(name: str, *, folder: str | Path | None = None, public: bool = False) -> list[Path]:
    """Download what of a data set's files is missing, and check what is there.

    Args:
        name: One of ``names()``.
        folder: Where the files are kept; the cache folder by default.
        public: Whether the public set's files are wanted too.

    Returns:
        The files, in the source's order.
    """
    wanted = source(name)
    if public:
        _require_public(wanted)
    root = cache_folder(folder)
    wanted.require(root)
    files = wanted.files + (wanted.public_files if public else ())
    return [ensure(file, root) for file in files]


def prepare(name: str, *, folder: str | Path | None = None, public: bool = False) -> None:
    """Have all there is to download or compute, so that processes side by side only read it."""
    fetch(name, folder=folder, public=public)
    source(name).prepare(cache_folder(folder))


def load(name: str, *, folder: str | Path | None = None, public: bool = False) -> Dataset:
    """A data set by name, downloaded first if need be.

    Args:
        name: One of ``names()``.
        folder: Where its files are kept; the cache folder by default.
        public: Whether ``public_x`` is wanted.

    Raises:
        UserError: If there is no such data set, or no public set for it.
        DataError: If a file cannot be had, or is not what it should be.
    """
    wanted = source(name)
    fetch(name, folder=folder, public=public)
    return wanted.load(cache_folder(folder), public)


def _require_public(wanted: Source) -> None:
    if not wanted.has_public():
        raise UserError(f"{wanted.name} has no public set, so no method that needs one can use it")


def _sources() -> dict[str, type[Source]]:
    from calmfed.data import sources

    for module in pkgutil.iter_modules(sources.__path__):
        importlib.import_module(f"{sources.__name__}.{module.name}")
    return _SOURCES

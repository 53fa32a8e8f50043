"""Engines: who does the tasks of a round, in one process or in several, with the same results."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from calmfed.config import Config
from calmfed.errors import UserError
from calmfed.models import register_model
from calmfed.models.registry import Factory, own_factories
from calmfed.simulate.federation import Arrays, Federation, Membership
from calmfed.simulate.pool import Pool, Task, Tell
from calmfed.simulate.store import StateStore
from calmfed.simulate.venue import Venue

T = TypeVar("T")
Done = Callable[[], None]


class Engine(Protocol):
    """Performs tasks; they are independent, so order and place do not matter."""

    def perform(self, tasks: Sequence[Task[Venue, T]], done: Done) -> list[T]:
        """Do all tasks; ``done`` is called after each. The results stand in the tasks' order."""
        ...

    def close(self) -> None:
        """Let go of processes and files."""
        ...


class InProcess:
    """One task after the other, here."""

    def __init__(self, venue: Venue) -> None:
        self._venue = venue

    def perform(self, tasks: Sequence[Task[Venue, T]], done: Done) -> list[T]:
        """See `Engine`."""
        results = []
        for task in tasks:
            results.append(task.perform(self._venue))
            done()
        return results

    def close(self) -> None:
        """There is nothing to let go of."""


class Workers:
    """Tasks side by side in worker processes.

    States go through the store's files and samples through mapped ones.
    """

    def __init__(self, federation: Federation, store: StateStore, workers: int) -> None:
        own = own_factories(federation.config.models)
        for name, factory in own.items():
            if "<" in factory.__qualname__:  # a function in a function, or a lambda
                raise UserError(
                    f"model {name!r} is {factory.__qualname__}, which worker processes cannot "
                    "import: define it at the top of a module, or run with workers=1"
                )
        # once every worker has mapped the samples, their files may go
        with tempfile.TemporaryDirectory(prefix="calmfed-") as folder:
            federation.arrays.save(Path(folder))
            self._pool = Pool(
                workers,
                _open_venue,
                (federation.config, federation.members, folder, store.folder, own),
                federation.config.threads,
            )

    def perform(self, tasks: Sequence[Task[Venue, T]], done: Done) -> list[T]:
        """See `Engine`."""
        return self._pool.perform(tasks, lambda index, result: done())

    def close(self) -> None:
        """End the workers."""
        self._pool.close()


def make_engine(venue: Venue, workers: int) -> Engine:
    """The engine for so many worker processes; fewer than two need none."""
    if workers < 2:
        return InProcess(venue)
    return Workers(venue.federation, venue.store, workers)


def _open_venue(
    tell: Tell,
    config: Config,
    members: Membership,
    samples: str,
    store: Path,
    factories: dict[str, Factory],
) -> Venue:
    """In a worker: the venue, on mapped samples and shared states."""
    for name, factory in factories.items():
        register_model(name)(factory)
    return Venue(Federation(config, members, Arrays.mapped(Path(samples))), StateStore(store))

"""Engines: who does the tasks of a round, in one process or in several, with the same results."""

import multiprocessing
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from calmfed.config import Config
from calmfed.errors import UserError
from calmfed.models import register_model
from calmfed.models.registry import Factory, own_factories
from calmfed.simulate.federation import Arrays, Federation, Membership
from calmfed.simulate.store import StateStore
from calmfed.simulate.venue import Task, Venue

T = TypeVar("T")
Done = Callable[[], None]


class Engine(Protocol):
    """Performs tasks; they are independent, so order and place do not matter."""

    def perform(self, tasks: Sequence[Task[T]], done: Done) -> list[T]:
        """Do all tasks; ``done`` is called after each. The results stand in the tasks' order."""
        ...

    def close(self) -> None:
        """Let go of processes and files."""
        ...


class InProcess:
    """One task after the other, here."""

    def __init__(self, venue: Venue) -> None:
        self._venue = venue

    def perform(self, tasks: Sequence[Task[T]], done: Done) -> list[T]:
        """See `Engine`."""
        results = []
        for task in tasks:
            results.append(task.perform(self._venue))
            done()
        return results

    def close(self) -> None:
        """There is nothing to let go of."""


class Workers:
    """Tasks side by side in worker processes of this machine, the longest begun first.

    States go through the store's files and samples through mapped ones; only plain data crosses
    between the processes, which are our own. A worker whose parent is gone ends by itself,
    because its pipe does.
    """

    def __init__(self, federation: Federation, store: StateStore, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._links: list[Connection] = []
        self._processes = []
        with tempfile.TemporaryDirectory(prefix="calmfed-") as folder:
            federation.arrays.save(Path(folder))
            for _ in range(workers):
                here, there = context.Pipe()
                process = context.Process(
                    target=_work,
                    args=(
                        there,
                        federation.config,
                        federation.members,
                        folder,
                        store.folder,
                        own_factories(),
                    ),
                    daemon=True,
                )
                process.start()
                there.close()
                self._links.append(here)
                self._processes.append(process)
            for index in range(workers):
                self._receive(index)  # each has mapped the samples: their files may go

    def perform(self, tasks: Sequence[Task[T]], done: Done) -> list[T]:
        """See `Engine`."""
        waiting = sorted(range(len(tasks)), key=lambda i: tasks[i].cost)
        results: dict[int, T] = {}
        busy: dict[int, int] = {}
        idle = list(range(len(self._links)))
        while waiting or busy:
            while waiting and idle:
                worker, index = idle.pop(), waiting.pop()
                self._send(worker, tasks[index])
                busy[worker] = index
            ready = wait([self._links[worker] for worker in busy])
            for worker in [w for w in busy if self._links[w] in ready]:
                results[busy.pop(worker)] = self._receive(worker)
                idle.append(worker)
                done()
        return [results[i] for i in range(len(tasks))]

    def close(self) -> None:
        """End the workers."""
        for link in self._links:
            link.close()
        for process in self._processes:
            process.terminate()
            process.join()

    def _send(self, worker: int, task: Any) -> None:
        try:
            self._links[worker].send(task)
        except OSError:
            self._report_death(worker)

    def _receive(self, worker: int) -> Any:
        try:
            answer = self._links[worker].recv()
        except (EOFError, OSError):
            self._report_death(worker)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _report_death(self, worker: int) -> None:
        process = self._processes[worker]
        process.join(timeout=10)
        raise UserError(
            f"a worker process ended unexpectedly (exit code {process.exitcode}), perhaps for want "
            "of memory: start the same command again to go on from the last round, if need be "
            "with fewer workers"
        )


class RemoteError(RuntimeError):
    """An error in a worker process, with its traceback as text."""


def make_engine(venue: Venue, workers: int) -> Engine:
    """The engine for so many worker processes; fewer than two need none."""
    if workers < 2:
        return InProcess(venue)
    return Workers(venue.federation, venue.store, workers)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work(
    link: Connection,
    config: Config,
    members: Membership,
    samples: str,
    store: Path,
    factories: dict[str, Factory],
) -> None:
    """A worker's life: answer each task until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    torch.set_num_threads(config.threads)
    for name, factory in factories.items():
        register_model(name)(factory)
    venue = Venue(Federation(config, members, Arrays.mapped(Path(samples))), StateStore(store))
    try:
        link.send("ready")
        while True:
            task = link.recv()
            try:
                answer = task.perform(venue)
            except UserError as error:
                answer = error
            except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
                answer = RemoteError(traceback.format_exc())
            link.send(answer)
    except (EOFError, OSError):
        return

"""Worker processes of this machine, to which tasks go as plain data."""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

from calmfed.errors import UserError, from_system

C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Tell = Callable[[Any], None]
"""With this a worker tells its parent how a task is getting on."""


class Task(Protocol[C_contra, T_co]):
    """A piece of work as plain data, the same wherever it is done."""

    @property
    def cost(self) -> float:
        """How long it takes compared with others; the longest are begun first."""
        ...

    def perform(self, context: C_contra) -> T_co:
        """Do it, with what the process has at hand."""
        ...


class RemoteError(RuntimeError):
    """An error in a worker process, with its traceback as text."""


class Pool(Generic[C]):
    """Processes that perform tasks, each with a context that it built for itself.

    They are our own processes, and only plain data crosses between them. A worker whose parent
    is gone ends by itself, because its pipe does.
    """

    def __init__(
        self, workers: int, build: Callable[..., C], args: tuple[Any, ...], threads: int = 1
    ) -> None:
        """Start the processes and wait until each has built its context.

        Args:
            workers: How many.
            build: Called in each as ``build(tell, *args)``; the context that tasks get.
            args: What it is given.
            threads: torch's threads in each.
        """
        spawn = multiprocessing.get_context("spawn")
        self._links: list[Connection] = []
        self._processes = []
        with _without_interrupts():  # which the processes inherit: Ctrl-C is this one's to handle
            for _ in range(workers):
                here, there = spawn.Pipe()
                life = (there, threads, build, args)
                process = spawn.Process(target=_live, args=life, daemon=True)
                process.start()
                there.close()
                self._links.append(here)
                self._processes.append(process)
        try:
            for worker in range(workers):
                self._receive(worker)
        except _DeathError as death:
            self.close()
            raise UserError(
                f"worker processes could not start (exit code {death.exitcode}): a program that "
                'uses them must do its work under `if __name__ == "__main__":`, in a file; or use '
                "one process"
            ) from None
        except BaseException:
            self.close()
            raise

    def perform(
        self,
        tasks: Sequence[Task[C, T]],
        done: Callable[[int, T], None],
        told: Callable[[int, Any], None] = lambda index, what: None,
    ) -> list[T]:
        """Perform tasks side by side, the longest first.

        Args:
            tasks: What to do; they are independent.
            done: Called with the index and the result of each finished task.
            told: Called with a task's index and what its worker tells meanwhile.

        Returns:
            The results, in the tasks' order.
        """
        waiting = sorted(range(len(tasks)), key=lambda i: (tasks[i].cost, -i))  # taken from the end
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
                kind, what = self._receive(worker)
                if kind == "told":
                    told(busy[worker], what)
                    continue
                index = busy.pop(worker)
                results[index] = what
                idle.append(worker)
                done(index, results[index])
        return [results[i] for i in range(len(tasks))]

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for link in self._links:
            link.close()
        for process in self._processes:
            process.terminate()
            process.join()

    def _send(self, worker: int, task: Any) -> None:
        try:
            self._links[worker].send(task)
        except OSError:
            raise self._death(worker) from None

    def _receive(self, worker: int) -> tuple[str, Any]:
        try:
            kind, what = self._links[worker].recv()
        except (EOFError, OSError):
            raise self._death(worker) from None
        if kind == "failed":
            raise what
        return kind, what

    def _death(self, worker: int) -> "_DeathError":
        process = self._processes[worker]
        process.join(timeout=10)
        return _DeathError(process.exitcode)


class _DeathError(UserError):
    """A worker process is gone."""

    def __init__(self, exitcode: int | None) -> None:
        memory = ", perhaps for want of memory" if exitcode == -signal.SIGKILL else ""
        super().__init__(
            f"a worker process ended unexpectedly (exit code {exitcode}){memory}: start the same "
            "command again to go on where it was, if need be with fewer processes"
        )
        self.exitcode = exitcode


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Put off SIGINT until the block ends, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it with the first process would end the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _live(link: Connection, threads: int, build: Callable[..., C], args: tuple[Any, ...]) -> None:
    """A worker's life: answer each task until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle

    import torch

    torch.set_num_threads(threads)

    def tell(what: Any) -> None:
        try:
            link.send(("told", what))
        except OSError:
            os._exit(0)  # the parent is gone

    kind, what = _answer(lambda: build(tell, *args))
    context = what
    try:
        link.send((kind, None if kind == "done" else what))
        while True:
            task = link.recv()
            link.send(_answer(partial(task.perform, context)))
    except (EOFError, OSError):
        return  # the parent is gone


def _answer(work: Callable[[], Any]) -> tuple[str, Any]:
    """Do some work; whatever goes wrong, the parent must hear of it."""
    try:
        return "done", work()
    except UserError as error:
        return "failed", error
    except OSError as error:
        return "failed", from_system(error)
    except Exception:  # noqa: BLE001 - see above
        return "failed", RemoteError(traceback.format_exc())

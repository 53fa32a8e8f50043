"""Engines: the order and place of tasks change nothing, and a dead worker is told."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from calmfed.config import parse
from calmfed.data import Dataset
from calmfed.errors import UserError
from calmfed.simulate.engine import InProcess, Workers
from calmfed.simulate.federation import Arrays, assemble
from calmfed.simulate.pool import Pool, RemoteError, Tell
from calmfed.simulate.rounds import Rounds
from calmfed.simulate.store import StateStore
from calmfed.simulate.venue import Venue


class Backwards(InProcess):
    """Performs the last task first."""

    def perform(self, tasks: Sequence[Any], done: Any) -> list[Any]:
        return super().perform(list(reversed(tasks)), done)[::-1]


@pytest.mark.parametrize("method", ["calm", "visit:calm"])
def test_lessons_of_a_round_do_not_see_each_other(
    method: str, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    """All learn from frozen snapshots: carried out backwards, a round is the same."""
    config = parse({**settings, "method": method, "data": "blobs"})
    federation = assemble(config, dataset)
    outcomes = []
    for engine in (InProcess, Backwards):
        venue = Venue(federation, StateStore(tmp_path / engine.__name__))
        rounds = Rounds(venue, engine(venue))
        progress = rounds.start()
        for _ in (1, 2):
            rounds.walk(progress, lambda: None)
        outcomes.append(progress)
    assert outcomes[0] == outcomes[1]


def test_a_killed_worker_is_told_and_not_waited_for(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    federation = assemble(parse({**settings, "data": "blobs"}), dataset)
    venue = Venue(federation, StateStore(tmp_path))
    engine = Workers(federation, venue.store, 2)
    try:
        rounds = Rounds(venue, engine)
        progress = rounds.start()
        rounds.walk(progress, lambda: None)
        os.kill(engine._pool._processes[0].pid or 0, signal.SIGKILL)
        with pytest.raises(UserError, match=r"ended unexpectedly \(exit code -9\)"):
            rounds.walk(progress, lambda: None)
    finally:
        engine.close()


class Task:
    """Fails in one of two ways, or tells and answers."""

    cost = 1.0

    def __init__(self, what: str) -> None:
        self.what = what

    def perform(self, context: Tell) -> str:
        if self.what == "user":
            raise UserError("not like this")
        if self.what == "bug":
            raise ZeroDivisionError("oops")
        if self.what == "disk":
            raise OSError(28, "No space left on device", "somewhere")
        context(f"at {self.what}")
        return self.what.upper()


def _tell(tell: Tell) -> Tell:
    return tell


def test_a_pool_answers_in_order_tells_and_hands_errors_over() -> None:
    pool = Pool(2, _tell, ())
    try:
        told: list[tuple[int, Any]] = []
        done: list[tuple[int, str]] = []
        answers = pool.perform(
            [Task("a"), Task("b"), Task("c")],
            lambda i, what: done.append((i, what)),
            lambda i, what: told.append((i, what)),
        )
        assert answers == ["A", "B", "C"]
        assert sorted(done) == [(0, "A"), (1, "B"), (2, "C")]
        assert sorted(told) == [(0, "at a"), (1, "at b"), (2, "at c")]
        with pytest.raises(UserError, match="not like this"):
            pool.perform([Task("user")], lambda i, what: None)
        with pytest.raises(RemoteError, match="ZeroDivisionError: oops"):
            pool.perform([Task("bug")], lambda i, what: None)
        with pytest.raises(UserError, match="somewhere: No space left on device"):
            pool.perform([Task("disk")], lambda i, what: None)
        assert pool.perform([Task("d")], lambda i, what: None) == ["D"]  # they live on
    finally:
        pool.close()


def test_a_program_without_a_main_guard_is_told_what_it_lacks(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import calmfed\n"
        "calmfed.run(workers=2, clients=3, active=2, rounds=1, width=0.05, epochs=1)\n"
    )
    told = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert told.returncode == 1
    assert "must do its work under `if __name__ == " in told.stderr.splitlines()[-1]


def test_workers_do_not_hear_ctrl_c() -> None:
    """Whenever it comes, from their first instant on: it is the parent's to handle."""
    pool = Pool(2, _tell, ())
    try:
        for process in pool._processes:
            os.kill(process.pid or 0, signal.SIGINT)
        assert pool.perform([Task("a"), Task("b")], lambda i, what: None) == ["A", "B"]
        mask = Path(f"/proc/{pool._processes[0].pid}/status").read_text()
        blocked = int(next(x for x in mask.splitlines() if x.startswith("SigBlk")).split()[1], 16)
        assert blocked & 1 << (signal.SIGINT - 1)
    finally:
        pool.close()


def test_workers_of_a_fresh_program_are_born_deaf_to_ctrl_c(tmp_path: Path) -> None:
    """Multiprocessing's helper, begun with the first process, ends a block of signals."""
    program = tmp_path / "fresh.py"
    program.write_text(
        "import signal\n"
        "from calmfed.simulate.pool import Pool\n"
        "def blocked(tell):\n"
        "    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "class Ask:\n"
        "    cost = 1.0\n"
        "    def perform(self, context):\n"
        "        return context\n"
        "if __name__ == '__main__':\n"
        "    pool = Pool(2, blocked, ())\n"
        "    print(pool.perform([Ask(), Ask()], lambda i, what: None))\n"
        "    pool.close()\n"
    )
    told = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[True, True]"


def test_arrays_are_mapped_as_they_were_saved(tmp_path: Path, dataset: Dataset) -> None:
    arrays = Arrays(dataset.train_x, dataset.train_y, dataset.test_x, dataset.test_y)
    arrays.save(tmp_path)
    assert Arrays.mapped(tmp_path).digest() == arrays.digest()

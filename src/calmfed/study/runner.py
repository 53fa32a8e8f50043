"""Running a study: every cell that is not finished, side by side in processes of this machine."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from calmfed import data
from calmfed.config import Config
from calmfed.errors import Interrupted, UserError, from_system
from calmfed.simulate import run
from calmfed.simulate.lock import locked
from calmfed.simulate.pool import Pool, Tell
from calmfed.simulate.simulation import may_change
from calmfed.study.grid import Cell, Study, refuse_strange, save_study
from calmfed.study.summary import cell_folder

OnStep = Callable[[int, int], None]
"""Called with the steps done and in all, over all cells."""

OnCell = Callable[[Cell, "CellOutcome"], None]
"""Called when a cell has ended."""


@dataclass(frozen=True)
class CellOutcome:
    """How a cell ended.

    Attributes:
        accuracy: Its headline accuracy; None where it failed.
        seconds: Time it took, over all its starts.
        failure: Why it failed; None where it did not.
    """

    accuracy: float | None
    seconds: float
    failure: str | None


@dataclass(frozen=True)
class CellTask:
    """Run one cell, or go on with it."""

    config: Config
    folder: Path
    cost: float = 1.0  # all alike, so that cells run in the study's order

    def perform(self, context: Tell) -> CellOutcome:
        """Run it in this process; a user's mistake is an outcome, so that other cells go on."""
        try:
            result = run(
                self.config,
                directory=self.folder,
                on_progress=lambda done, total, note: context((done, total)),
            )
        except UserError as error:
            return CellOutcome(None, 0.0, str(error))
        except OSError as error:
            return CellOutcome(None, 0.0, str(from_system(error)))
        except Interrupted:  # all of the study stops, not this cell alone
            raise
        except Exception as error:  # noqa: BLE001 - a model of somebody's own may raise anything
            whole = self.folder.with_name(f"{self.folder.name}.error.txt")
            whole.parent.mkdir(parents=True, exist_ok=True)
            whole.write_text(traceback.format_exc(), encoding="utf-8")
            told = " ".join(f"{type(error).__name__}: {error}".split())
            return CellOutcome(None, 0.0, f"{told} (all of it in {whole})")
        return CellOutcome(result.accuracy, sum(result.told["times"].values()), None)


def run_study(
    study: Study,
    folder: Path,
    *,
    cells: tuple[Cell, ...] | None = None,
    jobs: int = 1,
    on_step: OnStep = lambda done, total: None,
    on_cell: OnCell = lambda cell, outcome: None,
) -> list[CellOutcome]:
    """Run the cells of a study that are not finished, and keep them all in one directory.

    Args:
        study: What to run.
        folder: Where; an earlier start of the same study is gone on with.
        cells: Which of its cells, if not all; the others stay what they are.
        jobs: Cells side by side, each in a process of its own; they change no number.
        on_step: Told how far it is.
        on_cell: Told of each cell that ends.

    Returns:
        The outcomes of the cells that were run now.
    """
    refuse_strange(folder)
    with locked(folder):
        chosen = {cell.config for cell in (study.cells if cells is None else cells)}
        saved = save_study(study, folder)
        part = replace(saved, cells=tuple(c for c in saved.cells if c.config in chosen))
        return _run_study(part, folder, jobs, on_step, on_cell)


def _run_study(
    study: Study, folder: Path, jobs: int, on_step: OnStep, on_cell: OnCell
) -> list[CellOutcome]:
    finished = {
        cell.name for cell in study.cells if (cell_folder(folder, cell) / "result.json").exists()
    }
    # samples of the user's own may have changed since: a finished cell is asked for that
    open_cells = [
        cell for cell in study.cells if cell.name not in finished or may_change(cell.config)
    ]

    def heard(cell: Cell, outcome: CellOutcome) -> None:
        if cell.name not in finished or outcome.failure is not None:
            on_cell(cell, outcome)

    outcomes = []
    unprepared = _unprepared(open_cells)
    for cell in [cell for cell in open_cells if _samples(cell) in unprepared]:
        outcomes.append(CellOutcome(None, 0.0, unprepared[_samples(cell)]))
        on_cell(cell, outcomes[-1])
    open_cells = [cell for cell in open_cells if _samples(cell) not in unprepared]
    tasks = [CellTask(cell.config, cell_folder(folder, cell)) for cell in open_cells]
    ticks = _Ticks(study, open_cells, finished, on_step)
    if jobs < 2 or len(tasks) < 2:
        for index, task in enumerate(tasks):
            outcomes.append(task.perform(partial(ticks.told, index)))
            ticks.ended(index)
            heard(open_cells[index], outcomes[-1])
        return outcomes
    return outcomes + _side_by_side(tasks, open_cells, min(jobs, len(tasks)), ticks, heard)


def _samples(cell: Cell) -> tuple[str, bool]:
    """Which samples a cell reads: the data set, and whether its public ones too."""
    return cell.config.data, cell.config.wants_public()


def _unprepared(cells: list[Cell]) -> dict[tuple[str, bool], str]:
    """Download and compute once what several cells would each; why that fails, where it does."""
    failures = {}
    for name, public in dict.fromkeys(_samples(cell) for cell in cells):
        try:
            data.prepare(name, public=public)
        except UserError as error:
            failures[name, public] = str(error)
    return failures


def _side_by_side(
    tasks: list[CellTask], cells: list[Cell], jobs: int, ticks: "_Ticks", on_cell: OnCell
) -> list[CellOutcome]:
    ended: dict[int, CellOutcome] = {}

    def done(index: int, outcome: CellOutcome) -> None:
        ended[index] = outcome
        ticks.ended(index)
        on_cell(cells[index], outcome)

    try:
        pool = Pool(jobs, _tell_itself, ())
        try:
            return pool.perform(tasks, done, ticks.told)
        finally:
            pool.close()
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command goes on where it was") from None


class _Ticks:
    """Steps over all cells: those of finished cells count in full, from the beginning."""

    def __init__(
        self, study: Study, open_cells: list[Cell], finished: set[str], on_step: OnStep
    ) -> None:
        self._total = sum(cell.config.steps() for cell in study.cells)
        self._steps = [cell.config.steps() for cell in open_cells]
        self._done = [
            steps if cell.name in finished else 0
            for cell, steps in zip(open_cells, self._steps, strict=True)
        ]
        self._before = self._total - sum(self._steps)
        self._on_step = on_step
        self._report()

    def told(self, index: int, what: Any) -> None:
        self._done[index] = what[0]
        self._report()

    def ended(self, index: int) -> None:
        self._done[index] = self._steps[index]
        self._report()

    def _report(self) -> None:
        self._on_step(self._before + sum(self._done), self._total)


def _tell_itself(tell: Tell) -> Tell:
    """The context of a cell's process is its way to tell how far it is."""
    return tell

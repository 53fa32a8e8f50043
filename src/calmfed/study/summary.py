"""What a study found: cells that differ only in their seed, as mean and spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calmfed.simulate.result import Result
from calmfed.study.grid import Cell, Study, load_study

VISIBLE = 0.0005
"""The least difference of shares that a table shows."""


@dataclass(frozen=True)
class Spread:
    """Values over seeds.

    Attributes:
        mean: Their mean.
        deviation: Their sample standard deviation; None for a single one.
        n: How many there are.
    """

    mean: float
    deviation: float | None
    n: int

    def interval(self, level: float = 0.95) -> float | None:
        """Half of the mean's interval by Student's t; None for a single value.

        >>> round(Spread.of([1.0, 3.0]).interval(), 2)  # 12.706 * sqrt(2) / sqrt(2)
        12.71
        """
        if self.deviation is None:
            return None
        from scipy.stats import t  # slow to import, and most callers need no interval

        reach = float(t.ppf((1 + level) / 2, self.n - 1))
        return reach * self.deviation / math.sqrt(self.n)

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value.

        >>> Spread.of([1.0, 3.0])
        Spread(mean=2.0, deviation=1.4142135623730951, n=2)
        """
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), deviation, len(values))


@dataclass(frozen=True)
class Row:
    """Cells that differ only in their seed.

    Attributes:
        settings: What they share and other rows do not, by key.
        results: Their results, by seed; those that are not finished are missing.
        cells: Their cells, all of them.
    """

    settings: dict[str, Any]
    results: dict[int, Result]
    cells: tuple[Cell, ...]

    @property
    def headline(self) -> str:
        """The checkpoint that speaks for the method."""
        return self.cells[0].config.method_setup().method.headline

    def over_seeds(self, *path: str) -> Spread | None:
        """A figure of ``result.json`` over seeds; None where no seed is finished.

        ``row.over_seeds("last", "accuracy")`` is the global accuracy of the last models.
        """
        values = []
        for result in self.results.values():
            value: Any = result.told
            for key in path:
                value = value[key]
            values.append(float(value))
        return Spread.of(values) if values else None


def paired(mine: Row, theirs: Row | None) -> list[float]:
    """Headline accuracy less that of another row, for each seed that both have finished."""
    if theirs is None:
        return []
    seeds = sorted(mine.results.keys() & theirs.results.keys())
    return [mine.results[seed].accuracy - theirs.results[seed].accuracy for seed in seeds]


def rows(folder: Path, study: Study | None = None) -> list[Row]:
    """The rows of a study on disk, in the order of its grid."""
    study = study or load_study(folder)
    grouped: dict[str, list[Cell]] = {}
    for cell in study.cells:
        grouped.setdefault(repr(_without_seed(cell)), []).append(cell)
    found = []
    for cells in grouped.values():
        results = {
            cell.config.seed: Result.read(cell_folder(folder, cell))
            for cell in cells
            if (cell_folder(folder, cell) / "result.json").exists()
        }
        found.append(Row(_without_seed(cells[0]), results, tuple(cells)))
    return found


def cell_folder(folder: Path, cell: Cell) -> Path:
    """Where a cell's run is kept."""
    return folder / "cells" / cell.name


def _without_seed(cell: Cell) -> dict[str, Any]:
    return {key: value for key, value in cell.settings.items() if key != "seed"}

"""What a report is about: a study or a single run on disk, in the state it is in now."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from calmfed.config import KEYS, Config
from calmfed.errors import DataError, UserError
from calmfed.simulate.checkpoint import read_json
from calmfed.simulate.record import Event, check_partition, read_events
from calmfed.simulate.result import Result, load_run
from calmfed.study import wording
from calmfed.study.grid import Cell, load_study
from calmfed.study.summary import Row, Spread, cell_folder, rows


@dataclass(frozen=True)
class Run:
    """One federation of a subject.

    Attributes:
        cell: Which one.
        folder: Where it is kept; it need not exist yet.
        result: Its result; None as long as it is not finished.
    """

    cell: Cell
    folder: Path
    result: Result | None

    @cached_property
    def partition(self) -> dict[str, Any] | None:
        """Who holds what, as ``partition.json`` tells it; None before the run began."""
        path = self.folder / "partition.json"
        told = _json(path, "a partition")
        return None if told is None else check_partition(told, path)

    @cached_property
    def environment(self) -> dict[str, Any] | None:
        """What it ran with; None before the run began."""
        told = _json(self.folder / "config.json", "the configuration of a run")
        return None if told is None else {k: v for k, v in told.items() if k not in ("config",)}

    @cached_property
    def curve(self) -> list[dict[str, Any]]:
        """Global accuracy and ensemble over rounds, as far as it got."""
        if self.result is not None:
            return [point for point in self.result.told["curve"] if "accuracy" in point]
        points: dict[int, dict[str, Any]] = {}
        for event in self.events():
            if event.client == "":
                points.setdefault(event.round, {"round": event.round})[event.metric] = event.value
        return [point for point in points.values() if {"accuracy", "ensemble"} <= point.keys()]

    def events(self) -> list[Event]:
        """All its events, as far as it got."""
        return list(_events_so_far(self.folder / "events.jsonl"))

    @property
    def status(self) -> str:
        """How far it is, in words."""
        if self.result is not None:
            return "finished"
        told = _json(self.folder / "checkpoint" / "manifest.json", "a checkpoint")
        if told is None:
            return "not begun" if self.partition is None else "begun"
        return f"round {told.get('round', 0)} of {self.cell.config.rounds}"


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of the tables and a line of the figures: runs that differ only in their seed.

    Attributes:
        row: The row as the summary knows it.
        runs: Its runs, by seed.
        label: What it is called where its panel is known.
        panel: What sets its panel apart: figures compare entries of one panel. Empty where there
            is only one.
    """

    row: Row
    runs: tuple[Run, ...]
    label: str
    panel: str

    @property
    def config(self) -> Config:
        """The configuration of its first run."""
        return self.row.cells[0].config

    @property
    def finished(self) -> tuple[Run, ...]:
        """Those of its runs that are finished."""
        return tuple(run for run in self.runs if run.result is not None)

    @property
    def headline(self) -> str:
        """The checkpoint that speaks for its method, "best" or "last"."""
        return self.row.headline

    @property
    def accuracy(self) -> Spread | None:
        """Global accuracy of the headline checkpoint over seeds."""
        values = [result.accuracy for result in self.row.results.values()]
        return Spread.of(values) if values else None


@dataclass(frozen=True)
class Subject:
    """What a report is about.

    Attributes:
        name: What it is called.
        is_study: Whether it is a study; else a single run.
        keys: The settings that tell its entries apart.
        entries: Its rows, panel by panel, in the order of the grid.
    """

    name: str
    is_study: bool
    keys: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def panels(self) -> dict[str, list[Entry]]:
        """The entries that are compared with each other, by what sets them apart from others."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.panel, []).append(entry)
        return found

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for entry in self.entries for run in entry.runs]

    @property
    def labels(self) -> list[str]:
        """The labels of all entries, each once."""
        return list(dict.fromkeys(entry.label for entry in self.entries))

    def values(self, key: str) -> list[Any]:
        """The values that a setting has in it, each once."""
        found = [getattr(run.cell.config, key) for run in self.runs]
        return [value for i, value in enumerate(found) if value not in found[:i]]


def gather(directory: Path) -> Subject:
    """Read what lies in a directory: a study, or a single run; finished or not."""
    if (directory / "study.json").is_file():
        return _study(directory)
    if (directory / "config.json").is_file():
        return _single(directory)
    what = "neither a study nor a run" if directory.is_dir() else "not a directory"
    raise UserError(
        f"{directory} is {what}: a study's directory has a study.json, a run's a config.json"
    )


def local_of(subject: Subject, entry: Entry) -> Entry | None:
    """The entry that trains alone under the same settings; None where there is none, or itself."""
    if entry.config.method == "local":
        return None
    for other in subject.panels[entry.panel]:
        if other.config.method == "local":
            return other
    return None


def _study(directory: Path) -> Subject:
    study = load_study(directory)
    found = rows(directory, study)
    varying = tuple(k for k in study.axes if k != "seed" and len(_distinct(found, k)) > 1)
    keys = ("method", *(key for key in varying if key != "method"))
    entries = []
    for row in found:
        cells = sorted(row.cells, key=lambda cell: cell.config.seed)
        runs = [
            Run(cell, cell_folder(directory, cell), row.results.get(cell.config.seed))
            for cell in cells
        ]
        entries.append(Entry(row, tuple(runs), *_names(row, varying)))
    order = list(dict.fromkeys(entry.panel for entry in entries))
    entries.sort(key=lambda entry: order.index(entry.panel))  # what is compared stands together
    return Subject(study.name, True, keys, tuple(entries))


def _single(directory: Path) -> Subject:
    config = load_run(directory).config
    cell = Cell(directory.resolve().name, {"method": config.method}, config)
    result = Result.read(directory) if (directory / "result.json").exists() else None
    row = Row(cell.settings, {config.seed: result} if result else {}, (cell,))
    entry = Entry(row, (Run(cell, directory, result),), config.method, "")
    return Subject(cell.name, False, ("method",), (entry,))


def _names(row: Row, varying: tuple[str, ...]) -> tuple[str, str]:
    """An entry's label and its panel's.

    Methods are compared with each other, each combination of the rest is a panel. Where there is
    one method, its settings are compared, but accuracies on different data never.
    """
    config = row.cells[0].config
    compared = [k for k in varying if k != "data"]
    if "method" in varying or not compared:
        compared = ["method"]
    panel = [key for key in varying if key not in compared]
    told = {key: wording.setting(getattr(config, key)) for key in varying}
    label = ", ".join(f"{key} {told[key]}" for key in compared if key != "method")
    return label or config.method, ", ".join(
        told[key] if key == "data" else f"{key} {told[key]}" for key in panel
    )


def _distinct(found: list[Row], key: str) -> set[str]:
    return {repr(getattr(row.cells[0].config, key)) for row in found if key in KEYS}


def _events_so_far(path: Path) -> Iterator[Event]:
    """The events of a run that may be writing at this moment: the last line may be half there."""
    try:
        yield from read_events(path)
    except (DataError, FileNotFoundError):
        return


def _json(path: Path, what: str) -> dict[str, Any] | None:
    try:
        return read_json(path, what)
    except FileNotFoundError:
        return None

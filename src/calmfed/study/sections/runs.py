"""Every run by itself: how far it is, what it reached, how long it took and on what."""

from dataclasses import dataclass
from typing import Any

from calmfed.study import wording
from calmfed.study.subject import Entry, Subject


@dataclass(frozen=True)
class RunRow:
    """A single run.

    Attributes:
        name: Of its folder.
        status: How far it is, in words.
        identity: The short name of its configuration.
        last: Global accuracy of the last models; None if unfinished.
        best: Of the best.
        seconds: In words: of rounds, and of evaluation; empty if unfinished.
    """

    name: str
    status: str
    identity: str
    last: float | None
    best: float | None
    seconds: tuple[str, str]


@dataclass(frozen=True)
class Runs:
    """The section.

    Attributes:
        rows: All runs.
        total: The time of all finished ones together, in words; empty if there is none.
        hardware: Each kind of machine and software that took part, by what it is made of.
    """

    rows: tuple[RunRow, ...]
    total: str
    hardware: tuple[tuple[tuple[str, str], ...], ...]


_NAMES = {
    "processor": "Processor",
    "cores": "Cores",
    "platform": "Platform",
    "python": "Python",
    "torch": "torch",
    "numpy": "numpy",
    "calmfed": "calmfed",
}


def runs(subject: Subject) -> Runs:
    """Times and hardware of all runs."""
    seconds = [sum(r.result.told["times"].values()) for r in subject.runs if r.result is not None]
    found = [_hardware(run.environment) for run in subject.runs if run.environment is not None]
    return Runs(
        rows=tuple(row for entry in subject.entries for row in _rows(entry)),
        total=wording.duration(sum(seconds)) if seconds else "",
        hardware=tuple(dict.fromkeys(found)),
    )


def _rows(entry: Entry) -> list[RunRow]:
    rows = []
    for run in entry.runs:
        times = run.result.told["times"] if run.result is not None else {}
        rows.append(
            RunRow(
                name=run.cell.name,
                status=run.status,
                identity=run.cell.config.identity(),
                last=run.result.last if run.result is not None else None,
                best=run.result.best if run.result is not None else None,
                seconds=(_duration(times, "rounds"), _duration(times, "evaluation")),
            )
        )
    return rows


def _duration(times: dict[str, float], of: str) -> str:
    return wording.duration(times[of]) if of in times else wording.DASH


def _hardware(told: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((_NAMES[key], str(told[key])) for key in _NAMES if told.get(key))

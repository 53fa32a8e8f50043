"""Accuracy over rounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calmfed.study import wording
from calmfed.study.figures import SVG, Line, Style, over_rounds
from calmfed.study.subject import Entry, Subject
from calmfed.study.summary import Spread

_BANDS = 8  # lines that can have one


@dataclass(frozen=True)
class CurvePanel:
    """The two figures of a panel: the clients' mean, and their ensemble.

    Attributes:
        name: Of the panel; empty if it is the only one.
        bands: Whether the spread is drawn, which many lines would drown in.
        clients: Accuracy of the clients' models, their mean.
        ensemble: Of the ensemble of all clients.
        key: What the lines are called and how they are drawn.
        unfinished: Methods of which only unfinished runs could be drawn.
    """

    name: str
    bands: bool
    clients: SVG
    ensemble: SVG
    key: tuple[tuple[str, Style], ...]
    unfinished: tuple[str, ...]


@dataclass(frozen=True)
class Curves:
    """Accuracy over rounds.

    Attributes:
        panels: Those of which anything was measured.
        samples: On how many samples of the test set, in words.
        seeds: The most seeds behind a line.
    """

    panels: tuple[CurvePanel, ...]
    samples: str
    seeds: int


def curves(subject: Subject, look: Mapping[str, Style]) -> Curves:
    """Draw the mean of the clients, and the ensemble beside it, over rounds."""
    found = [
        _panel(f"curve{i}", name, panel, look)
        for i, (name, panel) in enumerate(subject.panels.items())
    ]
    sizes = {r.result.told["curve_samples"] for r in subject.runs if r.result is not None}
    return Curves(
        panels=tuple(panel for panel in found if panel is not None),
        samples=wording.listed([f"{n:,}" for n in sorted(sizes)], "or"),
        seeds=max(len(_drawn(entry)) for entry in subject.entries),
    )


def _panel(
    name: str, title: str, panel: list[Entry], look: Mapping[str, Style]
) -> CurvePanel | None:
    drawn = [entry for entry in panel if _drawn(entry)]
    if not drawn:
        return None
    lines = {
        metric: [_line(entry, metric, look[entry.label]) for entry in drawn]
        for metric in ("accuracy", "ensemble")
    }
    top = _top(max(max(line.mean) for both in lines.values() for line in both))
    bands = len(drawn) <= _BANDS
    where = f" ({title})" if title else ""
    return CurvePanel(
        name=title,
        bands=bands,
        clients=over_rounds(
            f"{name}-clients", f"Mean accuracy over rounds{where}", lines["accuracy"], top, bands
        ),
        ensemble=over_rounds(
            f"{name}-ensemble", f"Accuracy of the ensemble{where}", lines["ensemble"], top, bands
        ),
        key=tuple((entry.label, look[entry.label]) for entry in drawn),
        unfinished=tuple(entry.label for entry in drawn if not entry.finished),
    )


def _drawn(entry: Entry) -> list[list[dict[str, Any]]]:
    """The curves of finished runs; if there is none, of those on their way."""
    runs = entry.finished or entry.runs
    return [run.curve for run in runs if run.curve]


def _line(entry: Entry, metric: str, style: Style) -> Line:
    """The mean over seeds, at those rounds at which all were measured."""
    by_round = [{point["round"]: point[metric] for point in curve} for curve in _drawn(entry)]
    rounds = sorted(set.intersection(*(set(points) for points in by_round)))
    spreads = [Spread.of([points[r] for points in by_round]) for r in rounds]
    deviations = [spread.deviation for spread in spreads if spread.deviation is not None]
    return Line(
        label=entry.label,
        style=style,
        rounds=rounds,
        mean=[spread.mean for spread in spreads],
        deviation=deviations or None,
    )


def _top(highest: float) -> float:
    """The end of an axis that begins at zero: the next tenth above, at most one."""
    return min(1.0, (int(highest * 10 + 0.2) + 1) / 10)

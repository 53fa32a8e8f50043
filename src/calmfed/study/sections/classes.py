"""Accuracy by class, alone and with peers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calmfed.study.figures import SVG, Pair, Style, per_class
from calmfed.study.figures.classes import NAMED
from calmfed.study.subject import Entry, Subject, local_of

Rates = list[float | None]


@dataclass(frozen=True)
class ClassFigure:
    """A method beside training alone.

    Attributes:
        label: Of the method.
        style: How it is drawn.
        figure: The two, class by class.
        gained: In how many classes it is ahead of training alone.
        compared: In how many both were measured; zero if there is nothing to compare with.
    """

    label: str
    style: Style
    figure: SVG
    gained: int
    compared: int


@dataclass(frozen=True)
class ClassPanel:
    """The figures of a panel, and their numbers.

    Attributes:
        name: Of the panel; empty if it is the only one.
        figures: One a method.
        columns: Methods of the table of numbers.
        table: By class: its name, and the accuracy of each method.
        sorted: Whether there are so many classes that the figures sort them instead of naming.
    """

    name: str
    figures: tuple[ClassFigure, ...]
    columns: tuple[str, ...]
    table: tuple[tuple[str, tuple[float | None, ...]], ...]
    sorted: bool


def classes(subject: Subject, look: Mapping[str, Style]) -> tuple[ClassPanel, ...]:
    """Draw the last checkpoint's accuracy by class for each method, beside training alone."""
    panels = []
    for i, (name, panel) in enumerate(subject.panels.items()):
        rates = {entry: found for entry in panel if (found := _rates(entry))}
        if rates:
            panels.append(_panel(f"classes{i}", name, subject, rates, look))
    return tuple(panels)


def _panel(
    figure: str,
    name: str,
    subject: Subject,
    rates: Mapping[Entry, Rates],
    look: Mapping[str, Style],
) -> ClassPanel:
    labels = _labels(next(iter(rates)))
    figures = []
    for i, (entry, found) in enumerate(rates.items()):
        local = local_of(subject, entry)
        alone = rates.get(local) if local is not None else None
        if alone is None and entry.config.method == "local" and len(rates) > 1:
            continue  # it stands in every other figure
        pairs = _pairs(labels, alone, found)
        both = [(p.alone, p.peers) for p in pairs if p.alone is not None and p.peers is not None]
        figures.append(
            ClassFigure(
                label=entry.label,
                style=look[entry.label],
                figure=per_class(
                    f"{figure}-{i}", f"Accuracy by class of {entry.label}", pairs, look[entry.label]
                ),
                gained=sum(peers > lone for lone, peers in both),
                compared=len(both),
            )
        )
    return ClassPanel(
        name=name,
        figures=tuple(figures),
        columns=tuple(entry.label for entry in rates),
        table=tuple(
            (label, tuple(found[c] for found in rates.values())) for c, label in enumerate(labels)
        ),
        sorted=len(labels) > NAMED,
    )


def _pairs(labels: list[str], alone: Rates | None, peers: Rates) -> list[Pair]:
    pairs = [
        Pair(label, alone[c] if alone is not None else None, peers[c])
        for c, label in enumerate(labels)
    ]
    if len(pairs) > NAMED:
        pairs.sort(key=lambda pair: -1 if (v := pair.alone or pair.peers) is None else v)
    return pairs


def _rates(entry: Entry) -> Rates:
    """By class: the mean over seeds, None where the test set has none of the class."""
    seeds = [run.result.told["last"]["per_class"] for run in entry.finished if run.result]
    return [
        None if None in by_seed else float(np.mean(by_seed)) for by_seed in zip(*seeds, strict=True)
    ]


def _labels(entry: Entry) -> list[str]:
    for run in entry.finished:
        if run.partition is not None:
            return [str(label) for label in run.partition["labels"]]
    return [str(c) for c in range(len(_rates(entry)))]

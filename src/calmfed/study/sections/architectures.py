"""Accuracy by architecture."""

from dataclasses import dataclass

from calmfed.study import wording
from calmfed.study.sections.overview import parameters, spec_of
from calmfed.study.subject import Entry, Subject
from calmfed.study.summary import Spread


@dataclass(frozen=True)
class ArchitecturePanel:
    """A table.

    Attributes:
        name: Of the panel; empty if it is the only one.
        columns: The architectures, and how many parameters each has.
        rows: By method: its name, and its accuracy for each architecture.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[Spread | None, ...]], ...]


def architectures(subject: Subject) -> tuple[ArchitecturePanel, ...]:
    """The last checkpoint's accuracy by architecture; nothing where there is only one."""
    panels = [_panel(name, panel) for name, panel in subject.panels.items()]
    return tuple(panel for panel in panels if len(panel.columns) > 1)


def _panel(name: str, panel: list[Entry]) -> ArchitecturePanel:
    found = [entry for entry in panel if entry.finished]
    known = dict.fromkeys(model for entry in found for model in entry.config.models)
    present = [m for m in known if any(_accuracies(entry, m) for entry in found)]
    return ArchitecturePanel(
        name=name,
        columns=tuple((model, _size(found, model)) for model in present),
        rows=tuple(
            (
                entry.label,
                tuple(
                    Spread.of(values) if (values := _accuracies(entry, model)) else None
                    for model in present
                ),
            )
            for entry in found
        ),
    )


def _accuracies(entry: Entry, model: str) -> list[float]:
    return [
        float(run.result.told["last"]["per_architecture"][model])
        for run in entry.finished
        if run.result is not None and model in run.result.told["last"]["per_architecture"]
    ]


def _size(entries: list[Entry], model: str) -> str:
    specs = {spec_of(run, model) for entry in entries for run in entry.finished}
    counts = sorted({parameters(spec) for spec in specs if spec is not None})
    return wording.listed([wording.compact(n) for n in counts], "or")

"""The table: what each method reached, and at what effort."""

from dataclasses import dataclass

from calmfed.study import wording
from calmfed.study.subject import Entry, Subject, local_of
from calmfed.study.summary import VISIBLE, Spread, paired


@dataclass(frozen=True)
class ResultRow:
    """A row of the table; figures are None where no seed is finished.

    Attributes:
        label: Of the method.
        first: Whether another panel begins with it.
        settings: What else sets the row apart, by the table's keys.
        seeds: How many seeds are finished, and of how many if not all.
        headline: The checkpoint that speaks for the method, "best" or "last".
        checkpoints: Global accuracy by checkpoint.
        ensemble: Of all clients, last checkpoint.
        own_mix: Accuracy on the client's own label mix, last checkpoint.
        against_local: Headline accuracy less that of training alone, seed by seed; None for
            training alone itself.
        behind: In how many of those seeds it lies behind.
        effort: Means of the counters by name.
    """

    label: str
    first: bool
    settings: tuple[str, ...]
    seeds: str
    headline: str
    checkpoints: dict[str, Spread | None]
    ensemble: Spread | None
    own_mix: Spread | None
    against_local: Spread | None
    behind: int
    effort: dict[str, Spread | None]

    @property
    def falls_behind(self) -> bool:
        """Whether it is worse than training alone, on the mean and by a digit that is shown."""
        return self.against_local is not None and self.against_local.mean < -VISIBLE


@dataclass(frozen=True)
class Results:
    """The table and what stands around it.

    Attributes:
        keys: The headings of ``ResultRow.settings``.
        rows: Panel by panel, in the order of the grid.
        findings: What the table comes to, in words.
        has_local: Whether there is a row to be measured against.
        test_samples: The sizes of the test sets, in words.
        seeds: The most seeds that a row has finished.
    """

    keys: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    findings: tuple[str, ...]
    has_local: bool
    test_samples: str
    seeds: int


_EFFORT = ("samples_studied", "teacher_passes", "bytes_moved", "refusals")


def results(subject: Subject) -> Results:
    """The table of a subject."""
    sizes = {r.result.told["test_samples"] for r in subject.runs if r.result is not None}
    return Results(
        keys=tuple(key for key in subject.keys if key != "method"),
        rows=tuple(_row(subject, entry) for entry in subject.entries),
        findings=tuple(_finding(name, panel) for name, panel in subject.panels.items()),
        has_local=any(local_of(subject, entry) is not None for entry in subject.entries),
        test_samples=wording.listed([f"{n:,}" for n in sorted(sizes)], "or"),
        seeds=max(len(entry.finished) for entry in subject.entries),
    )


def _row(subject: Subject, entry: Entry) -> ResultRow:
    local = local_of(subject, entry)
    differences = paired(entry.row, local.row if local else None)
    done, total = len(entry.finished), len(entry.runs)
    return ResultRow(
        label=entry.config.method,
        first=bool(entry.panel) and entry is subject.panels[entry.panel][0],
        settings=tuple(
            wording.setting(getattr(entry.config, key)) for key in subject.keys if key != "method"
        ),
        seeds=str(done) if done == total else f"{done} of {total}",
        headline=entry.headline,
        checkpoints={which: entry.row.over_seeds(which, "accuracy") for which in ("last", "best")},
        ensemble=entry.row.over_seeds("last", "ensemble"),
        own_mix=entry.row.over_seeds("last", "own_mix"),
        against_local=Spread.of(differences) if differences else None,
        behind=sum(difference < 0 for difference in differences),
        effort={name: entry.row.over_seeds("counters", name) for name in _EFFORT},
    )


def _finding(name: str, panel: list[Entry]) -> str:
    """The highest headline accuracy of a panel beside that of training alone."""
    known = {entry: spread for entry in panel if (spread := entry.accuracy) is not None}
    where = f"{name}: " if name else ""
    if not known:
        return f"{where}nothing is finished yet."
    top = max(known, key=lambda entry: known[entry].mean)
    alone = next((entry for entry in known if entry.config.method == "local"), None)
    if alone is not None and known[top].mean - known[alone].mean < VISIBLE:
        top = alone
    verb = "is highest with" if len(known) > 1 else "reaches"
    text = f"{where}“{top.label}” {verb} {_percent(known[top])} ({top.headline} checkpoint)"
    if alone is not None and alone is not top:
        text += f", training alone has {_percent(known[alone])}"
    elif alone is top and len(known) > 1:
        text += ", and no method does better than training alone"
    ceiling = top.row.over_seeds("last", "ensemble")
    if ceiling is not None:
        text += f"; the ensemble of all its clients would reach {_percent(ceiling)}"
    return text + "."


def _percent(spread: Spread) -> str:
    text = wording.percent(spread.mean)
    if spread.deviation is not None:
        text += f"\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{wording.percent(spread.deviation)}"
    return text + "\N{NO-BREAK SPACE}%"

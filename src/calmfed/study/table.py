"""A study's table as numbers, and laid out for Markdown, LaTeX, CSV and a terminal."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from calmfed import data
from calmfed.config import Config
from calmfed.errors import UserError
from calmfed.study import wording
from calmfed.study.reference import Claim, claimed
from calmfed.study.subject import Entry, Subject
from calmfed.study.summary import VISIBLE, Spread, paired


@dataclass(frozen=True)
class Line:
    """One method under one combination of the other settings; None for what was not run.

    Attributes:
        label: The method's notation.
        settings: What else sets it apart, by key.
        seeds: How many are finished.
        planned: How many there are to be.
        headline: The checkpoint that speaks for the method, "last" or "best".
        accuracy: Global accuracy by checkpoint.
        against: Headline accuracy less that of another method, paired by seed, by its name.
        claim: What the reference reports.
        ensemble: Of all clients' last models.
        effort: Means of the counters by name.
        public: How many public samples were set aside.
        impossible: Why it cannot be run at all; empty where it can.
    """

    label: str
    settings: dict[str, str]
    seeds: int
    planned: int
    headline: str
    accuracy: dict[str, Spread | None]
    against: dict[str, Spread | None]
    claim: Claim | None
    ensemble: Spread | None
    effort: dict[str, Spread | None]
    public: int
    impossible: str

    @property
    def mine(self) -> Spread | None:
        """Accuracy of the headline checkpoint."""
        return self.accuracy[self.headline]

    @property
    def behind(self) -> bool:
        """Whether it falls behind training alone."""
        alone = self.against["local"]
        return alone is not None and alone.mean < -VISIBLE


CHECKPOINTS = ("last", "best")
RIVALS = ("local", "uniform")
EFFORT = ("samples_studied", "teacher_passes", "bytes_moved")


def lines(subject: Subject) -> list[Line]:
    """The table of a subject, in the order of its grid."""
    # where the reference varies the skew it has 100 clients; at our lite scale either may be meant
    likely = 100 if len(subject.values("dirichlet_alpha")) > 1 else 50
    return [_line(subject, entry, likely) for entry in subject.entries]


def _line(subject: Subject, entry: Entry, likely: int) -> Line:
    # in a panel of one method alone its settings are compared, and nobody is a rival
    rivals = {
        e.config.method: e
        for e in subject.panels[entry.panel]
        if e.config.method != entry.config.method
    }
    finished = [run.result.told for run in entry.finished if run.result is not None]
    return Line(
        label=entry.config.method,
        settings={
            key: wording.setting(getattr(entry.config, key))
            for key in subject.keys
            if key != "method"
        },
        seeds=len(entry.finished),
        planned=len(entry.runs),
        headline=entry.headline,
        accuracy={which: entry.row.over_seeds(which, "accuracy") for which in CHECKPOINTS},
        against={rival: _against(entry, rivals.get(rival)) for rival in RIVALS},
        claim=claimed(entry.config, likely),
        ensemble=entry.row.over_seeds("last", "ensemble"),
        effort={name: entry.row.over_seeds("counters", name) for name in EFFORT},
        public=max((told.get("public_samples", 0) for told in finished), default=0),
        impossible="" if finished else _impossible(entry.config),
    )


def _impossible(config: Config) -> str:
    """Why there can be no figure, where that is known without trying."""
    if not config.method_setup().method.reads_public:
        return ""
    try:
        lacks = config.public is False or not data.source(config.data).has_public()
    except UserError:  # the samples are not here, which says nothing
        return ""
    return "no public samples" if lacks else ""


def _against(entry: Entry, rival: Entry | None) -> Spread | None:
    differences = paired(entry.row, rival.row if rival else None)
    return Spread.of(differences) if differences else None


def laid_out(table: list[Line]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text. The headline checkpoint carries a star.

    Columns that would be empty from top to bottom are left out.
    """
    keys = list(table[0].settings) if table else []
    columns: dict[str, Callable[[Line], str]] = {
        "method": lambda line: line.label,
        **{key: _setting(key) for key in keys},
        "n": lambda line: f"{line.seeds}/{line.planned}",
        **{f"{which} checkpoint, %": _accuracy(which) for which in CHECKPOINTS},
        "less local": lambda line: (
            _points(line.against["local"]) + (" behind" if line.behind else "")
        ),
        "less uniform": lambda line: _points(line.against["uniform"]),
        "reference, %": lambda line: _claim(line),
        "less reference": lambda line: _less_claim(line),
        "ensemble, %": lambda line: _sure(line.ensemble),
        "samples studied": _effort("samples_studied", wording.compact),
        "teacher passes": _effort("teacher_passes", wording.compact),
        "moved": _effort("bytes_moved", wording.in_bytes),
        "public samples": lambda line: f"{line.public:,}" if line.public else wording.DASH,
        "why not": lambda line: line.impossible or wording.DASH,
    }
    texts = {name: [text(line) for line in table] for name, text in columns.items()}
    kept = {name: found for name, found in texts.items() if set(found) != {wording.DASH}}
    return list(kept), [list(row) for row in zip(*kept.values(), strict=True)]


LEGEND = (
    "Global accuracy: mean over seeds and its 95 % interval (Student's t, n seeds); the star marks "
    "the checkpoint that speaks for the method, and differences are its own, paired by seed. "
    "Ensemble: of all clients' last models. The reference gives one figure each, without spread, "
    "for the number of clients in brackets."
)


def markdown(table: list[Line]) -> str:
    """A table for Markdown, with its legend."""
    header, rows = laid_out(table)
    ruled = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    ruled.insert(1, "| --- |" + " ---: |" * (len(header) - 1))
    return "\n".join([*ruled, "", LEGEND, ""])


def latex(table: list[Line]) -> str:
    """A tabular for LaTeX (booktabs), with its legend as a comment."""
    header, rows = laid_out(table)
    body = [" & ".join(_escaped(cell) for cell in cells) + r" \\" for cells in rows]
    return "\n".join(
        [
            f"% {LEGEND}",
            r"\begin{tabular}{l" + "r" * (len(header) - 1) + "}",
            r"\toprule",
            " & ".join(_escaped(cell) for cell in header) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def as_csv(table: list[Line]) -> str:
    """A line of numbers for each line of the table: shares, not per cent; empty for not run."""
    keys = list(table[0].settings) if table else []
    spreads: dict[str, Callable[[Line], Spread | None]] = {
        **{which: _take("accuracy", which) for which in CHECKPOINTS},
        **{f"less_{rival}": _take("against", rival) for rival in RIVALS},
        "ensemble": lambda line: line.ensemble,
    }
    header = ["method", *keys, "seeds", "planned", "headline"]
    for name in spreads:
        header += [name, f"{name}_half_interval", f"{name}_n"]
    header += ["reference", "reference_clients", *EFFORT, "public_samples"]
    rows: list[list[object]] = []
    for line in table:
        row: list[object] = [line.label, *line.settings.values()]
        row += [line.seeds, line.planned, line.headline]
        for take in spreads.values():
            spread = take(line)
            row += ["", "", ""] if spread is None else [spread.mean, spread.interval(), spread.n]
        row += ["", ""] if line.claim is None else [line.claim.accuracy, line.claim.clients]
        row += ["" if s is None else s.mean for s in line.effort.values()]
        rows.append([*row, line.public])
    return written(header, rows)


def written(header: list[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows as comma-separated text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _take(group: str, name: str) -> Callable[[Line], Spread | None]:
    def take(line: Line) -> Spread | None:
        found: Spread | None = getattr(line, group)[name]
        return found

    return take


def _setting(key: str) -> Callable[[Line], str]:
    return lambda line: line.settings[key]


def _accuracy(which: str) -> Callable[[Line], str]:
    def text(line: Line) -> str:
        star = "*" if line.headline == which and line.mine is not None else ""
        return _sure(line.accuracy[which]) + star

    return text


def _effort(name: str, shown: Callable[[float], str]) -> Callable[[Line], str]:
    def text(line: Line) -> str:
        found = line.effort[name]
        return wording.DASH if found is None else shown(found.mean)

    return text


def _sure(spread: Spread | None) -> str:
    """Mean and half of its interval in per cent."""
    if spread is None:
        return wording.DASH
    half = spread.interval()
    return wording.percent(spread.mean) + ("" if half is None else f" ± {wording.percent(half)}")


def _points(spread: Spread | None) -> str:
    if spread is None:
        return wording.DASH
    half = spread.interval()
    return wording.points(spread.mean) + ("" if half is None else f" ± {wording.percent(half)}")


def _claim(line: Line) -> str:
    if line.claim is None:
        return wording.DASH
    return f"{100 * line.claim.accuracy:.2f} ({line.claim.clients})"


def _less_claim(line: Line) -> str:
    if line.claim is None or line.mine is None:
        return wording.DASH
    return wording.points(line.mine.mean - line.claim.accuracy)


def _escaped(text: str) -> str:
    """Text as LaTeX writes it."""
    for plain, escaped in (("&", r"\&"), ("%", r"\%"), ("_", r"\_"), ("#", r"\#")):
        text = text.replace(plain, escaped)
    text = text.replace("±", r"$\pm$").replace(wording.MINUS, "$-$").replace(wording.DASH, "--")
    return text.replace("\N{NO-BREAK SPACE}", "~")

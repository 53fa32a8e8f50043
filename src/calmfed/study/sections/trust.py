"""What trust is worth: whether right targets get more of it than wrong ones."""

from dataclasses import dataclass

from calmfed.study import wording
from calmfed.study.figures import SVG, trust_histogram
from calmfed.study.subject import Entry, Subject
from calmfed.study.trust import Reliability, Separation, TrustSamples, histogram, reliability


@dataclass(frozen=True)
class ScoreFigure:
    """A histogram.

    Attributes:
        label_free: Whether it lays out lambda_dis, else lambda.
        svg: The figure.
        scores: Its numbers.
    """

    label_free: bool
    svg: SVG
    scores: Separation


@dataclass(frozen=True)
class TrustFigures:
    """A method's histograms: of its trust, and of the label-free factor if that is another one.

    Attributes:
        label: Of the method.
        panel: Of its panel; empty if it is the only one.
        figures: What is drawn.
    """

    label: str
    panel: str
    figures: tuple[ScoreFigure, ...]


@dataclass(frozen=True)
class TrustRow:
    """A row of the table of trust.

    Attributes:
        label: Of the method.
        panel: Of its panel.
        seeds: How many runs are pooled.
        found: Its numbers.
        by_seed: The least and the greatest AUROC of a single seed, in words; empty for one seed.
    """

    label: str
    panel: str
    seeds: int
    found: Reliability
    by_seed: str


@dataclass(frozen=True)
class Trust:
    """The section.

    Attributes:
        rows: All methods with teachers.
        drawn: Those of them whose trust differs from sample to sample.
        many: Whether there is more than one panel.
    """

    rows: tuple[TrustRow, ...]
    drawn: tuple[TrustFigures, ...]
    many: bool


def trust(subject: Subject) -> Trust:
    """Score the trust of the final round, the samples of all finished seeds pooled."""
    rows, drawn = [], []
    for i, entry in enumerate(subject.entries):
        parts = _samples(entry)
        if not parts:
            continue
        pooled = TrustSamples.pooled(parts)
        found = reliability(pooled)
        rows.append(TrustRow(entry.label, entry.panel, len(parts), found, _by_seed(parts)))
        if not found.trust.constant:
            drawn.append(_figures(f"trust{i}", entry, pooled, found))
    return Trust(tuple(rows), tuple(drawn), len(subject.panels) > 1)


def _samples(entry: Entry) -> list[TrustSamples]:
    paths = [run.folder / "trust.npz" for run in entry.finished]
    return [TrustSamples.read(path) for path in paths if path.exists()]


def _by_seed(parts: list[TrustSamples]) -> str:
    each = [reliability(part).trust.auroc for part in parts]
    known = sorted(value for value in each if value is not None)
    if len(known) < 2:
        return ""
    return f"{wording.fraction(known[0])} to {wording.fraction(known[-1])}"


def _figures(name: str, entry: Entry, samples: TrustSamples, found: Reliability) -> TrustFigures:
    of = f" of {entry.label}{f' ({entry.panel})' if entry.panel else ''}"
    wanted = [(False, "trust", samples.trust, found.trust)]
    differs = bool((samples.trust != samples.lambda_dis).any())  # else it is the same picture
    if differs and not found.lambda_dis.constant:
        wanted.append((True, "label-free factor of trust", samples.lambda_dis, found.lambda_dis))
    return TrustFigures(
        entry.label,
        entry.panel,
        tuple(
            ScoreFigure(
                label_free,
                trust_histogram(
                    f"{name}-{'dis' if label_free else 'all'}",
                    f"Histogram of {axis}{of}, right and wrong targets",
                    histogram(values, samples.right),
                    scores,
                    axis,
                ),
                scores,
            )
            for label_free, axis, values, scores in wanted
        ),
    )

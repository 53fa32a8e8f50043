"""Who holds what."""

from dataclasses import dataclass

from calmfed.study.figures import SVG, who_holds_what
from calmfed.study.subject import Run, Subject

_MOST = 12


@dataclass(frozen=True)
class Holding:
    """A partition.

    Attributes:
        name: Of the panel; empty if it is the only one.
        figure: Its heat map.
        seed: Of the run it is shown of.
        digest: The beginning of its sha256.
        clients: How many share.
        total: Samples they hold together.
    """

    name: str
    figure: SVG
    seed: int
    digest: str
    clients: int
    total: int


@dataclass(frozen=True)
class Holdings:
    """The partitions of a subject.

    Attributes:
        shown: The first seed's of each panel, each partition once.
        left_out: How many more there are than a page can bear.
    """

    shown: tuple[Holding, ...]
    left_out: int


def holdings(subject: Subject) -> Holdings:
    """Draw who holds what, for the first seed of each panel."""
    found: dict[str, tuple[str, Run]] = {}
    for name, panel in subject.panels.items():
        runs = sorted(
            (run for entry in panel for run in entry.runs), key=lambda run: run.cell.config.seed
        )
        begun = next((run for run in runs if run.partition is not None), None)
        if begun is not None and begun.partition is not None:
            told = begun.partition
            found.setdefault(told["sha256"] + told["data_sha256"], (name, begun))
    kept = list(found.values())[:_MOST]
    return Holdings(
        tuple(_holding(f"holding{i}", name, run) for i, (name, run) in enumerate(kept)),
        len(found) - len(kept),
    )


def _holding(figure: str, name: str, run: Run) -> Holding:
    told = run.partition or {}
    counts = {client: told["clients"][client]["samples_by_class"] for client in told["clients"]}
    total = sum(sum(row) for row in counts.values())
    seed = run.cell.config.seed
    says = f"Samples by client and class{f' ({name})' if name else ''}, seed {seed}"
    return Holding(
        name=name,
        figure=who_holds_what(figure, says, counts, told["labels"]),
        seed=seed,
        digest=told["sha256"][:12],
        clients=len(counts),
        total=total,
    )

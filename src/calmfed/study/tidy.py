"""Everything a study measured, one row each: for whoever goes on in a program of her own."""

from collections.abc import Iterator

from calmfed.study.subject import Run, Subject
from calmfed.study.table import written

HEADER = ["study", "data", "method", "settings", "seed", "round", "client", "metric", "value"]


def tidy(subject: Subject) -> str:
    """Comma-separated text with a row for each figure; ``round`` is empty for those of a result.

    From the events: what happened and was measured on the way, by client, or of all where
    ``client`` is empty. From the results: ``last accuracy``, ``best ensemble``, counters and so on.
    """
    rows: list[list[object]] = []
    for run in subject.runs:
        config = run.cell.config
        told = {k: v for k, v in run.cell.settings.items() if k not in ("data", "method", "seed")}
        settings = " ".join(f"{key}={value}" for key, value in told.items())
        head = [subject.name, config.data, config.method, settings, config.seed]
        rows += [[*head, *figure] for figure in _figures(run)]
    return written(HEADER, rows)


def _figures(run: Run) -> Iterator[tuple[object, str, str, object]]:
    """Round, client, metric and value of everything a run measured."""
    for event in run.events():
        yield event.round, event.client, event.metric, event.value
    if run.result is None:
        return
    told = run.result.told
    for name, models in {
        "last": told["last"],
        "best": told["best"],
        **told.get("also", {}),
    }.items():
        for metric in ("accuracy", "ensemble", "own_mix"):
            yield "", "", f"{name} {metric}", models[metric]
        for client, own in models["clients"].items():
            for metric in ("accuracy", "own_mix"):
                yield "", client, f"{name} {metric}", own[metric]
    for metric, value in told["counters"].items():
        yield "", "", metric, value

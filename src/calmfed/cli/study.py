"""``calmfed study``: a grid of federations."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calmfed.cli import tables
from calmfed.cli.options import AsJson, Out, Set, settings_from, split_pair
from calmfed.errors import UserError
from calmfed.progress import Steps

if TYPE_CHECKING:
    from calmfed.study.grid import Study
    from calmfed.study.summary import Row


def study(
    source: Annotated[
        str, typer.Argument(metavar="PRESET|FILE.toml", help="Where the grid comes from.")
    ],
    set_: Set = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Run seeds 0 to this many less one.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Of a study that has several: lite or paper, say.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Run this part of the grid alone, as in method=calm,local; the rest shows as a "
            "dash until it is run.",
        ),
    ] = None,
    out: Out = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Cells side by side; one a core if not given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a grid of federations, or go on with one; finished cells are not run again.

    A value given with --set for a key that the grid varies replaces its list, as in
    --set 'method=["calm","visit"]'.
    """
    flags: dict[str, Any] = {"seed": None if seeds is None else list(range(seeds))}
    overrides = settings_from(set_, flags)

    from calmfed.simulate.pool import cores
    from calmfed.study import grid, selection
    from calmfed.study.report import write_report
    from calmfed.study.runner import CellOutcome, run_study
    from calmfed.study.summary import rows

    plan = grid.read_study(source, overrides, scale)
    wanted = [split_pair("--only", pair) for pair in only or []]
    cells = selection.only(plan, wanted)
    as_it_is = overrides and plan.cells == grid.read_study(source, {}, scale).cells
    folder = out or _folder(plan.name, {} if as_it_is else overrides)
    count = len(cells)
    with Steps(f"{plan.name}: {count} cells") as steps:

        def on_cell(cell: grid.Cell, outcome: CellOutcome) -> None:
            label = ", ".join(f"{key} {value}" for key, value in cell.settings.items())
            if outcome.accuracy is None:
                steps.say(f"{label}: failed: {outcome.failure}")
            else:
                accuracy = tables.percent(outcome.accuracy)
                steps.say(f"{label}: {accuracy} % in {outcome.seconds:.0f} s")

        outcomes = run_study(
            plan, folder, cells=cells, jobs=jobs or cores(), on_step=steps.reach, on_cell=on_cell
        )
    found = rows(folder)
    with Steps("writing the report") as steps:
        page = write_report(folder, steps.reach)
    if as_json:
        typer.echo(json.dumps(_as_json(folder, page, found)))
    else:
        _show(grid.load_study(folder), found)
        typer.echo(f"report: {page}")
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    if failures:
        raise UserError(f"{len(failures)} of {count} cells failed, the first: {failures[0]}")


def _folder(name: str, overrides: dict[str, Any]) -> Path:
    """Under runs/; a study with other settings is kept beside, not in the same place."""
    if not overrides:
        return Path("runs") / name
    told = json.dumps(overrides, sort_keys=True).encode()
    return Path("runs") / f"{name}-{hashlib.sha256(told).hexdigest()[:8]}"


def _show(plan: "Study", found: "list[Row]") -> None:
    keys = [key for key in plan.axes if key != "seed"]
    shown = tables.table(
        *(keys or ["study"]),
        "last %",
        "best %",
        "ensemble %",
        "own mix %",
        "samples",
        "teacher passes",
        "bytes moved",
        "seeds",
        title="Global accuracy over all clients: mean ± standard deviation over seeds",
    )
    for row in found:
        mean = {
            key: spread.mean if (spread := row.over_seeds("counters", key)) else None
            for key in ("samples_studied", "teacher_passes", "bytes_moved")
        }
        shown.add_row(
            *([str(row.settings[key]) for key in keys] or [plan.name]),
            _marked(row, "last"),
            _marked(row, "best"),
            tables.spread_percent(row.over_seeds("last", "ensemble")),
            tables.spread_percent(row.over_seeds("last", "own_mix")),
            *("-" if value is None else tables.amount(value) for value in mean.values()),
            f"{len(row.results)}/{len(row.cells)}",
        )
    tables.show(shown)
    typer.echo(
        "last, best: the checkpoint; * speaks for the method. ensemble: the mean of all clients' "
        "predictions, the ceiling. own mix: classes weighed as each client holds them. Both of the "
        "last checkpoint."
    )


def _marked(row: "Row", checkpoint: str) -> str:
    star = "*" if row.headline == checkpoint else " "
    return tables.spread_percent(row.over_seeds(checkpoint, "accuracy")) + star


def _as_json(folder: Path, page: Path, found: "list[Row]") -> dict[str, Any]:
    from dataclasses import asdict

    figures = {
        "last": ("last", "accuracy"),
        "best": ("best", "accuracy"),
        "ensemble": ("last", "ensemble"),
        "own_mix": ("last", "own_mix"),
        "samples_studied": ("counters", "samples_studied"),
        "teacher_passes": ("counters", "teacher_passes"),
        "bytes_moved": ("counters", "bytes_moved"),
    }
    told = []
    for row in found:
        spreads = {name: row.over_seeds(*path) for name, path in figures.items()}
        told.append(
            {
                **row.settings,
                "headline": row.headline,
                **{name: None if s is None else asdict(s) for name, s in spreads.items()},
            }
        )
    return {"directory": str(folder), "report": str(page), "rows": told}

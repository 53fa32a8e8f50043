"""``calmfed run``: one federation."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calmfed.cli import tables
from calmfed.cli.options import AsJson, Out, Set, settings_from
from calmfed.progress import Steps

if TYPE_CHECKING:
    from calmfed.simulate import Result


def run(
    source: Annotated[
        str, typer.Argument(metavar="[PRESET|FILE.toml]", help="Where the settings come from.")
    ] = "lite",
    data: Annotated[str | None, typer.Option(help="Data set, or npz:PATH.")] = None,
    method: Annotated[
        str | None, typer.Option(help="NAME[:VARIANT][,key=value ...], for example calm:12,tau=.2")
    ] = None,
    clients: Annotated[int | None, typer.Option(help="How many there are.")] = None,
    active: Annotated[int | None, typer.Option(help="How many take part in a round.")] = None,
    rounds: Annotated[int | None, typer.Option(help="How many rounds.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of every random stream.")] = None,
    set_: Set = None,
    out: Out = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Worker processes; one a core if not given. They change no number."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one federation, or go on with one that was stopped."""
    flags = {
        "data": data,
        "method": method,
        "clients": clients,
        "active": active,
        "rounds": rounds,
        "seed": seed,
    }
    settings = settings_from(set_, flags)

    from calmfed import simulate
    from calmfed.config import layered, layers_of, parse
    from calmfed.simulate.pool import cores

    config = parse(layered(*layers_of(source), settings))
    name = re.sub(r"[^\w.=]+", "-", f"{Path(source).stem}-{Path(config.data).stem}-{config.method}")
    folder = out or Path("runs") / f"{name}-{config.identity()}"
    title = f"{config.method} on {config.data}, seed {config.seed}"
    with Steps(title) as steps:
        result = simulate.run(
            config,
            directory=folder,
            workers=cores() if workers is None else workers,
            on_progress=steps.reach,
        )
    if as_json:
        typer.echo(json.dumps({"directory": str(folder), **result.told}))
    else:
        _show(result, folder)


def _show(result: "Result", folder: Path) -> None:
    told = result.told
    shown = tables.table("%, over all clients", "last checkpoint", "best checkpoint")
    labels = {
        "accuracy": "global accuracy",
        "ensemble": "ensemble of all clients",
        "own_mix": "own label mix",
    }
    for key, label in labels.items():
        shown.add_row(label, *(tables.percent(told[which][key]) for which in ("last", "best")))
    for name in told["last"]["per_architecture"]:
        shown.add_row(
            f"  {name}",
            *(tables.percent(told[which]["per_architecture"][name]) for which in ("last", "best")),
        )
    tables.show(shown)
    counters = told["counters"]
    typer.echo(
        f"{tables.amount(counters['samples_studied'])} samples studied, "
        f"{tables.amount(counters['teacher_passes'])} teacher passes, "
        f"{tables.amount(counters['bytes_moved'])}B moved, {counters['refusals']} refusals, "
        f"{told['test_samples']:,} test samples"
    )
    typer.echo(f"kept in {folder}; calmfed report {folder} makes a page of it")

"""``calmfed data``: which data sets there are, fetching them, looking at one."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from calmfed.cli import tables
from calmfed.cli.options import AsJson

app = typer.Typer(
    help="Data sets: which there are, fetching them, looking at one.", no_args_is_help=True
)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the data sets: their names, whether they are here and have a public set."""
    from calmfed.data.describe import overview

    entries = overview()
    if as_json:
        typer.echo(json.dumps([asdict(entry) for entry in entries]))
        return
    table = tables.table("name", "classes", "shape", "download", "here", "public", "what it is")
    table.columns[0].no_wrap = True
    table.columns[-1].justify = "left"
    for entry in entries:
        table.add_row(
            entry.name,
            str(entry.classes or ""),
            _shape(entry.shape),
            _size(entry.download_bytes) if entry.download_bytes else "",
            {True: "yes", False: "no", None: ""}[entry.fetched],
            "yes" if entry.public else "no",
            entry.summary,
        )
    tables.show(table)


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Data sets by name.")],
    public: Annotated[
        bool, typer.Option("--public", help="The files of the public set as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Download data sets, and check the files that are there."""
    from calmfed import data

    got = {name: [str(path) for path in data.fetch(name, public=public)] for name in names}
    if as_json:
        typer.echo(json.dumps(got))
        return
    for name, paths in got.items():
        typer.echo(f"{name}: {', '.join(paths) or 'nothing to download'}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A data set by name, or npz:PATH.")],
    as_json: AsJson = False,
) -> None:
    """Look at a data set: shapes, classes, sizes, files. Nothing is downloaded."""
    from calmfed.data.describe import describe

    about = describe(name)
    if as_json:
        typer.echo(json.dumps(asdict(about)))
        return
    facts = tables.table("", "")
    facts.show_header = False
    facts.columns[1].justify = "left"
    facts.add_row("name", about.name)
    facts.add_row("what it is", about.summary)
    facts.add_row("where", about.where)
    facts.add_row("a sample", f"{_shape(about.shape)} {about.dtype or ''}")
    if about.counts is not None:
        for part, counts in about.counts.items():
            facts.add_row(part, f"{sum(counts):,} samples")
    if about.bytes is not None:
        facts.add_row("in memory", _size(about.bytes))
    facts.add_row("public set", about.public or "none")
    for file in about.files:
        state = "" if file.present else " (not fetched)"
        facts.add_row("public file" if file.public else "file", f"{file.path}{state}")
    tables.show(facts)
    if about.counts is None:
        typer.echo(f"Not here yet: calmfed data fetch {about.name}")
        return
    classes = tables.table("label", "class", *about.counts)
    for label, word in enumerate(about.labels):
        classes.add_row(
            str(label), word, *(f"{counts[label]:,}" for counts in about.counts.values())
        )
    tables.show(classes)


def _shape(shape: tuple[int, int, int] | None) -> str:
    return "x".join(map(str, shape)) if shape else ""


def _size(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"

"""``calmfed table``: a study's table, for a terminal, a paper or a program."""

from pathlib import Path
from typing import Annotated

import typer

from calmfed.cli import tables
from calmfed.errors import UserError, nearest

FORMATS = ("text", "markdown", "latex", "csv", "tidy")


def table(
    directory: Annotated[Path, typer.Argument(help="Of a run or a study.")],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            help="text (in a file: markdown), markdown, latex, csv, or tidy: one row for each "
            "figure measured.",
        ),
    ] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file for it; else it is printed.")
    ] = None,
) -> None:
    """Print a study's table: accuracy with intervals, differences, effort, the reference."""
    if format_ not in FORMATS:
        raise UserError(f"unknown format {format_!r}: {nearest(format_, FORMATS)}")
    from calmfed.study import table as made
    from calmfed.study.subject import gather
    from calmfed.study.tidy import tidy

    subject = gather(directory)
    if format_ == "text" and out is None:
        header, rows = made.laid_out(made.lines(subject))
        shown = tables.table(*header)
        for row in rows:
            shown.add_row(*row)
        tables.show(shown)
        typer.echo(made.LEGEND)
        return
    if format_ == "tidy":
        text = tidy(subject)
    else:
        write = {"markdown": made.markdown, "latex": made.latex, "csv": made.as_csv}
        text = write.get(format_, made.markdown)(made.lines(subject))
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(f"table: {out}")

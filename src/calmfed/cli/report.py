"""``calmfed report``: a page of a run or a study."""

import json
from pathlib import Path
from typing import Annotated

import typer

from calmfed.cli.options import AsJson
from calmfed.progress import Steps


def report(
    directory: Annotated[Path, typer.Argument(help="Of a run or a study.")],
    as_json: AsJson = False,
) -> None:
    """Make one self-contained HTML page of a run or a study."""
    from calmfed.study.report import write_report

    with Steps("writing the report") as steps:
        page = write_report(directory, steps.reach)
    typer.echo(json.dumps({"report": str(page)}) if as_json else f"report: {page}")

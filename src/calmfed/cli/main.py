"""The program ``calmfed``: its groups of commands, and how a user's mistake is told."""

import signal
import sys
from typing import Annotated, NoReturn

import typer

import calmfed
from calmfed.cli import data, listing, report, run, study, table
from calmfed.errors import Interrupted, UserError, from_system

app = typer.Typer(
    help="Unlike models with private, differently skewed data teach each other: no server.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("study")(study.study)
app.command("table")(table.table)
app.command("report")(report.report)
app.command("list")(listing.list_)
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Print the version if that is asked for."""
    if show:
        typer.echo(f"calmfed {calmfed.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the program; a user's mistake is one sentence and exit code 2."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except UserError as error:
        _complain(error)
        sys.exit(2)
    except OSError as error:  # a full disk, a folder that may not be written to
        _complain(from_system(error))
        sys.exit(2)
    except Interrupted as stopped:
        _complain(stopped)
        sys.exit(130)


def _complain(what: Exception) -> None:
    print(f"calmfed: {what}", file=sys.stderr)  # noqa: T201 - this is the program's voice


def _terminate(number: int, frame: object) -> NoReturn:
    """End by way of all that has to be tidied up."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()

"""Tables and figures on a terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from calmfed.study.summary import Spread


def table(*columns: str, title: str | None = None) -> "Table":
    """A table without lines; every column but the first stands to the right."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        made.add_column(column, overflow="fold", justify="left" if index == 0 else "right")
    return made


def show(made: "Table") -> None:
    """Print a table; where there is no terminal it is as wide as it needs to be."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, emoji=False, highlight=False, width=200)
    console.print(made)


def percent(value: float) -> str:
    """A share of one, in per cent.

    >>> percent(0.5)
    '50.0'
    """
    return f"{100 * value:.1f}"


def spread_percent(spread: "Spread | None") -> str:
    """Mean and spread over seeds, in per cent; a dash where nothing was run."""
    if spread is None:
        return "-"
    if spread.deviation is None:
        return percent(spread.mean)
    return f"{percent(spread.mean)} ± {percent(spread.deviation)}"


def amount(value: float) -> str:
    """A large number in few digits.

    >>> amount(950), amount(63048), amount(175661120)
    ('950', '63.0 k', '175.7 M')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f}"

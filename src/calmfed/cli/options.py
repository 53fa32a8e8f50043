"""Options that several commands share, and turning them into settings."""

from pathlib import Path
from typing import Annotated, Any

import typer

from calmfed.errors import UserError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Directory to keep it in and to go on from; under runs/ if not given.",
        show_default=False,
    ),
]

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Any setting, as often as needed.",
        show_default=False,
    ),
]


def split_pair(flag: str, pair: str) -> tuple[str, str]:
    """The key and the value behind a flag."""
    key, equals, value = pair.partition("=")
    if not equals:
        raise UserError(f"{flag} {pair}: write it as KEY=VALUE")
    return key.strip(), value.strip()


def settings_from(pairs: list[str] | None, flags: dict[str, Any]) -> dict[str, Any]:
    """The settings that ``--set`` and the other flags give; flags that were not used are None."""
    from calmfed.config import check_keys, read_value

    settings = {}
    for pair in pairs or []:
        key, value = split_pair("--set", pair)
        settings[key] = read_value(value)
    given = {key: value for key, value in flags.items() if value is not None}
    if twice := sorted(settings.keys() & given.keys()):
        raise UserError(f"{twice[0]} is given twice: with --set and by a flag of its own")
    settings |= given
    check_keys(settings)
    return settings

"""A part of a study's grid, by names."""

from collections.abc import Sequence
from typing import Any

from calmfed.errors import UserError, nearest
from calmfed.study.grid import Cell, Study


def only(study: Study, wanted: Sequence[tuple[str, str]]) -> tuple[Cell, ...]:
    """The cells of a study whose settings are among those named.

    Args:
        study: The study.
        wanted: For some keys of its grid, values as their names, separated by commas.
    """
    cells, seen = study.cells, set()
    for key, text in wanted:
        if key in seen:
            raise UserError(f"--only {key} is given twice: put its values behind one, with commas")
        seen.add(key)
        if key not in study.axes:
            raise UserError(
                f"--only {key}: not in the grid of {study.name}: {nearest(key, study.axes)}"
            )
        known = {_name(value): value for value in study.axes[key]}
        values = [known[name] for name in _taken_apart(key, text, list(known))]
        cells = tuple(cell for cell in cells if cell.settings[key] in values)
    return cells


def _name(value: Any) -> str:
    """A value as TOML and ``--set`` write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _taken_apart(key: str, text: str, known: list[str]) -> list[str]:
    """The names in ``calm,ce=prior,local``, which may hold commas: the longest that is known."""
    parts, found = text.split(","), []
    while parts:
        for length in range(len(parts), 0, -1):
            name = ",".join(parts[:length]).strip()
            if name in known:
                found.append(name)
                parts = parts[length:]
                break
        else:
            name = parts[0].strip()
            raise UserError(f"--only {key}: no {name!r} in the grid: {nearest(name, known)}")
    return found

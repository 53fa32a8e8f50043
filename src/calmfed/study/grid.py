"""A study: a grid of settings, every cell of which is one federation."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from calmfed import presets
from calmfed.config import Config, check_keys, layered, parse, read_toml, with_preset
from calmfed.errors import DataError, UserError, nearest
from calmfed.simulate.checkpoint import write_json
from calmfed.simulate.record import environment


@dataclass(frozen=True)
class Cell:
    """One federation of a study.

    Attributes:
        name: The folder it is kept in.
        settings: What sets it apart from the other cells, by key.
        config: All of it.
    """

    name: str
    settings: dict[str, Any]
    config: Config


@dataclass(frozen=True)
class Study:
    """All cells, in the order in which they are run: seed by seed, so that early tables are whole.

    Attributes:
        name: What the report calls it.
        axes: The values of each key that varies.
        cells: The product of the axes.
    """

    name: str
    axes: dict[str, list[Any]]
    cells: tuple[Cell, ...]


def read_study(source: str, overrides: Mapping[str, Any] | None = None) -> Study:
    """A study from a preset's name or a TOML file.

    Args:
        source: Either; what ends in ``.toml`` is a file.
        overrides: Settings that win over the file's; one that is an axis of the grid replaces it.
    """
    if source.endswith(".toml"):
        return expand(Path(source).stem, read_toml(Path(source)), overrides or {})
    found = presets.load(source)
    if not presets.is_study(found):
        raise UserError(
            f"preset {source!r} is one federation: start it with `calmfed run {source}`"
        )
    return expand(source, found, overrides or {})


def expand(name: str, told: Mapping[str, Any], overrides: Mapping[str, Any]) -> Study:
    """Lay a study's grid out into cells, each checked before any is run.

    Args:
        name: Of the study.
        told: ``base``: settings that all cells share, perhaps with a ``preset`` under them;
            ``grid``: a list of values for each key that varies.
        overrides: See `read_study`.
    """
    for key in told:
        if key not in ("summary", "base", "grid"):
            raise UserError(
                f"study {name}: unknown table {key!r}: {nearest(key, ['base', 'grid'])}"
            )
    base = with_preset(told.get("base", {}))
    axes = {
        key: values if isinstance(values, list) else [values]
        for key, values in told.get("grid", {}).items()
    }
    check_keys(axes)
    for key, value in overrides.items():
        if key in axes:
            axes[key] = value if isinstance(value, list) else [value]
    if not axes or not all(axes.values()):
        raise UserError(f"study {name}: [grid] must list at least one value for each of its keys")
    shared = {key: value for key, value in overrides.items() if key not in axes}
    ordered = sorted(axes, key=lambda key: key != "seed")
    cells = []
    for values in product(*(axes[key] for key in ordered)):
        varying = dict(zip(ordered, values, strict=True))
        settings = {key: varying[key] for key in axes}
        config = parse(layered(*base, shared, settings))
        cells.append(Cell(_folder_name(settings), settings, config))
    _refuse_twins(name, cells)
    return Study(name, axes, tuple(cells))


def save_study(study: Study, folder: Path) -> None:
    """Write ``study.json``: which cells there are, for those who read the results."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be used as a directory: {error.strerror}") from None
    path = folder / "study.json"
    if path.exists():
        before = load_study(folder)
        if before.name != study.name:
            raise UserError(
                f"{folder} holds the study {before.name!r}, not {study.name!r}: "
                "choose another directory"
            )
        study = Study(study.name, _joined(before.axes, study.axes), _united(before, study))
    elif any(folder.iterdir()):
        raise UserError(f"{folder} is not empty and holds no study: choose another directory")
    told = {
        "name": study.name,
        "axes": study.axes,
        "cells": [
            {"name": c.name, "settings": c.settings, "config": json_config(c.config)}
            for c in study.cells
        ],
        "environment": environment(),
    }
    write_json(path, told)


def load_study(folder: Path) -> Study:
    """Read ``study.json`` back."""
    path = folder / "study.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        cells = tuple(Cell(c["name"], c["settings"], parse(c["config"])) for c in told["cells"])
        return Study(told["name"], told["axes"], cells)
    except FileNotFoundError:
        raise UserError(f"{folder} holds no study: there is no study.json") from None
    except UserError as error:  # of a method or model, say, that only its own program registers
        raise UserError(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}") from None


def json_config(config: Config) -> dict[str, Any]:
    """A configuration as JSON holds it."""
    return {**asdict(config), "models": list(config.models)}


def _united(before: Study, now: Study) -> tuple[Cell, ...]:
    """The cells of both: a study that is started for a part keeps what it had."""
    known = {cell.name: cell for cell in before.cells}
    for cell in now.cells:
        if cell.name in known and known[cell.name].config != cell.config:
            raise UserError(
                f"cell {cell.name} was begun with other settings: choose another directory"
            )
        known[cell.name] = cell
    return tuple(known.values())


def _joined(before: dict[str, list[Any]], now: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {
        key: [*before.get(key, []), *(v for v in values if v not in before.get(key, []))]
        for key, values in now.items()
    }


def _folder_name(settings: Mapping[str, Any]) -> str:
    """A readable folder name: the values, seed last, everything unusual as a dash."""
    ordered = sorted(settings, key=lambda key: key == "seed")
    parts = [f"seed{settings[k]}" if k == "seed" else str(settings[k]) for k in ordered]
    return re.sub(r"[^A-Za-z0-9.=_]+", "-", "_".join(parts)).strip("-")


def _refuse_twins(name: str, cells: list[Cell]) -> None:
    seen: dict[str, Cell] = {}
    for cell in cells:
        if cell.name in seen:
            raise UserError(
                f"study {name}: two cells would be kept in one folder {cell.name}: "
                f"{seen[cell.name].settings} and {cell.settings}"
            )
        seen[cell.name] = cell

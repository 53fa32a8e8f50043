"""A study: a grid of settings, every cell of which is one federation."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calmfed import presets
from calmfed.config import (
    KEYS,
    Config,
    check_keys,
    layered,
    parse,
    read_toml,
    table,
    with_preset,
)
from calmfed.errors import DataError, UserError, nearest
from calmfed.simulate.checkpoint import read_json, write_json
from calmfed.simulate.lock import LOCK
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


_STUDY: TypeAdapter[Study] = TypeAdapter(Study)


def read_study(
    source: str, overrides: Mapping[str, Any] | None = None, scale: str | None = None
) -> Study:
    """A study from a preset's name or a TOML file.

    Args:
        source: Either; what ends in ``.toml`` is a file.
        overrides: Settings that win over the file's; one that is an axis of the grid replaces it.
        scale: Which of its scales, if it has any; the first if not given.
    """
    if source.endswith(".toml"):
        return expand(Path(source).stem, read_toml(Path(source)), overrides or {}, scale)
    found = presets.load(source)
    if not presets.is_study(found):
        raise UserError(
            f"preset {source!r} is one federation: start it with `calmfed run {source}`"
        )
    return expand(source, found, overrides or {}, scale)


def expand(
    name: str, told: Mapping[str, Any], overrides: Mapping[str, Any], scale: str | None = None
) -> Study:
    """Lay a study's grid out into cells, each checked before any is run.

    Args:
        name: Of the study.
        told: ``base``: settings that all cells share, perhaps with a ``preset`` under them;
            ``grid``: a list of values for each key that varies; ``scale``: by name, more of both.
        overrides: See `read_study`.
        scale: See `read_study`.
    """
    _check_tables(name, told, ("summary", "base", "grid", "scale"))
    scales = table(told.get("scale", {}), "scale")
    base, grid = table(told.get("base", {}), "base"), table(told.get("grid", {}), "grid")
    if scale is not None and scale not in scales:
        raise UserError(
            f"study {name} has no scale {scale!r}: {nearest(scale, scales)}"
            if scales
            else f"study {name} has no scales, got {scale!r}"
        )
    if scales:
        chosen_scale = scale or next(iter(scales))
        name = f"{name}-{chosen_scale}"
        more = table(scales[chosen_scale], f"scale.{chosen_scale}")
        _check_tables(name, more, ("base", "grid"))
        base |= table(more.get("base", {}), "base")
        grid |= table(more.get("grid", {}), "grid")
    layers = with_preset(base)
    axes = {key: values if isinstance(values, list) else [values] for key, values in grid.items()}
    check_keys(axes)
    for key, value in overrides.items():
        # for most keys a list can only mean that they vary
        varies = isinstance(value, list) and (
            key != "models" or any(isinstance(names, list) for names in value)
        )
        if key in axes or varies:
            axes[key] = value if isinstance(value, list) else [value]
    if not axes or not all(axes.values()):
        raise UserError(f"study {name}: [grid] must list at least one value for each of its keys")
    for key, values in axes.items():
        if twice := [value for place, value in enumerate(values) if value in values[:place]]:
            raise UserError(f"study {name}: [grid] lists {key} = {twice[0]!r} twice")
    shared = {key: value for key, value in overrides.items() if key not in axes}
    ordered = sorted(axes, key=lambda key: key != "seed")
    cells = []
    for chosen in product(*(axes[key] for key in ordered)):
        varying = dict(zip(ordered, chosen, strict=True))
        settings = {key: varying[key] for key in axes}
        config = parse(layered(*layers, shared, settings))
        cells.append(Cell(_folder_name(settings), settings, config))
    _refuse_twins(name, cells)
    return Study(name, axes, tuple(cells))


def _check_tables(name: str, told: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in told:
        if key not in known:
            tables = [table for table in known if table != "summary"]
            raise UserError(f"study {name}: unknown table {key!r}: {nearest(key, tables)}")


def save_study(study: Study, folder: Path) -> Study:
    """Write ``study.json``: which cells there are, for those who read the results.

    A directory may have been begun with another part or version of the grid: it keeps all cells
    that it ever had, each federation once.

    Returns:
        The cells of ``study``, under the names by which the directory knows them.
    """
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
        known = {cell.config: cell for cell in before.cells}
        study = replace(study, cells=tuple(known.get(c.config, c) for c in study.cells))
        whole = _united(before, study)
    else:
        refuse_strange(folder)
        whole = study
    told = {
        "name": whole.name,
        "axes": whole.axes,
        "cells": [
            {"name": c.name, "settings": c.settings, "config": json_config(c.config)}
            for c in whole.cells
        ],
        "environment": environment(),
    }
    write_json(path, told)
    return study


def refuse_strange(folder: Path) -> None:
    """Refuse a directory in which something else than a study lies, before touching it."""
    if not folder.is_dir() or (folder / "study.json").exists():
        return
    if any(held.name not in (LOCK, "study.json.part") for held in folder.iterdir()):
        raise UserError(f"{folder} is not empty and holds no study: choose another directory")


def load_study(folder: Path) -> Study:
    """Read ``study.json`` back."""
    path = folder / "study.json"
    try:
        told = read_json(path, "a study")
        return _STUDY.validate_python({key: told.get(key) for key in ("name", "axes", "cells")})
    except FileNotFoundError:
        raise UserError(f"{folder} holds no study: there is no study.json") from None
    except ValidationError as error:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, UserError):
            # of a method or model, say, that only its own program registers
            raise UserError(f"{path}: {cause}") from None
        raise DataError(f"{path} is damaged: {first['msg'].lower()}") from None


def json_config(config: Config) -> dict[str, Any]:
    """A configuration as JSON holds it."""
    return {**asdict(config), "models": list(config.models)}


def _united(before: Study, now: Study) -> Study:
    """The cells of both, told apart by every setting in which any two of them differ."""
    cells = {cell.name: cell for cell in before.cells}
    for cell in now.cells:
        if cells.setdefault(cell.name, cell).config != cell.config:
            raise UserError(
                f"cell {cell.name} was begun with other settings: choose another directory"
            )
    told = [json_config(cell.config) for cell in cells.values()]
    named = [*before.axes, *now.axes]
    differing = [key for key in KEYS if any(config[key] != told[0][key] for config in told)]
    keys = list(dict.fromkeys([*named, *differing]))
    united_axes: dict[str, list[Any]] = {key: [] for key in keys}
    for config in told:
        for key, values in united_axes.items():
            if config[key] not in values:
                values.append(config[key])
    united = (
        replace(cell, settings={key: config[key] for key in keys})
        for cell, config in zip(cells.values(), told, strict=True)
    )
    return Study(before.name, united_axes, tuple(united))


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

"""Configurations by name: TOML files beside this one, for `calmfed run` and `calmfed study`."""

import tomllib
from importlib import resources
from typing import Any

from calmfed.errors import UserError, nearest


def names() -> list[str]:
    """All presets."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))


def load(name: str) -> dict[str, Any]:
    """A preset as the dictionary that its TOML file holds."""
    if name not in names():
        raise UserError(f"unknown preset {name!r}: {nearest(name, names())}")
    return tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"))


def is_study(preset: dict[str, Any]) -> bool:
    """Whether it is a grid for `calmfed study` rather than one federation."""
    return "grid" in preset

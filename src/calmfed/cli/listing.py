"""``calmfed list``: what there is by name."""

import json
from collections.abc import Callable
from typing import Annotated

import typer

from calmfed.cli import tables
from calmfed.cli.options import AsJson
from calmfed.errors import UserError, nearest


def list_(
    what: Annotated[str, typer.Argument(metavar="methods|models|rules|presets")],
    as_json: AsJson = False,
) -> None:
    """List methods, models, rules or presets."""
    if what not in _LISTS:
        raise UserError(f"there is no list of {what!r}: {nearest(what, _LISTS)}")
    entries = _LISTS[what]()
    if as_json:
        typer.echo(json.dumps([{"name": name, "summary": text} for name, text in entries]))
        return
    shown = tables.table("name", "what it is")
    shown.columns[0].no_wrap = True
    shown.columns[1].justify = "left"
    for name, text in entries:
        shown.add_row(name, text)
    tables.show(shown)


Entries = list[tuple[str, str]]


def _methods() -> Entries:
    from calmfed.methods import methods

    entries = []
    for name, method in methods().items():
        entries.append((name, method.summary))
        entries += [(f"{name}:{variant}", text) for variant, text in method.variants.items()]
    return entries


def _models() -> Entries:
    from calmfed import models

    def described(name: str) -> str:
        parameters = sum(p.numel() for p in models.create(name).parameters())
        return f"{parameters:,} parameters at 3 channels, 10 classes, width 1"

    return [(name, described(name)) for name in models.names()]


def _rules() -> Entries:
    from dataclasses import fields

    from calmfed import rules

    entries = []
    for rule in (rules.Calm, rules.ConfidenceWeighted, rules.HardFilter, rules.Uniform):
        settings = ", ".join(f"{f.name}={f.default:g}" for f in fields(rule))
        summary = (rule.__doc__ or "").splitlines()[0].rstrip(".")
        entries.append((f"{rule.__name__}({settings})", summary))
    return entries


def _presets() -> Entries:
    from calmfed import presets

    entries = []
    for name in presets.names():
        found = presets.load(name)
        command = "study" if presets.is_study(found) else "run"
        entries.append((name, f"calmfed {command} {name}: {found['summary']}"))
    return entries


_LISTS: dict[str, Callable[[], Entries]] = {
    "methods": _methods,
    "models": _models,
    "presets": _presets,
    "rules": _rules,
}

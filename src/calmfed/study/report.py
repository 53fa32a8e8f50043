"""The report: one HTML file that needs nothing but itself."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import calmfed
from calmfed.errors import UserError
from calmfed.study import sections, wording
from calmfed.study.figures import styles
from calmfed.study.subject import Subject, gather

NAME = "report.html"

OnSection = Callable[[int, int], None]
"""Called with the sections that are made, and how many there are."""


def write_report(directory: Path, on_section: OnSection = lambda done, total: None) -> Path:
    """Write the report of a study's or a run's directory into it.

    It can be written at any time: what is not finished is shown as dashes and said so.

    Args:
        directory: With a ``study.json``, or with the ``config.json`` of a run.
        on_section: Told how far it is.

    Returns:
        The path of the HTML file.
    """
    path = directory / NAME
    page = render(gather(directory), on_section)
    beside = path.with_suffix(".html.part")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    return path


def render(subject: Subject, on_section: OnSection = lambda done, total: None) -> str:
    """The page about a subject; the same subject gives the same page."""
    look = styles(subject.labels)
    makers: dict[str, Callable[[], Any]] = {
        "overview": lambda: sections.overview(subject),
        "results": lambda: sections.results(subject),
        "curves": lambda: sections.curves(subject, look),
        "holdings": lambda: sections.holdings(subject),
        "classes": lambda: sections.classes(subject, look),
        "architectures": lambda: sections.architectures(subject),
        "trust": lambda: sections.trust(subject),
        "runs": lambda: sections.runs(subject),
        "settings": lambda: sections.settings(subject),
    }
    places: dict[str, Any] = {}
    for name, make in makers.items():
        on_section(len(places), len(makers))
        places[name] = make()
    page = _environment().get_template("report.html.j2")
    return page.render(subject=subject, version=calmfed.__version__, **places)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("calmfed.study"),
        autoescape=True,
        undefined=StrictUndefined,
        lstrip_blocks=True,
    )
    for name in ("percent", "points", "fraction", "compact", "in_bytes", "mean_count", "plural"):
        environment.filters[name] = getattr(wording, name)
    environment.filters["breakable"] = _breakable
    environment.filters["svg"] = Markup  # drawn by us, all text in it escaped by the drawing
    environment.globals["dash"] = wording.DASH
    return environment


def _breakable(text: str) -> Markup:
    """Let a long method or path go on in the next line where it has a joint."""
    parts = re.split(r"(?<=[,/:])", text)
    return Markup("<wbr>").join(parts)  # which escapes the parts

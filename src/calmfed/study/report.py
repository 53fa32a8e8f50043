"""The report: one HTML file that needs nothing but itself."""

import os
import re
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


def write_report(directory: Path) -> Path:
    """Write the report of a study's or a run's directory into it.

    It can be written at any time: what is not finished is shown as dashes and said so.

    Args:
        directory: With a ``study.json``, or with the ``config.json`` of a run.

    Returns:
        The path of the HTML file.
    """
    path = directory / NAME
    page = render(gather(directory))
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


def render(subject: Subject) -> str:
    """The page about a subject; the same subject gives the same page."""
    look = styles(subject.labels)
    places: dict[str, Any] = {
        "overview": sections.overview(subject),
        "results": sections.results(subject),
        "curves": sections.curves(subject, look),
        "holdings": sections.holdings(subject),
        "classes": sections.classes(subject, look),
        "architectures": sections.architectures(subject),
        "trust": sections.trust(subject),
        "runs": sections.runs(subject),
        "settings": sections.settings(subject),
    }
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

"""The sections of the report: each is one function from its subject to what its place shows.

A new section is a function here, a line in `calmfed.study.report.render`, and a place in
``templates/report.html.j2``.
"""

from calmfed.study.sections.architectures import architectures
from calmfed.study.sections.classes import classes
from calmfed.study.sections.curves import curves
from calmfed.study.sections.holdings import holdings
from calmfed.study.sections.overview import overview
from calmfed.study.sections.results import results
from calmfed.study.sections.runs import runs
from calmfed.study.sections.settings import settings
from calmfed.study.sections.trust import trust

__all__ = [
    "architectures",
    "classes",
    "curves",
    "holdings",
    "overview",
    "results",
    "runs",
    "settings",
    "trust",
]

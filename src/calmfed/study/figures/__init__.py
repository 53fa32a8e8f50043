"""The report's figures, each a function from numbers to an inline SVG."""

from calmfed.study.figures.canvas import SVG
from calmfed.study.figures.classes import Pair, per_class
from calmfed.study.figures.holdings import who_holds_what
from calmfed.study.figures.lines import Line, over_rounds
from calmfed.study.figures.palette import Style, styles
from calmfed.study.figures.trust import trust_histogram

__all__ = [
    "SVG",
    "Line",
    "Pair",
    "Style",
    "over_rounds",
    "per_class",
    "styles",
    "trust_histogram",
    "who_holds_what",
]

"""From a matplotlib figure to an SVG that can stand inside a page beside others of its kind."""

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from calmfed.study.figures.palette import FAINT, GRID, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SVG = str
"""An ``<svg>`` element as text."""

WIDTH = 4.2
"""Inches of a figure; on a screen of 400 px that leaves its text at about 11 px."""

FONT = 9.8
"""Points of text in a figure."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read out, found and copied
    "text.parse_math": False,  # a dollar sign in a class name is a dollar sign
    "font.size": FONT,
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": FONT,
    "ytick.labelsize": FONT,
    "text.color": INK,
}
_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def draw(name: str, says: str, height: float, paint: "Callable[[Figure, Axes], None]") -> SVG:
    """Paint on a fresh canvas and give the SVG; the same input gives the same text.

    Args:
        name: Of the figure, unique within its page: its ids begin with it.
        says: What a screen reader says in its place.
        height: In inches.
        paint: Puts the content on the figure's axes.
    """
    # matplotlib takes a second to import, and only reports need it; no pyplot: no global state
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: Any = {**_STYLE, "svg.hashsalt": name}
    with rc_context(settings), warnings.catch_warnings():
        # its own font lacks the glyph, which the browser's fonts may well have
        warnings.filterwarnings("ignore", message=".*Glyph.*missing from")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        paint(figure, axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata=_METADATA)
    return _inlined(written.getvalue(), name, says)


def shortened(label: str, longest: int) -> str:
    """A name of at most so many letters; what tells names apart is often at their ends.

    >>> shortened("adipose tissue, type 2", 14)
    'adipose …ype 2'
    """
    return label if len(label) <= longest else f"{label[: longest - 6]}…{label[-5:]}"


def _inlined(text: str, name: str, says: str) -> SVG:
    """Make a whole SVG document an element of a page: own ids, no prolog, no style for all."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    opening = re.match(r"<svg[^>]*>", text)
    assert opening is not None  # noqa: S101 - the text begins with it
    box = re.search(r'viewBox="([^"]*)"', opening.group())
    assert box is not None  # noqa: S101 - matplotlib writes one
    label = says.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    mine = (
        f'<svg class="figure" viewBox="{box.group(1)}" role="img" aria-label="{label}" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    text = mine + text[opening.end() :]
    return re.sub(r"\n\s*", "\n", text).strip()

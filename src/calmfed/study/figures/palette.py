"""Which colour, dash and marker a method has, in all figures alike."""

from collections.abc import Iterable
from dataclasses import dataclass

# Okabe and Ito's colours, which the colour-blind tell apart, without the yellow that white swallows
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7b52ab")
_DASHES = ("", "5 2", "1.5 1.5", "6 1.5 1.5 1.5")
_MARKERS = ("o", "s", "^", "D")

ALONE = "#5f6670"  # training alone is what everything is measured against: no colour
RIGHT, WRONG = "#0072b2", "#d55e00"
INK, FAINT, GRID = "#30343b", "#6b7280", "#e3e6ea"


@dataclass(frozen=True)
class Style:
    """How a method is drawn.

    Attributes:
        colour: As CSS writes it.
        dash: Lengths of strokes and gaps, as SVG writes them; empty for a whole line.
        marker: As matplotlib names it.
    """

    colour: str
    dash: str
    marker: str

    @property
    def pattern(self) -> str | tuple[float, tuple[float, ...]]:
        """The dash as matplotlib writes it."""
        return (0.0, tuple(float(part) for part in self.dash.split())) if self.dash else "-"


def styles(labels: Iterable[str]) -> dict[str, Style]:
    """A style for each label: colours first, and when they run out, other dashes and markers.

    >>> [style.colour for style in styles(["local", "calm"]).values()]
    ['#5f6670', '#0072b2']
    """
    found: dict[str, Style] = {}
    for label in labels:
        if label == "local":
            found[label] = Style(ALONE, "", "o")
            continue
        place = len(found.keys() - {"local"})
        turn = place // len(_COLOURS)
        found.setdefault(
            label,
            Style(
                _COLOURS[place % len(_COLOURS)],
                _DASHES[turn % len(_DASHES)],
                _MARKERS[turn % len(_MARKERS)],
            ),
        )
    return found

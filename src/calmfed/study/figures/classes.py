"""Accuracy by class, alone and with peers: two marks a class, and the way between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calmfed.study.figures.canvas import SVG, draw, shortened
from calmfed.study.figures.palette import ALONE, FAINT, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED = 30
"""Up to so many classes are called by their names; more are drawn closer."""

_LONGEST = 18  # letters of a class name


@dataclass(frozen=True)
class Pair:
    """A class.

    Attributes:
        label: Its name.
        alone: Accuracy of clients that train alone; None where that was not run.
        peers: With peers; None where it was not measured, as of a class that the test set lacks.
    """

    label: str
    alone: float | None
    peers: float | None


def per_class(name: str, says: str, pairs: Sequence[Pair], style: Style) -> SVG:
    """Draw each class as a row, its accuracy in percent to the right."""
    named = len(pairs) <= NAMED
    pitch = (0.225 if len(pairs) <= 15 else 0.19) if named else max(0.022, 4.4 / len(pairs))

    def paint(figure: "Figure", axes: "Axes") -> None:
        for place, pair in enumerate(pairs):
            if pair.alone is not None and pair.peers is not None:
                axes.plot(
                    [100 * pair.alone, 100 * pair.peers],
                    [place, place],
                    color=style.colour,
                    linewidth=2.2 if named else 1,
                    alpha=0.4,
                    solid_capstyle="butt",
                )
        size = 5.5 if named else 2.4
        for values, colour, filled in (
            ([pair.alone for pair in pairs], ALONE, False),
            ([pair.peers for pair in pairs], style.colour, True),
        ):
            known = [(place, v) for place, v in enumerate(values) if v is not None]
            axes.plot(
                [100 * v for _, v in known],
                [place for place, _ in known],
                linestyle="none",
                marker="o",
                markersize=size,
                markeredgewidth=1.3 if named else 0.7,
                markeredgecolor=colour,
                markerfacecolor=colour if filled else "white",
                clip_on=False,
                zorder=4 if filled else 3,
            )
        axes.set_xlim(0, 100)
        axes.set_ylim(len(pairs) - 0.4, -0.6)
        if named:
            axes.set_yticks(range(len(pairs)), [shortened(pair.label, _LONGEST) for pair in pairs])
        else:
            axes.set_yticks([])
            axes.set_ylabel(f"{len(pairs)} classes", color=FAINT)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=True, axis="x")
        axes.set_xlabel("accuracy, %")

    return draw(name, says, len(pairs) * pitch + 0.65, paint)

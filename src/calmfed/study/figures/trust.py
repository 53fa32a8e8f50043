"""The histogram of trust, of right and of wrong targets."""

from typing import TYPE_CHECKING

from calmfed.study.figures.canvas import SVG, draw
from calmfed.study.figures.palette import RIGHT, WRONG
from calmfed.study.trust import Histogram, Separation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def trust_histogram(name: str, says: str, found: Histogram, scores: Separation, axis: str) -> SVG:
    """Draw shares by score, each group normalised by itself, and its median as a dashed line."""

    def paint(figure: "Figure", axes: "Axes") -> None:
        groups = (
            (found.right, scores.median_right, RIGHT, 0.35),
            (found.wrong, scores.median_wrong, WRONG, 0.12),
        )
        for shares, median, colour, opacity in groups:
            if shares is None:
                continue
            axes.stairs(100 * shares, found.edges, color=colour, alpha=opacity, fill=True)
            axes.stairs(100 * shares, found.edges, color=colour, linewidth=1.5)
            if median is not None:
                axes.axvline(median, color=colour, linewidth=1.3, linestyle=(0, (4, 2)))
        axes.set_xlim(float(found.edges[0]), float(found.edges[-1]))
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="x", nbins=6)
        axes.grid(visible=True, axis="y")
        axes.set_xlabel(axis)
        axes.set_ylabel("share of the group, %")

    return draw(name, says, 2.6, paint)

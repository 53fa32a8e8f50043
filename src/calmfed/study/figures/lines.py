"""Accuracy over rounds: a line for each method, and a band of one standard deviation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calmfed.study.figures.canvas import SVG, draw
from calmfed.study.figures.palette import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """A line over rounds.

    Attributes:
        label: Of the method.
        style: How it is drawn.
        rounds: Where it was measured.
        mean: Over seeds.
        deviation: Over seeds; None for a single one.
    """

    label: str
    style: Style
    rounds: Sequence[int]
    mean: Sequence[float]
    deviation: Sequence[float] | None


def over_rounds(name: str, says: str, lines: Sequence[Line], top: float, bands: bool) -> SVG:
    """Draw shares over rounds, in percent.

    Args:
        name: Unique within the page.
        says: For screen readers.
        lines: What to draw.
        top: The end of the axis, a share: figures that stand side by side have the same.
        bands: Whether to draw the spread.
    """

    def paint(figure: "Figure", axes: "Axes") -> None:
        from matplotlib.ticker import MaxNLocator

        last = max((line.rounds[-1] for line in lines), default=1)
        for line in lines:
            mean = 100 * np.asarray(line.mean)
            crowded = len(line.rounds) > 15
            axes.plot(
                line.rounds,
                mean,
                color=line.style.colour,
                linestyle=line.style.pattern,
                linewidth=1.8,
                marker=line.style.marker,
                markersize=4.2,
                markevery=max(1, len(line.rounds) // 8) if crowded else 1,
                clip_on=False,
                zorder=3,
            )
            if bands and line.deviation is not None:
                spread = 100 * np.asarray(line.deviation)
                axes.fill_between(
                    line.rounds,
                    np.clip(mean - spread, 0, 100),
                    np.clip(mean + spread, 0, 100),
                    color=line.style.colour,
                    alpha=0.15,
                    linewidth=0,
                )
        axes.set_xlim(0, max(last, 1))
        axes.set_ylim(0, 100 * top)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
        axes.grid(visible=True, axis="y")
        axes.set_xlabel("round")
        axes.set_ylabel("accuracy, %")

    return draw(name, says, 2.9, paint)

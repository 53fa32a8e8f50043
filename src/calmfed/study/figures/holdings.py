"""Who holds what: samples by client and class, as a heat map that carries its numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calmfed.study.figures.canvas import FONT, SVG, WIDTH, draw, shortened
from calmfed.study.figures.palette import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEVELS = 24
_LONGEST = 14  # letters of a class name


def who_holds_what(
    name: str, says: str, counts: Mapping[str, Sequence[int]], labels: Sequence[str]
) -> SVG:
    """Draw how many samples of each class [C] each client holds.

    Numbers stand in the fields if there is room for them, and names beside the axes as far as
    they fit. Colour goes by the square root, so that a few samples differ from none.
    """
    table = np.array(list(counts.values()))
    clients, classes = table.shape
    roomy = clients <= 25
    pitch = 0.26 if roomy else max(0.055, 5.2 / clients)

    def paint(figure: "Figure", axes: "Axes") -> None:
        _fields(axes, table)
        short = [shortened(label, _LONGEST) for label in labels]
        upright = _upright(short)
        every = 1 if classes <= 25 else -(-classes // 20)
        axes.set_xticks(
            range(0, classes, every),
            short[::every],
            rotation=0 if upright else 90,
            va="bottom",
        )
        gap = 1 if roomy else -(-clients // 20)
        axes.set_yticks(range(0, clients, gap), list(counts)[::gap])
        axes.tick_params(length=0, pad=3)
        axes.xaxis.tick_top()
        axes.set_xlim(-0.5, classes - 0.5)
        axes.set_ylim(clients - 0.5, -0.5)
        for side in axes.spines.values():
            side.set_visible(False)
        if roomy:
            _numbers(axes, table)
            beside = axes.secondary_yaxis("right")
            beside.set_yticks(range(clients), [f"{n:,}" for n in table.sum(axis=1)])
            beside.tick_params(length=0, pad=3, labelcolor=FAINT)
            beside.spines["right"].set_visible(False)

    head = 0.35 if _upright([shortened(label, _LONGEST) for label in labels]) else 1.0
    return draw(name, says, clients * pitch + head, paint)


def _fields(axes: "Axes", table: NDArray[np.int64]) -> None:
    """One path for each level of colour, which stays small and sharp where an image would not."""
    from matplotlib.colors import to_hex
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    level = np.ceil(np.sqrt(table / max(table.max(), 1)) * _LEVELS).astype(int)
    half = 0.47 if max(table.shape) <= 25 else 0.5
    corners = half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])
    codes = np.array([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], dtype=np.uint8)
    for step in range(_LEVELS + 1):
        centres = np.argwhere(level == step)[:, ::-1]  # a row is a y
        if not len(centres):
            continue
        squares = (centres[:, None, :] + corners).reshape(-1, 2)
        axes.add_patch(
            PathPatch(
                Path(squares, np.tile(codes, len(centres))),
                facecolor=to_hex(_shade(step / _LEVELS)),
                linewidth=0,
            )
        )


def _shade(part: float) -> tuple[float, float, float]:
    """From nearly white to a deep blue, evenly in lightness."""
    pale, deep = np.array([0.955, 0.962, 0.972]), np.array([0.03, 0.29, 0.50])
    red, green, blue = (pale + part * (deep - pale)).tolist()
    return red, green, blue


def _numbers(axes: "Axes", table: NDArray[np.int64]) -> None:
    """Write the counts into the fields, unless the widest is wider than a field."""
    field = (WIDTH * 72 - 75) / table.shape[1]
    if len(str(table.max())) * FONT * 0.64 > field:
        return
    bright = table > 0.3 * table.max()
    for (row, column), count in np.ndenumerate(table):
        if count:
            text: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
            axes.text(
                column, row, str(count), color="white" if bright[row, column] else INK, **text
            )


def _upright(labels: Sequence[str]) -> bool:
    """Whether all names fit side by side."""
    field = (WIDTH * 72 - 75) / len(labels)
    return len(labels) <= 25 and max(map(len, labels)) * FONT * 0.66 <= field

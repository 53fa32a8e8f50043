"""Draw the README's picture from a study on disk: accuracy over rounds, every line named.

calmfed study quickstart
python bench/readme_picture.py runs/quickstart docs/images/quickstart.svg
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from calmfed.study.figures import styles
from calmfed.study.summary import Row, rows


def curve(row: Row, metric: str) -> tuple[list[int], np.ndarray]:
    """Rounds, and the metric in percent by seed and round."""
    curves = [result.told["curve"] for result in row.results.values()]
    return [p["round"] for p in curves[0]], 100 * np.array([[p[metric] for p in c] for c in curves])


def spaced(heights: list[float], least: float) -> list[float]:
    """Labels at these heights, moved apart until they do not touch."""
    order = np.argsort(heights)
    moved = np.array(heights, float)
    for _ in range(100):  # each push may make two others touch
        for below, above in pairwise(order):
            push = max(0.0, least - (moved[above] - moved[below])) / 2
            moved[below] -= push
            moved[above] += push
    return [float(height) for height in moved]


def main() -> None:
    study, out = Path(sys.argv[1]), Path(sys.argv[2])
    found = rows(study)
    look = styles([row.settings["method"] for row in found])
    with rc_context({"svg.hashsalt": "readme", "font.size": 10, "axes.spines.top": False}):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        figure.set_facecolor("white")
        axes = figure.add_subplot()
        axes.spines["right"].set_visible(False)
        ends, names, colours = [], [], []
        for row in found:
            name = row.settings["method"]
            rounds, accuracy = curve(row, "accuracy")
            mean, deviation = accuracy.mean(axis=0), accuracy.std(axis=0, ddof=1)
            axes.plot(rounds, mean, color=look[name].colour, linewidth=2)
            axes.fill_between(
                rounds,
                mean - deviation,
                mean + deviation,
                color=look[name].colour,
                alpha=0.13,
                lw=0,
            )
            ends.append(float(mean[-1]))
            names.append(f"{name} {mean[-1]:.0f}")
            colours.append(look[name].colour)
        rounds, together = curve(found[0], "ensemble")
        axes.plot(
            rounds, together.mean(axis=0), color="#9aa0a6", linestyle=(0, (4, 3)), linewidth=1.3
        )
        ends.append(float(together.mean(axis=0)[-1]))
        names.append(f"ensemble of local {ends[-1]:.0f}")
        colours.append("#7a8087")
        for height, name, colour in zip(spaced(ends, 5.5), names, colours, strict=True):
            axes.annotate(
                name, (rounds[-1], height), (6, 0), textcoords="offset points", va="center",
                color=colour, annotation_clip=False,
            )  # fmt: skip
        axes.set_xlim(0, rounds[-1])
        axes.set_ylim(0, 100)
        axes.set_xlabel("round")
        axes.set_ylabel("global accuracy, %")
        axes.grid(visible=True, axis="y", color="#e3e6ea")
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()

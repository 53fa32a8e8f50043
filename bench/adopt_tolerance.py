"""The drops of corrected validation accuracy in honest visits and merges, over runs on disk.

    python bench/adopt_tolerance.py DIR...

A directory is a study or a run, begun with adopt_tolerance=1 so that nothing was refused. The 99th
percentile is what `Client.adopt` tolerates by default (rounded up).
"""

import sys
from pathlib import Path

import numpy as np

from calmfed.simulate import load_run


def drops(folder: Path) -> list[float]:
    """All drops of a run, or of all runs below a folder."""
    runs = [path.parent for path in sorted(folder.rglob("result.json"))]
    found = []
    for run in map(load_run, runs):
        assert run.config.adopt_tolerance == 1.0, f"{run.directory} refused what broke its split"
        found += [event.value for event in run.events() if event.metric == "drop"]
    return found


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        values = np.array(drops(folder))
        points = np.percentile(values, [50, 90, 95, 99, 99.9])
        told = ", ".join(
            f"{q} %: {p:+.3f}" for q, p in zip((50, 90, 95, 99, 99.9), points, strict=True)
        )
        print(f"{folder}: n = {len(values)}; {told}; most {values.max():+.3f}")


if __name__ == "__main__":
    main()

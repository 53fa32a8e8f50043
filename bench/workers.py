"""How many more rounds a second two worker processes walk than one process.

python bench/workers.py [--rounds 5]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from setting import Walk, lite


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        walks = [Walk(lite(method="calm"), Path(one), 1), Walk(lite(method="calm"), Path(two), 2)]
        ratios = []
        for number in range(rounds + 1):
            seconds = []
            for walk in walks:
                began = time.perf_counter()
                walk.round()
                seconds.append(time.perf_counter() - began)
            if number:  # the first pair warms up
                ratios.append(seconds[0] / seconds[1])
                print(
                    f"one process {seconds[0]:.2f} s, two workers {seconds[1]:.2f} s, "
                    f"{ratios[-1]:.2f} times the rounds a second",
                    flush=True,
                )
        for walk in walks:
            walk.close()
    print(
        f"median {statistics.median(ratios):.2f} times "
        f"({min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)})"
    )


if __name__ == "__main__":
    main()

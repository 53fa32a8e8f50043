"""What a round of the simulator costs beside a bare loop over the same passes.

    python bench/round_cost.py [--rounds 10]

One process, one thread; the two alternate, and the ratio of each pair is told.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from bare_loop import bare_round, make_models
from setting import Walk, lite


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        walk = Walk(lite(method="calm"), Path(folder), workers=1)
        federation = walk.federation
        models = dict(
            zip(
                federation.members.names,
                make_models(list(federation.members.specs.values())),
                strict=True,
            )
        )
        ratios = []
        for number in range(rounds + 1):
            active = federation.active(number + 1)
            samples = [federation.samples(name) for name in active]
            began = time.perf_counter()
            bare_round([models[n] for n in active], [(s.x, s.y) for s in samples])
            between = time.perf_counter()
            walk.round()
            ended = time.perf_counter()
            bare, ours = between - began, ended - between
            if number:  # the first pair warms up
                ratios.append(ours / bare)
                print(
                    f"bare {bare:.2f} s, simulator {ours:.2f} s, ratio {ours / bare:.3f}",
                    flush=True,
                )
        walk.close()
    print(
        f"median ratio {statistics.median(ratios):.3f} "
        f"({min(ratios):.3f} to {max(ratios):.3f}, n = {len(ratios)})"
    )


if __name__ == "__main__":
    main()

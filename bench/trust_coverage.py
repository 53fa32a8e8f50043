"""How often the bootstrap interval over clients holds the true AUROC, in cases where that is known.

    python bench/trust_coverage.py [--cases 2000]

A client has a level of trust of its own (deviation .5 around the rest of 1), a share of right
targets of its own (Beta(2, 2)) and 20 to 80 samples; a right target scores 1.2 higher. Between two
samples of any clients the difference is normal, so the true AUROC is Phi(1.2 / sqrt(2 * 1.25)).
"""

import argparse

import numpy as np
from scipy.stats import norm

from calmfed.study.bootstrap import auroc_interval

SHIFT, OWN = 1.2, 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    cases = parser.parse_args().cases
    truth = norm.cdf(SHIFT / np.sqrt(2 * (1 + OWN**2)))
    for clients in (10, 50):
        rng = np.random.default_rng(clients)
        held, widths = 0, []
        for _ in range(cases):
            sizes = rng.integers(20, 81, clients)
            client = np.repeat(np.arange(clients), sizes)
            right = rng.random(len(client)) < rng.beta(2, 2, clients)[client]
            level = rng.normal(0, OWN, clients)[client]
            score = level + SHIFT * right + rng.normal(size=len(client))
            found = auroc_interval(score, right, client, rng=rng)
            assert found is not None
            held += found.low <= truth <= found.high
            widths.append(found.high - found.low)
        print(
            f"{clients} clients, {cases} cases: the 95 % interval holds the true AUROC "
            f"{truth:.3f} in {held / cases:.1%}, mean width {np.mean(widths):.3f}"
        )


if __name__ == "__main__":
    main()

"""How sure an AUROC is, when samples of one client are alike: a bootstrap over clients.

Resampling samples would take thousands of samples for thousands of witnesses. Clients are the
witnesses: they are drawn with replacement, each with all of its samples.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calmfed.streams import Stream

RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A percentile interval of the bootstrap over clients.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        clients: How many clients there were to draw from.
    """

    low: float
    high: float
    clients: int


def auroc_interval(
    score: NDArray[np.float64],
    right: NDArray[np.bool_],
    client: NDArray[np.int64],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator | None = None,
) -> Interval | None:
    """An interval for the chance that a right target scores above a wrong one.

    Args:
        score: [n].
        right: Whether each target is right, [n].
        client: Whose sample each is, [n].
        level: How much of the bootstrap's AUROCs lie within.
        resamples: How many there are; those that drew only right or only wrong targets do not
            count.
        rng: Where clients are drawn from; a stream of its own if not given.

    Returns:
        None where there are fewer than two clients, or no right and wrong targets to compare.
    """
    names, index = np.unique(client, return_inverse=True)
    if len(names) < 2 or right.all() or not right.any():
        return None
    won = pairs_won(score, right, index, len(names))
    rights = np.bincount(index, weights=right, minlength=len(names))
    wrongs = np.bincount(index, weights=~right, minlength=len(names))
    rng = rng or Stream(0, "bootstrap over clients").generator()
    draws = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    pairs = (draws @ rights) * (draws @ wrongs)
    possible = pairs > 0
    each = np.einsum("ra,ab,rb->r", draws, won, draws, optimize=True)[possible] / pairs[possible]
    low, high = np.quantile(each, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), len(names))


def pairs_won(
    score: NDArray[np.float64], right: NDArray[np.bool_], index: NDArray[np.int64], clients: int
) -> NDArray[np.float64]:
    """How many pairs the right targets of client a win against the wrong ones of client b, [a, b].

    A tie counts half. The AUROC of any drawing of clients is a sum over these, so that drawing is
    all a resample costs.

    >>> score, right = np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])
    >>> pairs_won(score, right, np.array([0, 1, 0, 1]), 2).tolist()
    [[1.0, 1.0], [0.5, 1.0]]
    """
    won = np.zeros((clients, clients))
    for b in range(clients):
        wrong = np.sort(score[~right & (index == b)])
        below = np.searchsorted(wrong, score[right], side="left")
        upto = np.searchsorted(wrong, score[right], side="right")
        won[:, b] = np.bincount(index[right], weights=(below + upto) / 2, minlength=clients)
    return won

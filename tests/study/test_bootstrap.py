"""The bootstrap over clients, against drawing and scoring each resample by itself."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calmfed.study.bootstrap import Interval, auroc_interval, pairs_won


def case(seed: int, clients: int = 6, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    client = rng.integers(0, clients, n)
    right = rng.random(n) < 0.6
    score = np.round(rng.normal(size=n) + right + 0.3 * client, 1)  # rounded, so that some tie
    return score, right, client


def test_pairs_add_up_to_the_auroc() -> None:
    score, right, client = case(0)
    won = pairs_won(score, right, client, 6).sum() / (right.sum() * (~right).sum())
    assert won == pytest.approx(roc_auc_score(right, score))


def test_it_is_what_drawing_clients_with_all_their_samples_gives() -> None:
    """The same draws, each resample put together and scored by scikit-learn."""
    score, right, client = case(1)
    found = auroc_interval(score, right, client, resamples=200, rng=np.random.default_rng(5))
    draws = np.random.default_rng(5).multinomial(6, np.full(6, 1 / 6), size=200)
    each = []
    for counts in draws:
        chosen = np.concatenate(
            [np.tile(np.flatnonzero(client == c), times) for c, times in enumerate(counts)]
        )
        each.append(roc_auc_score(right[chosen], score[chosen]))
    assert found is not None
    assert [found.low, found.high] == pytest.approx(np.quantile(each, [0.025, 0.975]))
    assert found.clients == 6


def test_it_is_about_clients_and_not_samples() -> None:
    """A hundredfold copy of each sample makes nothing surer; ten times the clients do."""
    score, right, client = case(2)
    few = auroc_interval(score, right, client)
    copied = auroc_interval(*(np.tile(a, 100) for a in (score, right, client)))
    assert few is not None
    assert copied is not None
    assert [copied.low, copied.high] == pytest.approx([few.low, few.high])
    many = auroc_interval(*case(2, clients=60, n=1200))
    assert many is not None
    assert many.high - many.low < (few.high - few.low) / 2


def test_what_has_no_interval() -> None:
    score, right, client = case(3)
    assert auroc_interval(score, right, np.zeros_like(client)) is None
    assert auroc_interval(score, np.ones_like(right), client) is None
    assert auroc_interval(score, np.zeros_like(right), client) is None


def test_draws_of_one_kind_alone_do_not_count() -> None:
    """One client holds all that is right, the other all that is wrong: half of the draws."""
    score, right = np.array([0.9, 0.1]), np.array([True, False])
    assert auroc_interval(score, right, np.array([0, 1])) == Interval(1, 1, 2)

"""Trust reliability, by numbers that can be counted by hand."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from calmfed.errors import DataError
from calmfed.study.trust import TrustSamples, histogram, reliability, separation

RIGHT = np.array([True, True, False, False])


def of(*values: float) -> NDArray[np.float64]:
    return np.array(values)


def samples(trust: NDArray[np.float64], right: NDArray[np.bool_]) -> TrustSamples:
    client = np.arange(len(trust)) % 2
    return TrustSamples(trust, lambda_dis=trust, g=np.ones_like(trust), right=right, client=client)


def save(path: Path, **changes: object) -> Path:
    columns: dict[str, object] = {
        "trust": np.array([0.4, 0.2], dtype=np.float32),
        "lambda_dis": np.array([0.8, 0.9], dtype=np.float32),
        "g": np.array([0.5, 0.2], dtype=np.float32),
        "right": np.array([True, False]),
        "label": np.array([0, 1]),
        "client": np.array([3, 4]),
    }
    kept = {name: value for name, value in (columns | changes).items() if value is not None}
    np.savez(path, **kept)  # type: ignore[arg-type]
    return path


def test_auroc_counts_the_pairs_in_which_the_right_target_scores_higher() -> None:
    # pairs (right, wrong): (.9, .1) (.9, .5) (.5, .1) won, (.5, .5) tied: 3.5 of 4
    assert separation(of(0.9, 0.5, 0.1, 0.5), RIGHT).auroc == pytest.approx(3.5 / 4)


def test_perfect_reversed_and_constant_scores() -> None:
    assert separation(of(0.9, 0.8, 0.2, 0.1), RIGHT).auroc == 1
    assert separation(of(0.1, 0.2, 0.8, 0.9), RIGHT).auroc == 0
    same = separation(np.ones(4), RIGHT)
    assert same.auroc == 0.5
    assert same.constant


def test_medians_are_of_each_group_alone() -> None:
    found = separation(of(0.9, 0.5, 0.1, 0.2), RIGHT)
    assert found.median_right == pytest.approx(0.7)
    assert found.median_wrong == pytest.approx(0.15)


@pytest.mark.parametrize("right", [True, False])
def test_one_group_alone_has_no_auroc(right: bool) -> None:
    found = separation(of(0.2, 0.4), np.array([right, right]))
    assert found.auroc is None
    assert (found.median_right is None) is not right
    assert (found.median_wrong is None) is right


def test_no_samples_at_all() -> None:
    found = reliability(samples(of(), np.array([], dtype=bool)))
    assert (found.n, found.right, found.trust.auroc) == (0, 0, None)
    laid_out = histogram(of(), np.array([], dtype=bool))
    assert laid_out.right is None
    assert laid_out.wrong is None


def test_factors_are_scored_apart() -> None:
    found = reliability(
        TrustSamples(
            trust=of(0.8, 0.2),
            lambda_dis=of(0.3, 0.6),
            g=of(0.9, 0.1),
            right=RIGHT[[0, 2]],
            client=np.array([0, 1]),
        )
    )
    assert (found.n, found.right) == (2, 1)
    assert (found.trust.auroc, found.lambda_dis.auroc, found.g.auroc) == (1, 0, 1)


def test_groups_of_a_histogram_are_normalised_each_by_itself() -> None:
    right = np.array([True] * 30 + [False] * 2)
    found = histogram(np.concatenate([np.linspace(0, 1, 30), of(0.1, 0.9)]), right)
    assert found.right is not None
    assert found.wrong is not None
    assert found.right.sum() == pytest.approx(1)
    assert found.wrong.sum() == pytest.approx(1)
    assert found.wrong.max() == 0.5


def test_a_histogram_spans_the_scores_and_little_more() -> None:
    found = histogram(of(0.955, 0.96, 0.98, 1.0 + 1e-7), RIGHT)
    assert found.edges[0] == pytest.approx(0.95)
    assert found.edges[-1] == pytest.approx(1)
    for constant in (0.0, 0.37, 1.0):
        edges = histogram(np.full(4, constant), RIGHT).edges
        assert edges[0] <= constant <= edges[-1] + 1e-9
        assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("low", [0.0, 0.21, 0.999])
def test_every_score_falls_into_a_bin(low: float) -> None:
    scores = np.linspace(low, 1, 101)
    found = histogram(scores, np.ones(101, dtype=bool))
    assert found.right is not None
    assert found.right.sum() == pytest.approx(1)


def test_runs_are_pooled() -> None:
    pooled = TrustSamples.pooled([samples(of(0.1), RIGHT[:1]), samples(of(0.2, 0.3), RIGHT[1:3])])
    assert pooled.trust.tolist() == [0.1, 0.2, 0.3]
    assert pooled.right.tolist() == [True, True, False]
    assert pooled.client.tolist() == [0, 1, 2]  # those of another run are others


def test_reading_what_a_run_keeps(tmp_path: Path) -> None:
    found = TrustSamples.read(save(tmp_path / "trust.npz"))
    assert found.lambda_dis.tolist() == pytest.approx([0.8, 0.9])
    assert found.right.tolist() == [True, False]


@pytest.mark.parametrize(
    "changes",
    [
        {"g": None},
        {"g": np.ones(3)},
        {"trust": np.ones((2, 2))},
        {"right": np.array([print, None], dtype=object)},  # would have to be unpickled
    ],
)
def test_a_file_of_another_kind_is_damaged(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(DataError, match=r"trust\.npz"):
        TrustSamples.read(save(tmp_path / "trust.npz", **changes))


def test_a_file_that_was_cut_is_damaged(tmp_path: Path) -> None:
    path = save(tmp_path / "trust.npz")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"trust\.npz"):
        TrustSamples.read(path)

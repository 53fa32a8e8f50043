"""Global accuracy by hand."""

import numpy as np
import pytest

from calmfed.simulate.evaluate import ensemble_accuracy, measure


def predictions(*answers: int, classes: int = 3) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[list(answers)]


def test_own_mix_weighs_classes_as_the_owner_holds_them() -> None:
    """Right on class 0 once of two, on class 1 always: 3 of 4 own samples are of class 1."""
    measured = measure(
        predictions(0, 2, 1, 1), np.array([0, 0, 1, 1]), own_labels=np.array([0, 1, 1, 1])
    )
    assert measured.accuracy == 0.75
    assert measured.per_class == [0.5, 1.0, None]  # the test set has none of class 2
    assert measured.own_mix == pytest.approx(0.25 * 0.5 + 0.75 * 1.0)


def test_own_mix_leaves_out_classes_that_are_not_tested() -> None:
    measured = measure(predictions(0, 1), np.array([0, 0]), own_labels=np.array([0, 2, 2]))
    assert measured.own_mix == 0.5


def test_the_ensemble_is_the_mean_of_probabilities_not_a_vote() -> None:
    """Two clients lean to class 1, one is sure of class 0, which wins the mean: (.4+.4+1)/3."""
    sure, leaning = np.array([[1.0, 0.0]], np.float32), np.array([[0.4, 0.6]], np.float32)
    clients = {"a": leaning, "b": leaning, "c": sure}
    assert ensemble_accuracy(clients, np.array([0])) == 1.0

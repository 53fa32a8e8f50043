import hashlib

import numpy as np

from calmfed import data
from calmfed.data.sources.digits import stratified


def test_the_split_has_the_promised_sizes_and_is_stratified() -> None:
    digits = data.load("digits")
    assert digits.train_x.shape == (1397, 1, 8, 8)
    assert digits.test_x.shape == (400, 1, 8, 8)
    assert digits.train_x.dtype == np.uint8
    assert (digits.train_x.min(), digits.train_x.max()) == (0, 16)
    assert digits.public_x is None
    assert digits.labels == tuple("0123456789")
    everything = np.bincount(np.concatenate([digits.train_y, digits.test_y]))
    assert abs(np.bincount(digits.test_y) - everything * 400 / 1797).max() < 1


def test_parts_do_not_overlap_and_together_are_all() -> None:
    from sklearn.datasets import load_digits

    digits = data.load("digits", public=True)
    assert digits.public_x is not None
    assert len(digits.public_x) == 300
    assert len(digits.train_x) == 1097
    parts = np.concatenate([digits.train_x, digits.test_x, digits.public_x]).reshape(-1, 64)
    published = load_digits().data
    order, expected = np.lexsort(parts.T), np.lexsort(published.T)
    np.testing.assert_array_equal(parts[order], published[expected])


def test_the_test_set_is_the_same_with_and_without_public() -> None:
    plain, public = data.load("digits"), data.load("digits", public=True)
    np.testing.assert_array_equal(plain.test_x, public.test_x)
    np.testing.assert_array_equal(plain.test_y, public.test_y)


def test_the_split_never_changes() -> None:
    digits = data.load("digits", public=True)
    assert digits.public_x is not None
    chosen = hashlib.sha256(digits.test_x.tobytes() + digits.public_x.tobytes())
    assert chosen.hexdigest() == (
        "11706102aaa7faad039f5b495ae9b8203f4aa6310be823382872498b5dd0c1eb"
    )


def test_stratified_gives_remainders_to_the_largest() -> None:
    # Shares of 4 in 5 + 3 + 2 = 10: 2.0, 1.2, 0.8, so the last class gets the one left.
    y = np.array([0] * 5 + [1] * 3 + [2] * 2)
    chosen = stratified(y, 4)
    assert np.bincount(y[chosen]).tolist() == [2, 1, 1]
    assert np.flatnonzero(chosen).tolist() == [0, 2, 5, 8]

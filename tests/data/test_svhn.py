from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from calmfed import data
from calmfed.data.sources.svhn import EXTRA, TEST, TRAIN
from calmfed.errors import DataError


def arrays(count: int, seed: int = 0) -> dict[str, Any]:
    """X [32, 32, 3, n] and y [n, 1] with labels 1..10, as the publisher has them."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
    return {"X": x, "y": (np.arange(count, dtype=np.uint8) % 10 + 1)[:, None]}


def put(folder: Path, **changed: Any) -> None:
    for file, count in ((TRAIN, 12), (TEST, 3), (EXTRA, 4)):
        content = {**arrays(count), **changed}
        kept = {key: value for key, value in content.items() if value is not None}
        savemat(folder / file.name, kept, do_compression=True)


def test_pixels_land_where_they_belong_and_ten_is_zero(tmp_path: Path) -> None:
    put(tmp_path)
    svhn = data.source("svhn").load(tmp_path, public=True)
    x = arrays(12)["X"]
    assert svhn.train_x.shape == (12, 3, 32, 32)
    assert svhn.train_x[5, 2, 7, 30] == x[7, 30, 2, 5]
    np.testing.assert_array_equal(svhn.train_x, np.moveaxis(x, (3, 2), (0, 1)))
    assert svhn.train_y.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    assert svhn.test_x.shape == (3, 3, 32, 32)
    assert svhn.public_x is not None
    assert svhn.public_x.shape == (4, 3, 32, 32)
    assert data.source("svhn").load(tmp_path, public=False).public_x is None


def test_labels_saved_as_doubles_are_read_too(tmp_path: Path) -> None:
    put(tmp_path)
    savemat(tmp_path / TEST.name, {**arrays(3), "y": np.array([[10.0], [1.0], [9.0]])})
    assert data.source("svhn").load(tmp_path, public=False).test_y.tolist() == [0, 1, 9]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": None}, "has no X"),
        ({"y": None}, "has no y"),
        ({"X": np.zeros((3, 32, 32, 5), np.uint8)}, r"X should be uint8 \[32, 32, 3, n\]"),
        ({"X": np.zeros((32, 32, 3, 3))}, "but is float64"),
        ({"y": np.ones((2, 1), np.uint8)}, "y should hold 12 labels, but holds 2"),
        ({"y": np.zeros((12, 1), np.uint8)}, "labels 1..10"),
        ({"y": np.full((12, 1), 1.5)}, "labels 1..10"),
    ],
)
def test_what_is_wrong_inside_is_named(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    put(tmp_path, **changed)
    with pytest.raises(DataError, match=message) as caught:
        data.source("svhn").load(tmp_path, public=False)
    assert str(tmp_path / TRAIN.name) in str(caught.value)


def test_a_file_cut_or_of_another_kind_names_itself(tmp_path: Path) -> None:
    put(tmp_path)
    path = tmp_path / TEST.name
    whole = path.read_bytes()
    hdf = b"MATLAB 7.3 MAT-file".ljust(124, b" ") + b"\x00\x02IM"
    for content in (b"", whole[:64], whole[:200], whole[:-500], b"<html></html>", hdf):
        path.write_bytes(content)
        with pytest.raises(DataError, match=TEST.name):
            data.source("svhn").load(tmp_path, public=False)

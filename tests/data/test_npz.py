from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from calmfed import data
from calmfed.errors import DataError, UserError


def content(**changed: Any) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "train_x": np.arange(6 * 8 * 9, dtype=np.uint8).reshape(6, 8, 9),
        "train_y": np.array([0, 1, 2, 0, 1, 2]),
        "test_x": np.ones((3, 8, 9), np.uint8),
        "test_y": np.array([2, 1, 0]),
        **changed,
    }
    return {key: value for key, value in arrays.items() if value is not None}


def put(folder: Path, **changed: Any) -> str:
    np.savez(folder / "mine.npz", **content(**changed))
    return f"npz:{folder / 'mine.npz'}"


def test_grey_pictures(tmp_path: Path) -> None:
    mine = data.load(put(tmp_path))
    assert mine.name == "mine"
    assert mine.train_x.shape == (6, 1, 8, 9)
    assert mine.train_x[5, 0, 7, 8] == (6 * 8 * 9 - 1) % 256
    assert mine.labels == ("0", "1", "2")
    assert mine.public_x is None


@pytest.mark.parametrize(
    ("shape", "place", "expected"),
    [
        ((6, 8, 9, 3), (2, 4, 5, 1), (3, 8, 9)),
        ((6, 3, 8, 9), (2, 1, 4, 5), (3, 8, 9)),
        ((6, 8, 9, 1), (2, 4, 5, 0), (1, 8, 9)),
        ((6, 4, 8, 9), (2, 1, 4, 5), (4, 8, 9)),
    ],
)
def test_layouts_by_shape(
    tmp_path: Path, shape: tuple[int, ...], place: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    train = np.zeros(shape, np.uint8)
    train[place] = 200
    mine = data.load(put(tmp_path, train_x=train, test_x=np.zeros((3, *shape[1:]), np.uint8)))
    assert mine.shape == expected
    channel = 0 if expected[0] == 1 else 1
    assert mine.train_x[2, channel, 4, 5] == 200


@pytest.mark.parametrize("sample", [(3, 8, 3), (1, 4, 4), (2, 8, 9), (8, 9, 13)])
def test_a_shape_that_could_be_anything_asks_for_the_layout(
    tmp_path: Path, sample: tuple[int, int, int]
) -> None:
    train, test = np.zeros((6, *sample)), np.zeros((3, *sample))
    with pytest.raises(DataError, match="say which it is, NHWC or NCHW"):
        data.load(put(tmp_path, train_x=train, test_x=test))
    told = data.load(put(tmp_path, train_x=train, test_x=test, layout=np.array("NHWC")))
    assert told.shape == (sample[2], sample[0], sample[1])
    told = data.load(put(tmp_path, train_x=train, test_x=test, layout=np.array("NCHW")))
    assert told.shape == sample


@given(array_shapes(min_dims=4, max_dims=4, min_side=1, max_side=12))
def test_a_layout_is_found_exactly_where_one_axis_alone_can_be_channels(
    shape: tuple[int, ...],
) -> None:
    x, y = np.zeros(shape, np.uint8), np.zeros(shape[0], np.int64)
    first, last = shape[1] in (1, 3, 4), shape[3] in (1, 3, 4)
    if first == last:
        with pytest.raises(DataError, match="layout"):
            data.from_arrays(x, y, x, y)
    else:
        channels = shape[1] if first else shape[3]
        assert data.from_arrays(x, y, x, y).shape[0] == channels


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.dtype(">f4")])
def test_floats_become_float32(tmp_path: Path, kind: Any) -> None:
    train = np.full((6, 8, 9), 0.5, kind)
    mine = data.load(put(tmp_path, train_x=train, test_x=np.ones((3, 8, 9), kind)))
    assert mine.train_x.dtype == np.float32
    assert mine.train_x[0, 0, 0, 0] == np.float32(0.5)


@pytest.mark.parametrize("kind", [np.int64, np.int16, np.uint32])
def test_small_whole_numbers_become_uint8(tmp_path: Path, kind: Any) -> None:
    train = np.full((6, 8, 9), 255, kind)
    mine = data.load(put(tmp_path, train_x=train))
    assert mine.train_x.dtype == np.uint8
    assert mine.train_x.max() == 255


@pytest.mark.parametrize("kind", [np.float64, np.uint8, np.bool_, np.int32])
def test_whole_labels_of_any_type_and_a_column_of_them(tmp_path: Path, kind: Any) -> None:
    y = np.array([[0], [1], [0], [0], [1], [0]], kind)
    mine = data.load(put(tmp_path, train_y=y, test_y=y[:3]))
    assert mine.train_y.tolist() == [0, 1, 0, 0, 1, 0]
    assert mine.train_y.dtype == np.int64
    assert mine.classes == 2


def test_a_class_that_only_the_test_set_holds_counts(tmp_path: Path) -> None:
    assert data.load(put(tmp_path, test_y=np.array([0, 6, 1]))).classes == 7


def test_names_and_public_samples(tmp_path: Path) -> None:
    name = put(
        tmp_path,
        labels=np.array(["cat", "dog", "émeu", "spare"]),
        public_x=np.arange(2 * 8 * 9, dtype=np.uint8).reshape(2, 8, 9),
    )
    mine = data.load(name, public=True)
    assert mine.labels == ("cat", "dog", "émeu", "spare")
    assert mine.public_x is not None
    assert mine.public_x.shape == (2, 1, 8, 9)
    assert data.load(name).public_x is None


def test_more_public_samples_than_are_used_are_thinned(tmp_path: Path) -> None:
    public = (np.arange(10_000) % 256).astype(np.uint8)[:, None, None] + np.zeros((8, 9), np.uint8)
    mine = data.load(put(tmp_path, public_x=public), public=True)
    assert mine.public_x is not None
    np.testing.assert_array_equal(mine.public_x[:, 0, 0, 0], public[::2, 0, 0])


def test_a_public_set_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mine\.npz has no public set"):
        data.load(put(tmp_path), public=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"train_y": None, "test_x": None}, "has no train_y, test_x; it holds train_x, test_y"),
        ({"train_x": np.zeros((6, 8))}, r"train_x should be \[n, h, w\]"),
        ({"test_x": np.zeros((3, 8, 9, 1), np.uint8)}, "test_x should be NHW"),
        ({"test_x": np.zeros((3, 8, 8), np.uint8)}, r"test_x is uint8 \[1, 8, 8\]"),
        ({"test_x": np.zeros((3, 8, 9))}, "test_x is float32"),
        ({"public_x": np.array(3)}, "public_x should be NHW"),
        ({"train_x": np.full((6, 8, 9), 256)}, r"holds whole numbers 256..256"),
        ({"train_x": np.full((6, 8, 9), -1)}, "beyond 0..255"),
        ({"train_x": np.full((6, 8, 9), "a")}, "train_x should be uint8 or float"),
        ({"train_x": np.zeros((6, 8, 9), bool)}, "train_x should be uint8 or float"),
        ({"train_x": np.full((6, 8, 9), None)}, "Object arrays cannot be loaded"),
        ({"train_x": np.full((6, 8, 9), np.nan), "test_x": np.zeros((3, 8, 9))}, "not finite"),
        ({"train_x": np.full((6, 8, 9), 1e99), "test_x": np.zeros((3, 8, 9))}, "not finite"),
        ({"train_x": np.zeros((0, 8, 9), np.uint8), "train_y": np.zeros(0, int)}, "no samples"),
        ({"train_y": np.zeros(5, int)}, "train_x holds 6 samples, but train_y 5 labels"),
        ({"train_y": np.eye(6)}, "train_y should be one label a sample"),
        ({"test_y": np.array([0, -1, 1])}, "test_y should be 0..C-1, but holds -1"),
        ({"test_y": np.array([0, 0.5, 1])}, "test_y should be whole numbers"),
        ({"test_y": np.array([0, np.nan, 1])}, "test_y should be whole numbers"),
        ({"test_y": np.array(["a", "b", "c"])}, "test_y should be whole numbers"),
        ({"test_y": np.array([0, 2**63, 1], np.uint64)}, "number the classes anew"),
        (
            {"labels": np.array(["a", "b"])},
            "labels up to 2 occur: name at least 3",
        ),
        ({"labels": np.arange(3)}, "labels should be text"),
        ({"labels": np.array(["a", "b", "c"], object)}, "Object arrays cannot be loaded"),
        ({"layout": np.array("CHWN")}, "a layout is NHW, NHWC or NCHW"),
        ({"layout": np.array("NCHW")}, "train_x should be NCHW"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        data.load(put(tmp_path, **changed), public="public_x" in changed)
    assert str(caught.value).startswith(str(tmp_path / "mine.npz"))


def test_files_that_are_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    with pytest.raises(DataError, match=r"mine\.npz is not there"):
        data.load(f"npz:{path}")
    with path.open("wb") as out:
        np.save(out, np.zeros(3))
    with pytest.raises(DataError, match="a single array"):
        data.load(f"npz:{path}")
    for held in (b"", b"PK\x03\x04", b"\x80\x04\x95pickle", b"hello"):
        path.write_bytes(held)
        with pytest.raises(DataError, match=r"mine\.npz cannot be read"):
            data.load(f"npz:{path}")
    with pytest.raises(DataError, match="cannot be read"):
        data.load(f"npz:{tmp_path}")


def test_a_home_folder_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path)
    assert data.load("npz:~/mine.npz").classes == 3


@given(place=st.floats(0, 1), value=st.integers(0, 255), cut=st.booleans())
def test_whatever_byte_is_wrong_the_file_is_read_or_named(
    tmp_path_factory: pytest.TempPathFactory, place: float, value: int, cut: bool
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    arrays = content(labels=np.array(["a", "b", "c"]))
    np.savez_compressed(folder / "mine.npz", **arrays)
    path = folder / "mine.npz"
    held = bytearray(path.read_bytes())
    at = int(place * (len(held) - 1))
    held[at] = value
    path.write_bytes(held[:at] if cut else held)
    said = ""
    try:
        data.load(f"npz:{path}")
    except DataError as error:
        said = str(error)
    assert not said or "mine.npz" in said


def test_from_arrays_names_itself() -> None:
    x, y = np.zeros((4, 8, 8)), np.array([0, 1, 0, 1])
    made = data.from_arrays(x, y, x, y, labels=["a", "b"], public_x=x, name="bench")
    assert made.name == "bench"
    assert made.train_x.shape == (4, 1, 8, 8)
    with pytest.raises(DataError, match="bench: test_y should be 0"):
        data.from_arrays(x, y, x, -y, name="bench")

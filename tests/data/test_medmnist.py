from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calmfed import data
from calmfed.data.sources.medmnist import ORGAN, PATH, grey
from calmfed.errors import DataError


def arrays(colour: bool, classes: int) -> dict[str, Any]:
    """The publisher's six arrays: images [n, 28, 28] or [n, 28, 28, 3], labels [n, 1] uint8."""
    generator = np.random.default_rng(1)
    sample = (28, 28, 3) if colour else (28, 28)
    content: dict[str, Any] = {}
    for part, count in (("train", 2 * classes), ("val", 4), ("test", classes)):
        content[f"{part}_images"] = generator.integers(0, 256, (count, *sample), dtype=np.uint8)
        content[f"{part}_labels"] = (np.arange(count, dtype=np.uint8) % classes)[:, None]
    return content


def put(folder: Path, **changed: Any) -> None:
    content = {**arrays(False, 11), **changed}
    kept = {key: value for key, value in content.items() if value is not None}
    np.savez_compressed(folder / ORGAN.name, **kept)
    colours: dict[str, Any] = arrays(True, 9)
    np.savez_compressed(folder / PATH.name, **colours)


def test_organamnist(tmp_path: Path) -> None:
    put(tmp_path)
    organs = data.source("organamnist").load(tmp_path, public=False)
    held = arrays(False, 11)
    assert organs.train_x.shape == (22, 1, 28, 28)
    assert organs.test_x[4, 0, 9, 20] == held["test_images"][4, 9, 20]
    assert organs.train_y.tolist() == [*range(11), *range(11)]
    assert organs.labels[6] == "liver"
    assert organs.public_x is None


def test_pathmnist(tmp_path: Path) -> None:
    put(tmp_path)
    patches = data.source("pathmnist").load(tmp_path, public=False)
    held = arrays(True, 9)
    assert patches.train_x.shape == (18, 3, 28, 28)
    assert patches.train_x[3, 2, 9, 20] == held["train_images"][3, 9, 20, 2]
    assert patches.classes == 9


def test_pathmnist_in_grey_is_the_public_set_of_organamnist(tmp_path: Path) -> None:
    put(tmp_path)
    public = data.source("organamnist").load(tmp_path, public=True).public_x
    assert public is not None
    assert public.shape == (18, 1, 28, 28)
    red, green, blue = (int(level) for level in arrays(True, 9)["train_images"][3, 9, 20])
    assert public[3, 0, 9, 20] == round(0.299 * red + 0.587 * green + 0.114 * blue)


def test_grey_keeps_black_and_white() -> None:
    assert grey(np.full((1, 3, 2, 2), 255, np.uint8)).tolist() == [[[[255, 255], [255, 255]]]]
    assert grey(np.zeros((1, 3, 2, 2), np.uint8)).max() == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"test_labels": None}, "has no test_labels; it holds train_images"),
        ({"train_images": np.zeros((22, 28, 28, 3), np.uint8)}, "images should be uint8"),
        ({"train_images": np.zeros((22, 64, 64), np.uint8)}, "images should be uint8"),
        ({"train_labels": np.zeros((5, 1), np.uint8)}, r"train_labels should be .*\[22, 1\]"),
        ({"train_labels": np.zeros((22, 14), np.uint8)}, "train_labels should be"),
        ({"train_labels": np.full((22, 1), 11)}, r"train_labels should lie in 0..10"),
        ({"train_labels": np.full((22, 1), "liver", object)}, "Object arrays cannot be loaded"),
    ],
)
def test_what_is_wrong_inside_is_named(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    put(tmp_path, **changed)
    with pytest.raises(DataError, match=message) as caught:
        data.source("organamnist").load(tmp_path, public=False)
    assert str(tmp_path / ORGAN.name) in str(caught.value)

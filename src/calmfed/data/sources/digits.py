"""Scikit-learn's handwritten digits: no download, so the data set for a first try."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calmfed.data.dataset import Dataset, Labels
from calmfed.data.partition import allocate
from calmfed.data.registry import register_dataset
from calmfed.data.source import Source, spread

TEST_SAMPLES = 400
PUBLIC = 300


@register_dataset("digits")
class Digits(Source):
    """1,797 images of 8 x 8 with grey levels 0..16, as uint8.

    The split is the same for every seed: each class gives its share to the test set, evenly
    spread over the published order. The public set is chosen in the same way from the training
    images, which are fewer for it.
    """

    summary = "8x8 handwritten digits that come with scikit-learn; nothing to download"
    public = f"{PUBLIC} of the training images, set aside"
    classes = 10
    shape = (1, 8, 8)

    def load(self, folder: Path, public: bool) -> Dataset:
        """Take them from scikit-learn; the folder is not looked at."""
        from sklearn.datasets import load_digits

        published = load_digits()
        x = published.images.astype(np.uint8)[:, None]
        y = published.target.astype(np.int64)
        test = stratified(y, TEST_SAMPLES)
        train = np.flatnonzero(~test)
        aside = np.zeros(len(train), dtype=np.bool_)
        if public:
            aside = stratified(y[train], PUBLIC)
        return Dataset(
            name=self.name,
            train_x=x[train[~aside]],
            train_y=y[train[~aside]],
            test_x=x[test],
            test_y=y[test],
            labels=tuple(str(digit) for digit in range(10)),
            public_x=x[train[aside]] if public else None,
        )

    def where(self, folder: Path) -> str:
        """Say where the data lie."""
        return "inside scikit-learn"


def stratified(y: Labels, wanted: int) -> NDArray[np.bool_]:
    """Choose ``wanted`` samples with the label frequencies of all, without any randomness.

    Args:
        y: Labels, [n].
        wanted: How many to choose, at most n.

    Returns:
        A mask over the samples, [n].
    """
    chosen = np.zeros(len(y), dtype=np.bool_)
    for label, take in enumerate(allocate(np.bincount(y), wanted)):
        members = np.flatnonzero(y == label)
        chosen[members[spread(len(members), int(take))]] = True
    return chosen

"""Street View House Numbers, cropped digits, from the publisher's MATLAB files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calmfed.data.dataset import Dataset
from calmfed.data.reading import reading
from calmfed.data.registry import register_dataset
from calmfed.data.source import PUBLIC_SAMPLES, File, Source, spread
from calmfed.errors import DataError


def _file(part: str, md5: str, size: int) -> File:
    name = f"{part}_32x32.mat"
    return File(name, f"http://ufldl.stanford.edu/housenumbers/{name}", f"md5:{md5}", size)


TRAIN = _file("train", "e26dedcc434d2e4c54c9b2d4a06d8373", 182_000_000)
TEST = _file("test", "eb5a983be6a315427106f1b164d9cef3", 64_000_000)
EXTRA = _file("extra", "a93ce644f1a588dc4d68dda5feec44a7", 1_329_000_000)


@register_dataset("svhn")
class Svhn(Source):
    """73,257 and 26,032 house-number digits; of the 531,131 extra ones some are public."""

    summary = "SVHN: 32x32 colour crops of house-number digits"
    files = (TRAIN, TEST)
    public_files = (EXTRA,)
    public = f"{PUBLIC_SAMPLES:,} of SVHN's extra crops"
    classes = 10
    shape = (3, 32, 32)

    def load(self, folder: Path, public: bool) -> Dataset:
        """Read both parts, and the extra one where it is wanted."""
        train_x, train_y = part(folder / TRAIN.name)
        test_x, test_y = part(folder / TEST.name)
        public_x = None
        if public:
            extra, _ = arrays(folder / EXTRA.name)
            public_x = images(extra[..., spread(extra.shape[-1], PUBLIC_SAMPLES)])
        return Dataset(
            name=self.name,
            train_x=train_x,
            train_y=train_y,
            test_x=test_x,
            test_y=test_y,
            labels=tuple(str(digit) for digit in range(10)),
            public_x=public_x,
        )


def part(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images [n, 3, 32, 32] and labels [n] of one file; the publisher's label 10 is digit 0."""
    x, y = arrays(path)
    return images(x), y.astype(np.int64) % 10


def images(x: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """From [height, width, channel, n], as MATLAB has it, to [n, channel, height, width]."""
    return np.ascontiguousarray(x.transpose(3, 2, 0, 1))


def arrays(path: Path) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """``X`` [32, 32, 3, n] and ``y`` [n] of one file, checked."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    with reading(path):
        try:
            held = loadmat(str(path), variable_names=["X", "y"])
        except MatReadError as error:
            raise ValueError(str(error)) from error
        except NotImplementedError as error:
            raise ValueError("not a MATLAB file of version 5") from error
    for key in ("X", "y"):
        if key not in held:
            raise DataError(f"{path} has no {key}")
    x, y = np.asarray(held["X"]), np.asarray(held["y"]).reshape(-1)
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[:3] != (32, 32, 3):
        raise DataError(
            f"{path}: X should be uint8 [32, 32, 3, n], but is {x.dtype} {list(x.shape)}"
        )
    if len(y) != x.shape[3] or y.dtype.kind not in "uif":
        raise DataError(f"{path}: y should hold {x.shape[3]} labels, but holds {len(y)}")
    if len(y) == 0 or not np.isin(y, np.arange(1, 11)).all():
        raise DataError(f"{path}: y should hold labels 1..10 and nothing else")
    return x, y

"""Anybody's own arrays in one npz file: ``npz:PATH``."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from calmfed.data.arrays import from_arrays
from calmfed.data.dataset import Dataset
from calmfed.data.reading import npz_keys, read_npz
from calmfed.data.registry import register_dataset
from calmfed.data.source import PUBLIC_SAMPLES, Source, spread
from calmfed.errors import DataError

ARRAYS = ("train_x", "train_y", "test_x", "test_y")


@register_dataset("npz")
class Npz(Source):
    """``train_x``, ``train_y``, ``test_x``, ``test_y``; ``labels``, ``layout`` and ``public_x``.

    The last three may be missing; other keys are not read.
    """

    summary = "your own arrays: train_x, train_y, test_x, test_y, perhaps labels and public_x"
    public = "public_x, where the file holds it"
    argument = "PATH"

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser()

    def load(self, folder: Path, public: bool) -> Dataset:
        """Read the file; the folder is not looked at."""
        held = read_npz(self.path, ARRAYS, ("labels", "layout", *(("public_x",) if public else ())))
        public_x = held.get("public_x")
        if public_x is not None and public_x.ndim:
            public_x = public_x[spread(len(public_x), PUBLIC_SAMPLES)]
        name = self.path.stem
        try:
            return from_arrays(
                *(held[key] for key in ARRAYS),
                labels=self._words(held, "labels"),
                layout="".join(self._words(held, "layout") or ()) or None,
                public_x=public_x,
                name=name,
            )
        except DataError as error:
            raise DataError(f"{self.path}: {str(error).removeprefix(f'{name}: ')}") from error

    def require(self, folder: Path) -> None:
        """The file must be there."""
        if not self.path.exists():
            raise DataError(f"{self.path} is not there")

    def has_public(self) -> bool:
        """Whether the file holds a ``public_x``."""
        return "public_x" in npz_keys(self.path)

    def where(self, folder: Path) -> str:
        """Say where the data lie."""
        return str(self.path.resolve())

    def _words(self, held: dict[str, NDArray[Any]], key: str) -> list[str] | None:
        array = held.get(key)
        if array is None:
            return None
        if array.dtype.kind != "U" or array.ndim > 1:
            raise DataError(
                f"{self.path}: {key} should be text, as np.array([...]) of str makes it, "
                f"but is {array.dtype} {list(array.shape)}"
            )
        return [str(word) for word in array.reshape(-1)]

"""Data sets by name, and who holds what of them.

>>> from calmfed import data
>>> data.load("digits").shape
(1, 8, 8)
"""

from calmfed.data.arrays import from_arrays
from calmfed.data.dataset import Dataset, Images, Labels
from calmfed.data.registry import fetch, load, names, prepare, register_dataset, source
from calmfed.data.source import PUBLIC_SAMPLES, File, Source, spread

__all__ = [
    "PUBLIC_SAMPLES",
    "Dataset",
    "File",
    "Images",
    "Labels",
    "Source",
    "fetch",
    "from_arrays",
    "load",
    "names",
    "prepare",
    "register_dataset",
    "source",
    "spread",
]

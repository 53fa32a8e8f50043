"""A small federation for all tests of the simulator."""

from typing import Any

import pytest

from calmfed import from_arrays
from calmfed.data import Dataset
from small import SETTINGS, blobs


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """150 training and 45 test samples of three classes."""
    return from_arrays(*blobs(150, 0), *blobs(45, 1), name="blobs")


@pytest.fixture
def settings() -> dict[str, Any]:
    """Settings of a small federation; a test changes its own copy."""
    return dict(SETTINGS)

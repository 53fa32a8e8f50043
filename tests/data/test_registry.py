import subprocess
import sys

import pytest

from calmfed import data
from calmfed.errors import UserError

KNOWN = (
    "cifar10",
    "cifar100",
    "digits",
    "npz:PATH",
    "organamnist",
    "pathmnist",
    "speech_commands",
    "svhn",
)


def test_every_module_of_sources_is_found() -> None:
    assert set(KNOWN) <= set(data.names())


def test_a_name_spelt_wrong_is_answered_with_the_near_one() -> None:
    with pytest.raises(UserError, match="did you mean 'cifar10'"):
        data.source("cifar-10")


def test_arguments_where_there_are_none_and_none_where_there_should_be() -> None:
    with pytest.raises(UserError, match="takes nothing after its name"):
        data.load("digits:8")
    with pytest.raises(UserError, match="write npz:PATH"):
        data.load("npz")
    with pytest.raises(UserError, match="write npz:PATH"):
        data.load("npz:")


@pytest.mark.parametrize("name", ["cifar100", "pathmnist"])
def test_sets_without_a_public_set_say_so_before_downloading(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} has no public set"):
        data.load(name, public=True)


def test_two_classes_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match="two data sets"):

        @data.register_dataset("digits")
        class Other(data.Source):
            pass


def test_every_source_describes_itself() -> None:
    for name in KNOWN:
        source = data.source(name)
        assert source.summary
        for file in source.files + source.public_files:
            algorithm, _, digest = file.checksum.partition(":")
            assert len(digest) == {"md5": 32, "sha256": 64}[algorithm]
            assert file.url.startswith("http")


def test_importing_and_listing_is_light() -> None:
    code = (
        "import sys; from calmfed import data; from calmfed.data.describe import overview;"
        "import calmfed.cli.data; data.names(); overview('.');"
        "print([m for m in ('torch', 'sklearn', 'scipy', 'pooch', 'requests') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_spread_is_even_rising_and_complete() -> None:
    assert data.spread(10, 4).tolist() == [0, 2, 5, 7]
    assert data.spread(3, 5).tolist() == [0, 1, 2]
    assert data.spread(0, 5).tolist() == []
    assert len(set(data.spread(531_131, 5_000).tolist())) == 5_000

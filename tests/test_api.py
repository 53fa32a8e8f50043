"""What `import calmfed` gives, and what it does not load."""

import importlib
import subprocess
import sys
from importlib.metadata import version

import pytest

import calmfed


@pytest.mark.parametrize("module", ["calmfed", "calmfed.cli", "calmfed.cli.main"])
def test_it_answers_without_torch(module: str) -> None:
    code = (
        f"import sys, {module}, calmfed; dir(calmfed); calmfed.__version__;"
        "print([name for name in ('torch', 'pydantic', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout
    if module == "calmfed":
        assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", calmfed.__all__)
def test_every_public_name_is_there_and_listed(name: str) -> None:
    home = importlib.import_module(f"calmfed.{calmfed._HOMES[name]}")
    assert getattr(calmfed, name) is getattr(home, name)
    assert name in dir(calmfed)
    assert getattr(calmfed, name).__doc__


def test_every_lazy_name_is_public() -> None:
    assert sorted(calmfed._HOMES) == sorted(calmfed.__all__)


def test_a_name_that_does_not_exist_is_told_as_usual() -> None:
    with pytest.raises(AttributeError, match="module 'calmfed' has no attribute 'clam'"):
        calmfed.clam  # noqa: B018 - looking it up is the test
    assert not hasattr(calmfed, "__wrapped__")


def test_the_version_is_that_of_the_package() -> None:
    assert calmfed.__version__ == version("calmfed")

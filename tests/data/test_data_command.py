import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from calmfed.cli.data import app
from calmfed.errors import UserError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALMFED_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_list() -> None:
    entries = {entry["name"]: entry for entry in json.loads(run("list", "--json"))}
    assert entries["digits"]["fetched"] is True
    assert entries["cifar10"]["fetched"] is False
    assert entries["cifar10"]["shape"] == [3, 32, 32]
    assert entries["pathmnist"]["public"] is None
    assert entries["npz:PATH"]["fetched"] is None
    table = run("list")
    for name in entries:
        assert name in table


def test_fetch_of_what_needs_no_download() -> None:
    assert json.loads(run("fetch", "digits", "--public", "--json")) == {"digits": []}
    assert run("fetch", "digits") == "digits: nothing to download\n"


def test_show_digits() -> None:
    about = json.loads(run("show", "digits", "--json"))
    assert about["shape"] == [1, 8, 8]
    assert about["dtype"] == "uint8"
    assert sum(about["counts"]["train"]) == 1397
    assert about["bytes"] == 1797 * 64
    assert "1,397 samples" in run("show", "digits")


def test_show_does_not_download(tmp_path: Path) -> None:
    about = json.loads(run("show", "cifar10", "--json"))
    assert about["counts"] is None
    assert [file["present"] for file in about["files"]] == [False, False]
    assert about["files"][0]["path"] == str(tmp_path / "cache" / "cifar-10-binary.tar.gz")
    assert "calmfed data fetch cifar10" in run("show", "cifar10")
    assert not (tmp_path / "cache").exists()


def test_show_own_arrays_with_names_that_look_like_markup(tmp_path: Path) -> None:
    x, y = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 1, 1])
    labels = np.array(["[red]cat", ":dog:"])
    path = tmp_path / "mine.npz"
    np.savez(path, train_x=x, train_y=y, test_x=x, test_y=y, labels=labels, public_x=x)
    shown = run("show", f"npz:{path}")
    assert "[red]cat" in shown
    assert ":dog:" in shown
    about = json.loads(run("show", f"npz:{path}", "--json"))
    assert about["counts"] == {"train": [1, 3], "test": [1, 3]}
    assert about["public"]
    assert about["where"] == str(path)


def test_mistakes_are_left_to_the_main_program() -> None:
    for arguments in (["show", "nonesuch"], ["fetch", "cifar100", "--public"]):
        with pytest.raises(UserError):
            CliRunner().invoke(app, arguments, catch_exceptions=False)

"""Grids that are edited, mistyped or interrupted by a bad cell."""

import json
import os
from pathlib import Path

import pytest
import torch
from torch import nn

import calmfed as package
from calmfed import presets
from calmfed.errors import DataError, Interrupted, UserError
from calmfed.simulate.lock import locked
from calmfed.study.grid import expand, load_study, read_study
from calmfed.study.report import write_report
from calmfed.study.runner import run_study
from calmfed.study.selection import only

BASE = {
    "clients": 3, "active": 2, "rounds": 1, "width": 0.05, "epochs": 1, "train_samples": 90,
    "method": "local", "models": ["cnn6"],
}  # fmt: skip


def run(folder: Path, grid: object, **base: object) -> list[str]:
    """Run a grid; the failures of its cells."""
    study = expand("exp", {"base": {**BASE, **base}, "grid": grid}, {})
    return [o.failure for o in run_study(study, folder) if o.failure is not None]


def rows(folder: Path) -> list[dict[str, object]]:
    from calmfed.study.summary import rows as found

    return [{**row.settings, "seeds": len(row.results)} for row in found(folder)]


def test_an_axis_that_is_added_later_tells_old_cells_apart_too(tmp_path: Path) -> None:
    """And what the directory has already is not run again under another name."""
    run(tmp_path, {"seed": [0, 1]})
    before = {p: p.stat().st_mtime_ns for p in tmp_path.glob("cells/*/result.json")}
    run(tmp_path, {"seed": [0, 1], "lr": [0.01, 0.1]})
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert len(list(tmp_path.glob("cells/*/result.json"))) == 4
    assert rows(tmp_path) == [{"lr": 0.01, "seeds": 2}, {"lr": 0.1, "seeds": 2}]
    run(tmp_path, {"seed": [0, 1, 2]})  # the axis is gone again
    assert rows(tmp_path) == [{"lr": 0.01, "seeds": 3}, {"lr": 0.1, "seeds": 2}]
    assert load_study(tmp_path).axes == {"seed": [0, 1, 2], "lr": [0.01, 0.1]}


def test_cells_are_told_apart_by_what_the_base_changed(tmp_path: Path) -> None:
    run(tmp_path, {"seed": [0], "method": ["local"]})
    run(tmp_path, {"seed": [0], "method": ["uniform"]}, epochs=2)
    assert rows(tmp_path) == [
        {"method": "local", "epochs": 1, "seeds": 1},
        {"method": "uniform", "epochs": 2, "seeds": 1},
    ]


def test_the_same_cell_with_other_settings_is_refused(tmp_path: Path) -> None:
    run(tmp_path, {"seed": [0]})
    with pytest.raises(UserError, match="cell seed0 was begun with other settings"):
        run(tmp_path, {"seed": [0]}, epochs=2)


def test_a_list_among_the_overrides_is_an_axis() -> None:
    study = expand("exp", {"base": BASE, "grid": {"lr": [0.1]}}, {"seed": [0, 1]})
    assert study.axes == {"lr": [0.1], "seed": [0, 1]}
    assert len(study.cells) == 2
    one = expand("exp", {"base": BASE, "grid": {"lr": [0.1]}}, {"models": ["cnn6", "resnet18"]})
    assert len(one.cells) == 1
    two = expand("exp", {"grid": {"lr": [0.1]}}, {"models": [["cnn6"], ["resnet18"]]})
    assert [cell.config.models for cell in two.cells] == [("cnn6",), ("resnet18",)]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"grid": 5}, r"\[grid\] must be a table"),
        ({"grid": [1]}, r"\[grid\] must be a table"),
        ({"base": "x", "grid": {"seed": [0]}}, r"\[base\] must be a table"),
        ({"base": {"only": 5}, "grid": {"seed": [0]}}, r"\[only\] must be a table"),
        ({"base": {"only": {"digits": 5}}, "grid": {"seed": [0]}}, r"\[only.digits\] must be"),
        ({"base": {"only": {"digit": {}}}, "grid": {"seed": [0]}}, "did you mean 'digits'"),
        ({"base": {"only": {"svhn": {"foo": 1}}}, "grid": {"seed": [0]}}, "setting 'foo'"),
        ({"base": {"only": {"digits": {"data": "svhn"}}}, "grid": {"seed": [0]}}, "which data"),
        ({"grid": {"seed": [0, 0]}}, "lists seed = 0 twice"),
        ({"grid": {"only": [{}]}}, "it can stand in a file or in a study's"),
        ({"grid": {"lr": [True]}}, "lr: true and false are no value"),
        ({"grid": {"threads": [10**30]}}, "threads must be at most 1024"),
    ],
)
def test_what_is_wrong_with_a_grid_is_one_sentence(told: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        expand("exp", told, {})


def test_words_undo_what_a_preset_says() -> None:
    told = {"base": {"preset": "lite"}, "grid": {"train_samples": ["all", 500]}}
    cells = expand("exp", told, {"ce": "method"}).cells
    assert [cell.config.train_samples for cell in cells] == [None, 500]
    assert cells[0].config.ce is None


@package.register_model("explodes")
def explodes(channels: int, classes: int, width: float) -> nn.Module:
    """Works when it is tried out, and not when it is trained."""
    return Explosive(channels, classes)


class Explosive(nn.Module):
    """See `explodes`."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(64 * channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and len(x) > 2:
            raise ArithmeticError("boom")
        out: torch.Tensor = self.head(x.flatten(1))
        return out


def test_a_cell_that_breaks_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    failures = run(tmp_path, {"models": [["explodes"], ["cnn6"]]})
    assert len(failures) == 1
    assert "ArithmeticError: boom" in failures[0]
    (whole,) = tmp_path.glob("cells/*.error.txt")
    assert "Traceback" in whole.read_text()
    assert len(list(tmp_path.glob("cells/*/result.json"))) == 1


@pytest.mark.parametrize(
    "content",
    ['{"axes": 5}', '{"name": "exp", "axes": {}, "cells": 5}', "[]", "5", '{"cells": []}'],
)
def test_a_damaged_study_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(UserError, match=r"study\.json is damaged"):
        load_study(tmp_path)


def test_finished_cells_of_a_changed_file_are_not_told_as_if_nothing_were(tmp_path: Path) -> None:
    import numpy as np

    from small import blobs

    path = tmp_path / "mine.npz"
    keys = ("train_x", "train_y", "test_x", "test_y")

    def write(seed: int) -> None:
        held = dict(zip(keys, (*blobs(150, seed), *blobs(45, 1)), strict=True))
        np.savez(path, **held)  # type: ignore[arg-type]  # numpy takes any name

    write(0)
    grid, own = {"seed": [0]}, {"data": f"npz:{path}"}
    assert run(tmp_path / "s", grid, **own) == []
    shares = []
    study = expand("exp", {"base": {**BASE, **own}, "grid": grid}, {})
    assert run_study(study, tmp_path / "s", on_step=lambda *share: shares.append(share))
    assert len(set(shares)) == 1  # they are looked at again, which is no progress
    write(1)
    (failure,) = run(tmp_path / "s", grid, **own)
    assert "was begun with other samples" in failure


def test_ctrl_c_in_a_cell_stops_the_study(tmp_path: Path) -> None:
    """And is no failure of that cell."""
    study = expand("exp", {"base": BASE, "grid": {"seed": [0, 1]}}, {})

    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run_study(study, tmp_path, on_step=interrupt)
    assert not list(tmp_path.glob("cells/*.error.txt"))
    assert not list(tmp_path.glob("cells/*/result.json"))
    assert len(run_study(study, tmp_path)) == 2


def test_samples_that_cannot_be_had_are_asked_for_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not by each cell, and the cells on other samples are not lost."""
    asked = []

    def ensure(file: object, folder: Path) -> Path:
        asked.append(file)
        raise DataError("no connection")

    monkeypatch.setattr("calmfed.data.registry.ensure", ensure)
    failures = run(tmp_path, {"seed": [0, 1], "data": ["cifar10", "digits"]})
    assert failures == ["no connection"] * 2
    assert len(asked) == 1
    assert len(list(tmp_path.glob("cells/*/result.json"))) == 2


def test_a_second_start_and_a_strange_directory_are_refused_at_once(tmp_path: Path) -> None:
    with locked(tmp_path / "busy"), pytest.raises(UserError, match="in use by another process"):
        run(tmp_path / "busy", {"seed": [0]})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("important")
    with pytest.raises(UserError, match="holds no study"):
        run(tmp_path / "mine", {"seed": [0]})
    assert len(list((tmp_path / "mine").iterdir())) == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a device that is always full")
def test_a_full_disk_is_told_as_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from calmfed.simulate import checkpoint

    def full(path: Path, content: object) -> None:
        with Path("/dev/full").open("w") as file:
            json.dump(content, file)

    monkeypatch.setattr(checkpoint, "write_json", full)
    (failure,) = run(tmp_path, {"seed": [0]})
    assert "No space left on device" in failure


SCALED = {
    "grid": {"method": ["local", "calm", "calm,ce=prior"], "seed": [0, 1]},
    "base": BASE,
    "scale": {
        "small": {"base": {"clients": 2}},
        "large": {"base": {"rounds": 9}, "grid": {"clients": [5, 6]}},
    },
}


def test_scales_lay_over_the_base_and_add_to_the_grid() -> None:
    small, large = expand("exp", SCALED, {}), expand("exp", SCALED, {}, "large")
    assert (small.name, large.name) == ("exp-small", "exp-large")  # the first if none is named
    assert {c.config.clients for c in small.cells} == {2}
    assert len(small.cells) == 6
    assert {(c.config.clients, c.config.rounds) for c in large.cells} == {(5, 9), (6, 9)}
    assert len(large.cells) == 12
    with pytest.raises(UserError, match="study exp has no scale 'lage': did you mean 'large'"):
        expand("exp", SCALED, {}, "lage")
    with pytest.raises(UserError, match="study exp has no scales, got 'lite'"):
        expand("exp", {"grid": {"seed": [0]}}, {}, "lite")
    with pytest.raises(UserError, match="study exp-odd: unknown table 'gird'"):
        expand("exp", {**SCALED, "scale": {"odd": {"gird": {}}}}, {})


@pytest.mark.parametrize("name", [n for n in presets.names() if presets.is_study(presets.load(n))])
def test_every_preset_is_a_grid_at_each_of_its_scales(name: str) -> None:
    for scale in presets.load(name).get("scale", {None: {}}):
        study = read_study(name, scale=scale)
        assert len(study.cells) >= 6
        assert {"local", "uniform"} & set(study.axes["method"])
    assert [cell.config.clients for cell in read_study("table-main").cells] == [20] * 144


@pytest.mark.parametrize(
    ("text", "methods"),
    [
        ("local", ["local"]),
        ("calm,local", ["local", "calm"]),
        ("calm,ce=prior,local", ["local", "calm,ce=prior"]),
        ("calm, calm,ce=prior", ["calm", "calm,ce=prior"]),
    ],
)
def test_only_takes_names_apart_that_hold_commas(text: str, methods: list[str]) -> None:
    cells = only(expand("exp", SCALED, {}), [("method", text), ("seed", "1")])
    assert [(c.config.method, c.config.seed) for c in cells] == [(m, 1) for m in methods]


def test_only_takes_values_as_they_are_written() -> None:
    study = expand("exp", {"grid": {"public": [True, False], "lr": [0.1, 1]}}, {})
    (cell,) = only(study, [("public", "true"), ("lr", "0.1")])
    assert (cell.config.public, cell.config.lr) == (True, 0.1)


def test_only_names_what_is_not_there() -> None:
    study = expand("exp", SCALED, {})
    with pytest.raises(UserError, match=r"--only methods: not in the grid .*mean 'method'"):
        only(study, [("methods", "local")])
    with pytest.raises(UserError, match="--only method: no 'clam' in the grid: did you mean 'calm"):
        only(study, [("method", "local,clam")])
    with pytest.raises(UserError, match="--only seed is given twice"):
        only(study, [("seed", "0"), ("seed", "1")])


def test_a_part_is_run_and_the_rest_is_a_dash_until_it_is(tmp_path: Path) -> None:
    study = expand("exp", {"base": BASE, "grid": {"method": ["local", "uniform"], "seed": [0]}}, {})
    run_study(study, tmp_path, cells=only(study, [("method", "uniform")]))
    assert [row["seeds"] for row in rows(tmp_path)] == [0, 1]
    assert "not begun" in write_report(tmp_path).read_text()
    assert len(run_study(study, tmp_path)) == 1
    assert [row["seeds"] for row in rows(tmp_path)] == [1, 1]

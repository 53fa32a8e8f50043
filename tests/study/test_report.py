"""The report of runs that really happened, tiny ones."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calmfed
from calmfed.data.dataset import Dataset
from calmfed.errors import DataError, UserError
from calmfed.study import wording
from calmfed.study.grid import expand, save_study
from calmfed.study.report import write_report
from calmfed.study.subject import gather, local_of
from calmfed.study.summary import Spread, cell_folder

SECTIONS = [
    "overview",
    "results",
    "curves",
    "holdings",
    "classes",
    "architectures",
    "trust",
    "runs",
    "settings",
]
BASE = {
    "clients": 4,
    "active": 3,
    "rounds": 2,
    "epochs": 1,
    "width": 0.03,
    "eval_every": 1,
    "models": ["cnn6", "resnet18_half"],
    "min_samples": 4,
}


def toy(name: str, labels: list[str]) -> Dataset:
    """Classes that differ in brightness."""
    rng = np.random.default_rng(0)
    y = np.arange(40 * len(labels)) % len(labels)
    x = rng.integers(0, 60, (len(y), 8, 8)) + 60 * y[:, None, None]
    return calmfed.from_arrays(x, y, x[:60], y[:60], labels=labels, name=name)


DATA = {
    "toy": toy("toy", ["<b>bold</b>", "a & b", "costs $5 or $6"]),
    "other": toy("other", ["one", "two"]),
}


def run_study(folder: Path, **grid: list[Any]) -> Path:
    study = expand("tiny", {"base": BASE, "grid": grid}, {})
    save_study(study, folder)
    for cell in study.cells:
        calmfed.run(
            cell.config, dataset=DATA[cell.config.data], directory=cell_folder(folder, cell)
        )
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_study(
        tmp_path_factory.mktemp("report") / "tiny",
        data=["toy"],
        method=["local", "uniform", "calm"],
        seed=[0, 1],
    )


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(finished, tmp_path / "tiny"))


class Page(HTMLParser):
    """What a test asks of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.rows: dict[str, list[list[str]]] = {}
        self._region = ""
        self._cell: list[str] | None = None
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.tags.append(tag)
        self.ids += [name for name in [told.get("id")] if name]
        self.links += [v for k, v in attrs if k in ("href", "src", "xlink:href") and v]
        if told.get("role") == "region":
            self._region = told.get("aria-label") or ""
        elif tag == "tr":
            self.rows.setdefault(self._region, []).append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self.rows[self._region][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def row(self, region: str, first: str) -> list[str]:
        """The row that begins with a word."""
        return next(row for row in self.rows[region] if row[0].startswith(first))


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def set_accuracy(folder: Path, accuracy: float) -> None:
    told = json.loads((folder / "result.json").read_text())
    for which in ("last", "best"):
        told[which]["accuracy"] = accuracy
    edit(folder / "result.json", **told)


def test_it_lies_in_the_directory_and_has_every_section(finished: Path) -> None:
    path = write_report(finished)
    assert path == finished / "report.html"
    assert not list(finished.glob("*.part"))
    assert [name for name in Page(path).ids if name in SECTIONS] == SECTIONS


def test_the_same_study_gives_the_same_page(study: Path) -> None:
    first = write_report(study).read_bytes()
    assert write_report(study).read_bytes() == first


def test_it_needs_nothing_but_itself(finished: Path) -> None:
    page = Page(write_report(finished))
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page.text))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names
    assert "@import" not in page.text


def test_ids_of_figures_never_clash_and_are_all_there(finished: Path) -> None:
    page = Page(write_report(finished))
    assert len(page.ids) == len(set(page.ids))
    asked = {link[1:] for link in page.links} | set(re.findall(r"url\(#([^)]+)\)", page.text))
    assert asked <= set(page.ids)


def test_names_of_classes_are_text(finished: Path) -> None:
    text = write_report(finished).read_text()
    assert "<b>bold" not in text
    assert "&lt;b&gt;bold" in text
    assert "costs $5 or $6" in text  # no formula


def test_the_table_tells_mean_and_spread_over_seeds(study: Path) -> None:
    for seed, accuracy in enumerate((0.5, 0.6)):
        set_accuracy(study / f"cells/toy_local_seed{seed}", accuracy)
    row = Page(write_report(study)).row("Results", "local")
    assert row[:4] == ["local", "2", "55.0 ± 7.1", "55.0 ± 7.1"]


def test_who_falls_behind_local_is_told_in_words(study: Path) -> None:
    for seed in (0, 1):
        set_accuracy(study / f"cells/toy_local_seed{seed}", 0.5 + seed / 10)
        set_accuracy(study / f"cells/toy_calm_seed{seed}", 0.45 + seed / 10)
        set_accuracy(study / f"cells/toy_uniform_seed{seed}", 0.55 + seed / 10)
    page = Page(write_report(study))
    behind = page.row("Results", "calm")
    assert behind[0] == "calmbehind local"
    assert behind[4] == "−5.0 ± 0.0in 2 of 2 seeds"  # noqa: RUF001 - a real minus
    assert page.row("Results", "uniform")[0] == "uniform"
    assert page.row("Results", "uniform")[4] == "+5.0 ± 0.0"
    assert "“uniform” is highest" in page.text


def test_no_method_ahead_of_local_is_told_too(study: Path) -> None:
    for cell in (study / "cells").iterdir():
        set_accuracy(cell, 0.5 if "local" in cell.name else 0.4)
    assert "no method does better than training alone" in Page(write_report(study)).text


def test_only_methods_with_gates_have_a_histogram(finished: Path) -> None:
    page = Page(write_report(finished))
    assert page.row("Trust", "uniform")[-1].startswith("the same for all samples")
    drawn = re.findall(r'aria-label="Histogram of ([^"]*)"', page.text)
    assert drawn
    assert all("of calm," in label for label in drawn)


def test_unfinished_runs_are_dashes_and_said_so(study: Path) -> None:
    for seed in (0, 1):
        (study / f"cells/toy_calm_seed{seed}/result.json").unlink()
    shutil.rmtree(study / "cells/toy_uniform_seed1")
    with (study / "cells/toy_calm_seed0/events.jsonl").open("a") as log:
        log.write('{"round": 3, "cli')  # being written at this moment
    page = Page(write_report(study))
    assert "3 of 6 runs are not finished" in page.text
    assert page.row("Results", "calm")[:4] == ["calm", "0 of 2", "–", "–"]  # noqa: RUF001
    assert page.row("Results", "uniform")[1] == "1 of 2"
    assert page.row("Every run", "toy_uniform_seed1")[1] == "not begun"
    assert page.row("Every run", "toy_calm_seed0")[1] == "round 2 of 2"
    assert "(unfinished)" in page.text


def test_a_study_of_which_nothing_began(study: Path) -> None:
    shutil.rmtree(study / "cells")
    page = Page(write_report(study))
    assert "6 of 6 runs are not finished" in page.text
    assert "nothing is finished yet" in page.text
    assert "svg.figure" in page.text
    assert 'class="figure"' not in page.text


def test_a_run_is_shown_as_a_study_of_one_row(study: Path) -> None:
    folder = study / "cells/toy_calm_seed1"
    page = Page(write_report(folder))
    assert [row[0] for row in page.rows["Results"][2:]] == ["calm"]
    assert "Report of a single run" in page.text
    assert "±" not in str(page.rows["Results"])


def test_an_unfinished_run_shows_how_far_it_is(study: Path) -> None:
    folder = study / "cells/toy_local_seed0"
    (folder / "result.json").unlink()
    page = Page(write_report(folder))
    assert "1 of 1 run is not finished" in page.text
    assert page.row("Results", "local")[1] == "0 of 1"
    assert "curve0-clients" in page.text


def test_data_sets_are_never_in_one_figure(tmp_path: Path) -> None:
    folder = run_study(tmp_path, data=["toy", "other"], method=["local", "calm"], seed=[0])
    subject = gather(folder)
    assert [(e.panel, e.label) for e in subject.entries] == [
        ("toy", "local"),
        ("toy", "calm"),
        ("other", "local"),
        ("other", "calm"),
    ]
    local = local_of(subject, subject.entries[3])
    assert local is subject.entries[2]
    page = Page(write_report(folder))
    assert len(re.findall(r'aria-label="Mean accuracy over rounds', page.text)) == 2
    assert page.rows["Results"][2][:2] == ["local", "toy"]
    assert "One seed" in page.text


def test_settings_are_compared_where_the_method_is_one(tmp_path: Path) -> None:
    study = expand("tiny", {"base": BASE, "grid": {"method": ["calm"], "lr": [0.1, 0.2]}}, {})
    save_study(study, tmp_path)
    assert [(e.panel, e.label) for e in gather(tmp_path).entries] == [
        ("", "lr 0.1"),
        ("", "lr 0.2"),
    ]


def test_other_directories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither a study nor a run"):
        write_report(tmp_path)
    with pytest.raises(UserError, match="not a directory"):
        write_report(tmp_path / "missing")
    assert not list(tmp_path.iterdir())


def test_a_damaged_partition_is_named(study: Path) -> None:
    (study / "cells/toy_local_seed0/partition.json").write_text("{")
    with pytest.raises(DataError, match=r"toy_local_seed0.partition\.json is damaged"):
        write_report(study)


def test_figures_in_words() -> None:
    assert [wording.percent(0.4567), wording.fraction(0.97), wording.fraction(None)] == [
        "45.7",
        ".970",
        wording.DASH,
    ]
    assert [wording.points(d) for d in (0.021, -0.021, -0.0001)] == ["+2.1", "−2.1", "0.0"]  # noqa: RUF001
    spaced = [wording.compact(n).replace("\xa0", " ") for n in (0, 999, 999.6, 36615, 1_234_567)]
    assert spaced == ["0", "999", "1.00 k", "36.6 k", "1.23 M"]
    assert wording.in_bytes(1_730_000).replace("\xa0", " ") == "1.73 MB"
    assert [wording.duration(s) for s in (9.13, 59.96, 75, 5400)] == [
        "9.1 s",
        "1 min 0 s",
        "1 min 15 s",
        "1 h 30 min",
    ]
    assert wording.mean_count(Spread(1.5, None, 2)) == "1.5"
    assert wording.listed(["a", "b", "c"], "or") == "a, b or c"
    assert wording.listed([]) == ""

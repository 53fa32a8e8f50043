"""A study's table: every figure by hand, in each format; what was not run is a dash."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calmfed.config import parse
from calmfed.simulate import Result
from calmfed.study import table
from calmfed.study.grid import Cell
from calmfed.study.reference import Claim, claimed
from calmfed.study.subject import Entry, Run, Subject
from calmfed.study.summary import Row, Spread
from calmfed.study.tidy import HEADER, tidy

ACCURACY = {
    "local": {0: 0.5, 1: 0.6, 2: 0.7},
    "calm": {0: 0.4, 1: 0.6, 2: 0.5},
    "visit,ce=plain": {1: 0.9},
    "fedmd": {},
}
# t of 2 degrees of freedom is 4.3027: .1 of deviation over three seeds is .2484 either way
HALF = 4.3027 * 0.1 / 3**0.5


def result(accuracy: float, headline: str) -> Result:
    models = {
        "accuracy": accuracy, "ensemble": 0.95, "own_mix": 0.8, "per_architecture": {},
        "per_class": [], "clients": {"c0": {"accuracy": accuracy, "own_mix": 0.8}},
    }  # fmt: skip
    other = {**models, "accuracy": accuracy - 0.05}
    counters = {"samples_studied": 12345, "teacher_passes": 0, "bytes_moved": 2_000_000}
    told = {
        "headline": headline, "last": models if headline == "last" else other,
        "best": models if headline == "best" else other, "counters": counters, "also": {},
        "public_samples": 0,
    }  # fmt: skip
    return Result(told, None)


def subject(folder: Path = Path("nowhere"), **settings: Any) -> Subject:
    entries = []
    for method, by_seed in ACCURACY.items():
        cells = tuple(
            Cell(f"{method}{seed}", {"method": method, "seed": seed}, config)
            for seed in (0, 1, 2)
            for config in [parse({"method": method, "seed": seed, **settings})]
        )
        headline = "last" if method.startswith("visit") else "best"
        results = {seed: result(accuracy, headline) for seed, accuracy in by_seed.items()}
        runs = tuple(Run(cell, folder / cell.name, results.get(cell.config.seed)) for cell in cells)
        row = Row({"method": method}, results, cells)
        entries.append(Entry(row, runs, method, ""))
    return Subject("exp", True, ("method",), tuple(entries))


def test_figures_by_hand() -> None:
    local, calm, visit, fedmd = table.lines(subject())
    assert local.mine == Spread(pytest.approx(0.6), pytest.approx(0.1), 3)  # type: ignore[arg-type]
    assert local.mine is not None
    assert local.mine.interval() == pytest.approx(HALF, abs=1e-5)
    assert local.accuracy["last"] is not None
    assert local.accuracy["last"].mean == pytest.approx(0.55)
    less = calm.against["local"]
    assert less is not None
    assert less.mean == pytest.approx(-0.1)  # -.1, 0 and -.2
    assert less.interval() == pytest.approx(HALF, abs=1e-5)
    assert calm.behind
    assert local.against == {"local": None, "uniform": None}
    alone = visit.against["local"]
    assert alone is not None
    assert alone.mean == pytest.approx(0.3)
    assert (alone.interval(), alone.n) == (None, 1)
    assert not visit.behind
    assert (fedmd.mine, fedmd.seeds, fedmd.planned) == (None, 0, 3)


def test_texts_say_the_same_in_every_format() -> None:
    made = table.lines(subject())
    header, rows = table.laid_out(made)
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert found[1]["best checkpoint, %"] == "50.0 ± 24.8*"
    assert found[1]["last checkpoint, %"] == "45.0 ± 24.8"
    assert found[1]["less local"] == "−10.0 ± 24.8 behind"  # noqa: RUF001 - a real minus sign
    assert found[2]["last checkpoint, %"] == "90.0*"
    assert found[2]["n"] == "1/3"
    assert found[1]["moved"] == "2.00\N{NO-BREAK SPACE}MB"
    assert found[3]["best checkpoint, %"] == "–"  # noqa: RUF001 - a real dash
    assert "less uniform" not in header  # nothing was run that it could say
    assert "reference, %" not in header  # digits are not in it
    lined = table.markdown(made).splitlines()
    assert len({line.count("|") for line in lined[: 2 + len(made)]}) == 1
    assert "| calm | 3/3 | 45.0 ± 24.8 | 50.0 ± 24.8* |" in lined[3]
    assert r"calm & 3/3 & 45.0 $\pm$ 24.8 & 50.0 $\pm$ 24.8* & $-$10.0" in table.latex(made)
    assert r"12.3~k" in table.latex(made)


def test_csv_holds_numbers_and_nothing_where_nothing_was_run() -> None:
    rows = list(csv.DictReader(io.StringIO(table.as_csv(table.lines(subject())))))
    assert [row["method"] for row in rows] == list(ACCURACY)
    assert float(rows[1]["less_local"]) == pytest.approx(-0.1)
    assert float(rows[1]["less_local_half_interval"]) == pytest.approx(HALF, abs=1e-5)
    assert rows[2]["last_half_interval"] == ""  # of one seed
    assert rows[3]["last"] == ""
    assert float(rows[0]["samples_studied"]) == 12345


def test_a_dash_says_why_where_nothing_can_be_run() -> None:
    made = table.lines(subject(data="cifar100"))
    assert [line.impossible for line in made] == ["", "", "", "no public samples"]
    header, rows = table.laid_out(made)
    assert (header[-1], rows[-1][-1]) == ("why not", "no public samples")
    assert "why not" not in table.laid_out(table.lines(subject()))[0]  # digits have some
    assert table.lines(subject(public=False))[3].impossible == "no public samples"
    assert table.lines(subject(data="npz:gone.npz"))[3].impossible == ""


def test_the_reference_stands_beside_and_not_in_place() -> None:
    header, rows = table.laid_out(table.lines(subject(data="svhn", clients=20, active=10)))
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert found[1]["reference, %"] == "71.50 (50)"
    assert found[1]["less reference"] == "−21.5"  # noqa: RUF001 - a real minus sign
    assert found[3]["reference, %"] == "17.27 (50)"
    assert found[3]["less reference"] == "–"  # noqa: RUF001 - a real dash
    assert found[0]["reference, %"] == "–"  # noqa: RUF001 - it has no row for training alone


def test_a_method_is_no_rival_of_itself_under_other_settings() -> None:
    """One method alone, two learning rates: they share a panel, and nobody trains beside them."""
    told = subject()
    (local, *_) = told.entries
    both = Subject("exp", True, ("method", "lr"), (local, replace(local, label="lr 0.1")))
    assert [line.against["local"] for line in table.lines(both)] == [None, None]


def test_a_study_of_skew_stands_beside_the_reference_s_study_of_skew() -> None:
    """Which has 100 clients throughout; at our 20 the .3 alone could be of 50."""
    shared: dict[str, Any] = {"data": "cifar10", "clients": 20, "active": 10}
    mild, strong = subject(**shared), subject(**shared, dirichlet_alpha=0.1)
    calm = (mild.entries[1], strong.entries[1])
    both = Subject("exp", True, ("method", "dirichlet_alpha"), calm)
    assert [line.claim for line in table.lines(both)] == [Claim(0.3189, 100), Claim(0.2621, 100)]


@pytest.mark.parametrize(
    ("settings", "claim"),
    [
        ({"data": "cifar10", "method": "calm"}, (0.3983, 50)),
        ({"data": "cifar10", "method": "calm", "clients": 100}, (0.3189, 100)),
        ({"data": "speech_commands", "method": "dfml", "clients": 100}, (0.3723, 100)),
        ({"data": "organamnist", "method": "msfkd"}, (0.2198, 50)),
        ({"data": "svhn", "method": "calm:12"}, (0.6384, 50)),
        ({"data": "cifar10", "method": "hard", "dirichlet_alpha": 0.1}, (0.2507, 100)),
        ({"data": "cifar10", "method": "calm:12"}, None),
        ({"data": "svhn", "method": "calm:12", "clients": 100}, None),
        ({"data": "svhn", "method": "hard", "dirichlet_alpha": 0.1}, None),
        ({"data": "cifar10", "method": "hard", "dirichlet_alpha": 0.2}, None),
        ({"data": "cifar10", "method": "hard", "partition": "iid"}, None),
        ({"data": "cifar10", "method": "calm,tau=0.2"}, None),
        ({"data": "cifar10", "method": "local"}, None),
        ({"data": "digits", "method": "calm"}, None),
        ({"data": "svhn", "method": "calm", "ce": "prior"}, None),
    ],
)
def test_claims_are_of_the_very_method_data_and_skew(
    settings: dict[str, Any], claim: tuple[float, int] | None
) -> None:
    expected = None if claim is None else Claim(pytest.approx(claim[0]), claim[1])  # type: ignore[arg-type]
    assert claimed(parse(settings)) == expected


def test_tidy_has_a_row_for_each_figure(tmp_path: Path) -> None:
    about = subject(tmp_path)
    folder = tmp_path / "calm0"
    folder.mkdir()
    event = {"round": 3, "client": "c1", "metric": "val_loss", "value": 0.25}
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n" + '{"rou')  # still writing
    rows = list(csv.reader(io.StringIO(tidy(about))))
    assert rows[0] == HEADER
    assert ["exp", "digits", "calm", "", "0", "3", "c1", "val_loss", "0.25"] in rows
    assert ["exp", "digits", "calm", "", "0", "", "", "best accuracy", "0.4"] in rows
    assert ["exp", "digits", "local", "", "2", "", "c0", "best accuracy", "0.7"] in rows
    assert ["exp", "digits", "local", "", "2", "", "", "bytes_moved", "2000000"] in rows
    assert not [row for row in rows if row[2] == "fedmd"]

"""The commands as a user types them: answers, errors, exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calmfed.cli.main import main
from small import blobs

TINY = [
    "--clients", "3", "--active", "2", "--rounds", "2", "--set", "width=0.05",
    "--set", "epochs=1", "--set", "train_samples=90", "--workers", "1",
]  # fmt: skip


class Terminal:
    """Types a command and reads the answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self._monkeypatch.setattr(sys, "argv", ["calmfed", *words])
        code = 0
        try:
            main()
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        out, errors = self._capsys.readouterr()
        return code, out, errors


@pytest.fixture
def calmfed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    return Terminal(monkeypatch, capsys)


def test_help_and_version_answer_without_torch() -> None:
    for words in (["--help"], ["--version"], ["run", "--help"], ["data", "list"]):
        code = f"""
import sys
sys.argv = ["calmfed", *{words!r}]
from calmfed.cli.main import main
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
assert "torch" not in sys.modules
"""
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        assert "calmfed" in told.stdout or "digits" in told.stdout


def test_run_shows_keeps_and_tells_its_result(calmfed: Terminal) -> None:
    code, out, errors = calmfed("run", *TINY, "--out", "r")
    assert code == 0, errors
    assert "global accuracy" in out
    assert "calm on digits, seed 0" in errors  # plain lines, as there is no terminal
    told = json.loads(Path("r/result.json").read_text())
    code, out, _ = calmfed("run", *TINY, "--out", "r", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer.pop("directory") == "r"
    assert answer == told


def test_run_keeps_runs_apart_by_their_settings(calmfed: Terminal) -> None:
    for seed in ("0", "1"):
        assert calmfed("run", *TINY, "--seed", seed)[0] == 0
    assert len(list(Path("runs").iterdir())) == 2


def test_run_reads_a_file_with_a_preset_under_it(calmfed: Terminal) -> None:
    Path("mine.toml").write_text('preset = "lite"\nmethod = "local"\nrounds = 1\nwidth = 0.05\n')
    code, out, errors = calmfed("run", "mine.toml", "--set", "epochs=1", "--json", "-o", "r")
    assert code == 0, errors
    config = json.loads(out)["config"]
    # digits in the lite preset: 10 clients, of which 5 are active
    assert (config["clients"], config["active"], config["method"]) == (10, 5, "local")
    assert (config["rounds"], config["epochs"]) == (1, 1)


def test_run_takes_one_s_own_arrays(calmfed: Terminal) -> None:
    train_x, train_y = blobs(90, 0)
    test_x, test_y = blobs(30, 1)
    np.savez("mine.npz", train_x=train_x, train_y=train_y, test_x=test_x, test_y=test_y)
    words = ["run", *TINY, "--data", "npz:mine.npz", "--set", "shrink=1", "--json"]
    code, out, errors = calmfed(*words)
    assert code == 0, errors
    assert json.loads(out)["test_samples"] == 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "lit"], "unknown preset 'lit': did you mean 'lite'?"),
        (["run", "quickstart"], "calmfed study quickstart"),
        (["run", "gone.toml"], "there is no file gone.toml"),
        (["run", "--method", "clam"], "did you mean 'calm'?"),
        (["run", "--method", "calm:4"], "has no variant '4'"),
        (["run", "--method", "calm,tua=1"], "did you mean 'tau'?"),
        (["run", "--method", "calm,tau=0"], "tau must be above zero"),
        (["run", "--data", "digit"], "did you mean 'digits'?"),
        (["run", "--data", "npz:gone.npz"], "gone.npz"),
        (["run", "--set", "round=3"], "unknown setting 'round': did you mean 'rounds'?"),
        (["run", "--set", "rounds"], "write it as KEY=VALUE"),
        (["run", "--set", "tau=.2"], "write for example method='calm,tau=...'"),
        (["run", "--set", "width=wide"], "width"),
        (["run", "--set", "ce=pior"], "did you mean 'prior'?"),
        (["run", "--set", "augment=flip"], "unknown augmentation 'flip'"),
        (["run", "--set", "partition=dirchlet"], "did you mean 'dirichlet'?"),
        (["run", "--set", "models=cnn7"], "did you mean 'cnn6'?"),
        (["run", "--rounds", "1", "--set", "rounds=5"], "rounds is given twice"),
        (["run", "--set", "lr=1e300"], "lr must be a finite number"),
        (["run", "--clients", "3"], "active must be at most the number of clients 3"),
        (["run", "--set", "shrink=2"], "models need at least 8x8"),
        (["run", "--clients", "900"], "need 9000 training samples, but there are 1397"),
        (["study", "lite"], "calmfed run lite"),
        (["study", "quickstart", "--set", "nothing=1"], "unknown setting 'nothing'"),
        (["report", "gone"], "gone"),
        (["list", "method"], "did you mean 'methods'?"),
    ],
)
def test_a_user_s_mistake_is_one_sentence_and_exit_code_2(
    words: list[str], message: str, calmfed: Terminal
) -> None:
    code, out, errors = calmfed(*words)
    assert code == 2
    assert message in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert out == ""
    assert not list(Path().glob("runs/*")), "nothing is left behind by a mistake"


def test_an_unknown_option_is_exit_code_2(calmfed: Terminal) -> None:
    code, _, errors = calmfed("run", "--methd", "calm")
    assert code == 2
    assert "--method" in errors


@pytest.mark.parametrize("what", ["methods", "models", "presets", "rules"])
def test_lists_name_what_there_is(what: str, calmfed: Terminal) -> None:
    _, out, _ = calmfed("list", what)
    code, told, _ = calmfed("list", what, "--json")
    assert code == 0
    for entry in json.loads(told):
        assert entry["name"] in out
        assert entry["summary"]


def test_study_shows_mean_and_spread_and_skips_what_is_done(calmfed: Terminal) -> None:
    Path("grid.toml").write_text(
        """
        [base]
        clients = 3
        active = 2
        rounds = 2
        width = 0.05
        epochs = 1
        train_samples = 90
        [grid]
        method = ["local", "visit"]
        seed = [0, 1]
        """
    )
    code, out, errors = calmfed("study", "grid.toml", "--jobs", "1", "--out", "s")
    assert code == 0, errors
    assert "±" in out
    assert "2/2" in out
    assert Path("s/report.html").exists()
    results = {p: p.stat().st_mtime_ns for p in Path("s").glob("cells/*/result.json")}
    assert len(results) == 4
    code, told, _ = calmfed("study", "grid.toml", "--jobs", "1", "--out", "s", "--json")
    assert {p: p.stat().st_mtime_ns for p in results} == results
    rows = json.loads(told)["rows"]
    assert [row["method"] for row in rows] == ["local", "visit"]
    for row in rows:
        accuracies = [
            json.loads(Path(f"s/cells/{row['method']}_seed{seed}/result.json").read_text())["last"][
                "accuracy"
            ]
            for seed in (0, 1)
        ]
        assert row["last"]["mean"] == pytest.approx(np.mean(accuracies))
        assert row["last"]["deviation"] == pytest.approx(np.std(accuracies, ddof=1))
    assert rows[1]["headline"] == "last"


def test_a_study_goes_on_when_a_cell_fails(calmfed: Terminal) -> None:
    Path("grid.toml").write_text(
        """
        [base]
        clients = 3
        active = 2
        rounds = 1
        width = 0.05
        epochs = 1
        train_samples = 90
        method = "local"
        [grid]
        data = ["npz:gone.npz", "digits"]
        """
    )
    code, _, errors = calmfed("study", "grid.toml", "--jobs", "1", "--out", "s")
    assert code == 2
    assert "1 of 2 cells failed" in errors.splitlines()[-1]
    assert len(list(Path("s").glob("cells/*/result.json"))) == 1


def test_a_table_for_a_terminal_a_paper_and_a_program(calmfed: Terminal) -> None:
    assert calmfed("run", *TINY, "--out", "r")[0] == 0
    code, out, _ = calmfed("table", "r")
    assert code == 0
    assert "best checkpoint, %" in out
    assert "Student's t" in out
    assert calmfed("table", "r", "--format", "markdown")[1].startswith("| method | n |")
    code, out, _ = calmfed("table", "r", "-f", "tidy", "--out", "figures.csv")
    assert (code, out) == (0, "table: figures.csv\n")
    assert Path("figures.csv").read_text().startswith("study,data,method,settings,seed,round")
    code, _, errors = calmfed("table", "r", "-f", "markdwon")
    assert code == 2
    assert "did you mean 'markdown'?" in errors

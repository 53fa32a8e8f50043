"""Real processes that are really killed: what was stopped goes on to the same result."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.system

PROGRAM = [sys.executable, "-m", "calmfed"]
RUN = [
    *PROGRAM, "run", "lite", "--rounds", "12", "--workers", "2", "--method", "visit:calm",
    "--set", "width=0.1", "--set", "eval_every=3",
]  # fmt: skip


def result(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "result.json").read_text())
    del told["times"]
    return told


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A run that nobody stopped, and how long it took."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    began = time.monotonic()
    subprocess.run([*RUN, "--out", str(folder)], check=True, capture_output=True)
    return folder, time.monotonic() - began


def test_killed_at_five_random_instants_and_resumed(
    undisturbed: tuple[Path, float], tmp_path: Path
) -> None:
    """The whole process group dies by SIGKILL, workers too, wherever they are.

    Each kill falls within about two rounds after the last, on a machine of any speed; so the run
    never ends before all five, one of them while it starts up.
    """
    whole, seconds = undisturbed
    folder = tmp_path / "run"
    rng = np.random.default_rng(20261118)
    for kill in range(5):
        process = subprocess.Popen(
            [*RUN, "--out", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=None,  # pytest shows what it says when the test fails
            start_new_session=True,
        )
        reached = 2 * kill
        wait_for(lambda at=reached: rounds_done(folder) >= at, process)
        time.sleep(rng.uniform(0, seconds / 12))
        assert process.poll() is None, "the run ended before it could be killed"
        kill_session(process)
    subprocess.run([*RUN, "--out", str(folder)], check=True, capture_output=True)
    assert result(folder) == result(whole)
    for name in ("events.jsonl", "trust.npz", "partition.json"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


def test_workers_of_a_killed_run_end_by_themselves(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*RUN, "--out", str(tmp_path / "run")],
        stdout=subprocess.DEVNULL,
        stderr=None,  # pytest shows what it says when the test fails
    )
    workers = wait_for(lambda: children(process.pid), process)
    process.kill()
    process.wait()
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_ctrl_c_leaves_a_run_that_resumes(undisturbed: tuple[Path, float], tmp_path: Path) -> None:
    whole, _ = undisturbed
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [*RUN, "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: rounds_done(folder) >= 2, process)
    interrupt_session(process)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on where it was" in errors
    assert "Traceback" not in errors
    subprocess.run([*RUN, "--out", str(folder)], check=True, capture_output=True)
    assert result(folder) == result(whole)


def test_a_killed_study_loses_no_cell_and_runs_none_twice(tmp_path: Path) -> None:
    study = tmp_path / "grid.toml"
    study.write_text(
        """
        [base]
        clients = 4
        active = 2
        rounds = 6
        width = 0.05
        [grid]
        method = ["local", "calm", "visit"]
        seed = [0, 1]
        """
    )
    command = [*PROGRAM, "study", str(study), "--jobs", "2", "--json", "--out"]
    whole = subprocess.run(
        [*command, str(tmp_path / "whole")], check=True, capture_output=True, text=True
    )
    folder = tmp_path / "killed"
    process = subprocess.Popen(
        [*command, str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=None,  # pytest shows what it says when the test fails
        start_new_session=True,
    )
    wait_for(lambda: len(list(folder.glob("cells/*/result.json"))) >= 2, process)
    kill_session(process)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/result.json")}
    assert len(before) < 6
    again = subprocess.run([*command, str(folder)], check=True, capture_output=True, text=True)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert json.loads(again.stdout)["rows"] == json.loads(whole.stdout)["rows"]
    for path in folder.glob("cells/*"):
        assert result(path) == result(tmp_path / "whole" / "cells" / path.name)


def wait_for(found: Any, process: "subprocess.Popen[Any] | None" = None) -> Any:
    """Wait until something is true, generously, or until the process that should do it ends."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if answer := found():
            return answer
        assert process is None or process.poll() is None, f"ended with {process.poll()}"
        time.sleep(0.1)
    raise AssertionError("waited in vain")


def children(pid: int) -> list[int]:
    """Two worker processes of a run, once they are there."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    pids = [int(word) for word in listed.stdout.split()]
    return pids if len(pids) >= 2 else []


def rounds_done(folder: Path) -> int:
    """How far a run is."""
    try:
        told = json.loads((folder / "checkpoint" / "manifest.json").read_text())
    except FileNotFoundError:
        return 0
    return int(told["round"])


def kill_session(process: "subprocess.Popen[Any]") -> None:
    """Kill a process and all it started."""
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=True)
    process.wait()


def interrupt_session(process: "subprocess.Popen[Any]") -> None:
    """What Ctrl-C does: SIGINT for the whole foreground group."""
    import os

    os.killpg(process.pid, signal.SIGINT)

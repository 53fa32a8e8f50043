"""The examples and the README's program run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_an_example_runs(example: Path) -> None:
    lines = example.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    told = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert "%" in told.stdout


def test_the_readme_s_program_runs(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(programs) == 1
    assert len([line for line in programs[0].splitlines() if line]) <= 15
    path = tmp_path / "program.py"
    path.write_text(programs[0])
    told = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert "calm" in told.stdout
    assert "local" in told.stdout


def test_the_method_in_contributing_runs(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "program.py"
    path.write_text(
        "from dataclasses import dataclass, field\n"
        "import calmfed\n"
        "from calmfed.methods import Method, Plan, Round, register_method\n"
        "from calmfed.rules import Rule, Uniform\n"
        + program
        + "r = calmfed.run(method='pairs,temperature=2', clients=4, active=3, rounds=1)\n"
        "print(r.told['counters']['teacher_passes'] > 0, r.told['counters']['bytes_moved'] > 0)\n"
    )
    told = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert told.stdout.strip() == "True True", told.stderr

"""What is said of long work where there is no terminal."""

import pytest

from calmfed.progress import Progress, Steps


def test_a_long_log_stays_short_and_counts_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten hours with a step a second are told in fewer than 200 lines, the first minute in six."""
    clock = [0.0]
    monkeypatch.setattr("calmfed.progress.time.monotonic", lambda: clock[0])
    with Progress("work", unit="steps", total=36_000) as progress:
        for step in range(36_000):
            clock[0] = float(step)
            progress.reach(step)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["work", "work: 0%", "work: 0%"]
    assert 100 < len(lines) < 200
    shares = [int(line.split("%")[0].split()[-1]) for line in lines[1:]]
    assert shares == sorted(shares)
    assert shares[-1] >= 95
    assert "left" in lines[-1]


def test_the_first_step_does_not_count_towards_the_pace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It also loads what all others only use: 100 s, then a second each, is 69 s for sixty-nine."""
    clock = [0.0]
    monkeypatch.setattr("calmfed.progress.time.monotonic", lambda: clock[0])
    with Steps("work") as steps:
        assert capsys.readouterr().err == ""  # nothing before the first report
        steps.reach(0, 100)
        for step in range(1, 41):
            clock[0] = 99.0 + step
            steps.reach(step, 100)
    assert "work: 31%, about 69 s left" in capsys.readouterr().err.splitlines()

"""How far a long piece of work is: a bar on a terminal, a few plain lines elsewhere."""

import time
from typing import Literal, Self

PLAIN_SECONDS = 10.0
"""Where there is no terminal, the least time between two lines."""


def note(text: str) -> None:
    """Say something in passing, on standard error."""
    from rich.console import Console

    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


class Progress:
    """Counts up to ``total`` on standard error, with the time that is left.

    Its methods `update`, `reset` and `close` are those that pooch calls on a progress bar, so it
    can be handed over.

    Attributes:
        total: What it counts up to; 0 while nobody knows.
    """

    def __init__(
        self, what: str, *, unit: Literal["bytes", "clips", "steps"], total: int = 0
    ) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        self.total = total
        self._what = what
        self._done = self._first = 0
        self._warm = False
        self._began = self._spoke = time.monotonic()
        console = Console(stderr=True)
        self._bar: Bar | None = None
        if console.is_terminal:
            count = {
                "bytes": DownloadColumn(),
                "clips": MofNCompleteColumn(),
                "steps": TaskProgressColumn(),
            }[unit]
            self._bar = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                count,
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                console=console,
            )
            self._task = self._bar.add_task(what, total=total or None, note="")
            self._bar.start()
        else:
            note(what)

    def update(self, count: int) -> None:
        """Count further."""
        self.reach(self._done + count)

    def reach(self, done: int, note_: str = "") -> None:
        """Have counted to ``done``; a short note says how it stands."""
        self._done = done
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=self.total or None, note=note_)
            return
        now = time.monotonic()
        if not self._warm and done > self._first:
            # the first step also loads and builds what all others only use
            self._warm, self._first, self._began = True, done, now
        wait = PLAIN_SECONDS * max(1, (now - self._began) / 200)  # a log of hours stays short
        if self.total and now - self._spoke >= wait:
            self._spoke = now
            told = [f"{self._what}: {done / self.total:.0%}"]
            if done - self._first > 0.01 * self.total:  # before that it is mostly starting up
                left = (now - self._began) * (self.total - done) / (done - self._first)
                told.append(f"about {_duration(left)} left")
            note(", ".join([*told, *([note_] if note_ else [])]))

    def start_at(self, done: int) -> None:
        """What was done in an earlier start does not count towards the pace of this one."""
        self._done = self._first = done
        self._warm = False
        self._began = time.monotonic()
        if self._bar is not None:
            self._bar.reset(self._task, total=self.total or None, completed=done)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            note(text)

    def reset(self) -> None:
        """Count from nothing again."""
        self._done = 0

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Steps:
    """Progress that shows itself with its first report, and goes on from there.

    What comes before the first step, such as a download, may show progress of its own.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._progress: Progress | None = None

    def reach(self, done: int, total: int, note_: str = "") -> None:
        """So many steps are done; those of the first report were done in an earlier start."""
        if self._progress is None:
            self._progress = Progress(self._what, unit="steps", total=total)
            self._progress.start_at(done)
        self._progress.reach(done, note_)

    def say(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._progress is None:
            note(text)
        else:
            self._progress.say(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.close()


def _duration(seconds: float) -> str:
    """A time to wait, in words.

    >>> _duration(45), _duration(600), _duration(9000)
    ('45 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

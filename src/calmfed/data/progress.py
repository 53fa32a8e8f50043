"""How far a long read or download is: a bar on a terminal, a few plain lines elsewhere."""

from types import TracebackType
from typing import Literal, Self


def note(text: str) -> None:
    """Say something in passing, on standard error."""
    from rich.console import Console

    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


class Progress:
    """Counts up to ``total`` on standard error.

    Its methods are those that pooch calls on a progress bar, so it can be handed over.

    Attributes:
        total: What it counts up to; 0 while nobody knows.
    """

    def __init__(self, what: str, *, unit: Literal["bytes", "clips"], total: int = 0) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        self.total = total
        self._what = what
        self._done = 0
        self._tenths = 0
        console = Console(stderr=True)
        self._bar: Bar | None = None
        if console.is_terminal:
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                DownloadColumn() if unit == "bytes" else MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=console,
            )
            self._task = self._bar.add_task(what, total=total or None)
            self._bar.start()
        else:
            note(what)

    def update(self, count: int) -> None:
        """Count further."""
        self._done += count
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, total=self.total or None)
        elif self.total:
            tenths = min(10, 10 * self._done // self.total)
            if tenths > self._tenths:
                note(f"{self._what}: {10 * tenths} %")
                self._tenths = tenths

    def reset(self) -> None:
        """Count from nothing again."""
        self._done = 0

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

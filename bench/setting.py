"""The lite setting of CIFAR-10, on random images of that shape."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from calmfed.config import Config, layered, parse, preset_settings
from calmfed.data import from_arrays
from calmfed.data.dataset import Dataset
from calmfed.methods import methods
from calmfed.simulate.checkpoint import Checkpoint
from calmfed.simulate.engine import make_engine
from calmfed.simulate.federation import assemble
from calmfed.simulate.record import EventLog
from calmfed.simulate.rounds import Rounds
from calmfed.simulate.venue import Venue


def random_images(n: int = 10_000, side: int = 32) -> Dataset:
    """As many images as CIFAR-10 gives the lite preset."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (n + 100, 3, side, side), np.uint8)
    y = np.arange(n + 100) % 10
    return from_arrays(x[:n], y[:n], x[n:], y[n:], name="random")


def lite(**changes: object) -> Config:
    """The lite preset for it."""
    return replace(parse(layered(preset_settings("lite"), {"data": "random"})), **changes)  # type: ignore[arg-type]  # fields by name


class Walk:
    """A federation whose rounds can be walked one by one, with check, record and checkpoint."""

    def __init__(self, config: Config, folder: Path, workers: int) -> None:
        self.federation = assemble(config, random_images())
        self._checkpoint = Checkpoint(folder / "checkpoint")
        venue = Venue(self.federation, self._checkpoint.store)
        self.engine = make_engine(venue, workers)
        self._rounds = Rounds(venue, self.engine)
        self._log = EventLog(folder / "events.jsonl", 0)
        self._progress = self._rounds.start()

    def round(self) -> None:
        """One round, all that a run does in it but the global evaluation."""
        report = self._rounds.walk(self._progress, lambda: None)
        self._progress.events_bytes = self._log.append(report.events)
        self._checkpoint.commit(self._progress)

    def close(self) -> None:
        """Let go of processes and files."""
        self._log.close()
        self.engine.close()


assert methods()  # registered before anything is timed

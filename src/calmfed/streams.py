"""Named random streams: every draw has a purpose, and the same purpose draws the same numbers.

A stream is derived from (seed, purpose, round, client), never from what was drawn before it. So a
lesson gives the same result whichever process carries it out and in whichever order, and
resuming a run needs no generator state.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Stream:
    """The name of a random stream.

    Attributes:
        seed: The seed of the whole run.
        purpose: What is drawn: "partition", "schedule", "lesson", ...
        round: In which round, 0 before the first.
        client: For which client, by name; empty where it is for all.
    """

    seed: int
    purpose: str
    round: int = 0
    client: str = ""

    def generator(self) -> np.random.Generator:
        """A fresh numpy generator at the start of this stream."""
        return np.random.default_rng(self._sequence())

    @contextmanager
    def torch_generator(self) -> Iterator[None]:
        """Let torch's global generator draw from this stream, and leave it as it was.

        Initialisation and dropout know only the global generator, so it is forked.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self._sequence().generate_state(1, np.uint64)[0]))
            yield

    def _sequence(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(
            [self.seed, _number(self.purpose), self.round, _number(self.client)]
        )


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")

"""Resuming: one manifest says what is true after a round; whatever it does not name is swept.

Its order makes a kill at any instant harmless: states are complete before the manifest names
them, and the manifest takes its place by one rename.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calmfed.client import Score
from calmfed.errors import DataError
from calmfed.simulate.store import StateRef, StateStore

FORMAT = 1


@dataclass
class ClientState:
    """Where a client stands.

    Attributes:
        last: Its model.
        score: That model's score on its own validation split.
        best: The model with the best score so far.
        best_score: Its score.
        best_round: The round that made it, 0 for the initial one.
    """

    last: StateRef
    score: Score
    best: StateRef
    best_score: Score
    best_round: int = 0


@dataclass
class Counters:
    """The effort of a run so far.

    Attributes:
        lessons: Carried out.
        samples_studied: Forward and backward passes of students.
        teacher_passes: Forward passes of teachers.
        unheard: Teachers left out of a lesson because their predictions were not finite there.
        bytes_moved: That a real exchange would move.
        refusals: Outcomes and merges that owners did not adopt.
    """

    lessons: int = 0
    samples_studied: int = 0
    teacher_passes: int = 0
    unheard: int = 0
    bytes_moved: int = 0
    refusals: int = 0


@dataclass
class Progress:
    """Everything a run is after some round.

    Attributes:
        round: The last finished round.
        clients: Where each client stands.
        counters: The effort so far.
        events_bytes: Length of ``events.jsonl`` up to there.
        seconds: Time spent so far, by what on; the one part that no two runs share.
        memory: What the method remembers, by name.
    """

    round: int
    clients: dict[str, ClientState]
    counters: Counters
    events_bytes: int
    seconds: dict[str, float]
    memory: dict[str, StateRef] = field(default_factory=dict)

    def refs(self) -> set[StateRef]:
        """All states that are still of use."""
        models = {ref for c in self.clients.values() for ref in (c.last, c.best)}
        return models | set(self.memory.values())


_PROGRESS: TypeAdapter[Progress] = TypeAdapter(Progress)


class Checkpoint:
    """The folder ``checkpoint/`` of a run."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.store = StateStore(folder)
        self._manifest = folder / "manifest.json"
        self._read_only = read_only
        self._synced: set[StateRef] = set()

    def commit(self, progress: Progress) -> None:
        """Make a round the one that a resumed run goes on from."""
        refs = progress.refs()
        self.store.sync(refs - self._synced)
        write_json(self._manifest, {"format": FORMAT, **asdict(progress)})
        self._synced = refs
        self.store.sweep(refs)

    def load(self) -> Progress | None:
        """Where an earlier run got to; None where there was none."""
        if not self._manifest.exists():
            return None
        told = read_json(self._manifest, "a checkpoint")
        if told.get("format") not in (None, FORMAT):
            raise DataError(f"{self._manifest} was written by another version of calmfed")
        try:
            progress = _PROGRESS.validate_python({k: v for k, v in told.items() if k != "format"})
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise DataError(
                f"{self._manifest} is damaged: {key}: {first['msg'].lower()}; this run cannot go "
                "on, delete its directory to begin again"
            ) from None
        if not self._read_only:  # a reader checks what it reads, and leaves a live run's files be
            self.store.verify(sorted(progress.refs(), key=lambda ref: ref.sha256))
            self._synced = progress.refs()
            self.store.sweep(self._synced)
        return progress


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file so that there is either the old one or the whole new one, crash or not."""
    beside = path.with_suffix(path.suffix + ".part")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """An object that one of our JSON files holds.

    Args:
        path: The file.
        what: What it should be, for the error: "a checkpoint".

    Raises:
        FileNotFoundError: If it is not there.
        DataError: If it cannot be read, or holds anything else.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # not JSON, or not even text
        raise DataError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(told, dict):
        raise DataError(f"{path} is damaged: it is not {what}")
    return told

"""The written record of a run: events line by line, who holds what, trust by sample."""

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import calmfed
from calmfed.errors import DataError
from calmfed.simulate.federation import Federation
from calmfed.simulate.venue import LessonReport


@dataclass(frozen=True)
class Event:
    """One thing that happened; ``client`` is empty where it concerns all."""

    round: int
    client: str
    metric: str
    value: Any


class EventLog:
    """``events.jsonl``: one event a line, cut back on resuming to what the checkpoint knows."""

    def __init__(self, path: Path, length: int) -> None:
        self._file = path.open("ab")
        if self._file.seek(0, os.SEEK_END) < length:
            raise DataError(
                f"{path} is shorter than the checkpoint says: it was changed or cut; "
                "this run cannot go on, delete its directory to begin again"
            )
        self._file.truncate(length)
        self._file.seek(length)

    def append(self, events: Iterable[Event]) -> int:
        """Write events down; the length of the file afterwards."""
        for event in events:
            self._file.write(json.dumps(asdict(event), allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_events(path: Path) -> Iterator[Event]:
    """The events of a run, in order."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield Event(**json.loads(line))
                except (ValueError, TypeError):
                    raise DataError(f"{path}, line {number} is not an event") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory, not the events of a run") from None


def partition_record(federation: Federation) -> dict[str, Any]:
    """Who holds what, as written to ``partition.json``."""
    members, y = federation.members, federation.arrays.train_y
    classes = len(members.labels)
    return {
        "kind": federation.config.partition,
        "sha256": federation.partition_digest(),
        "data_sha256": federation.arrays.digest(),
        "labels": list(members.labels),
        "shape": list(federation.arrays.train_x.shape[1:]),
        "clients": {
            name: {
                "architecture": members.specs[name].name,
                "samples_by_class": np.bincount(
                    y[np.concatenate([members.training[name], members.validation[name]])],
                    minlength=classes,
                ).tolist(),
                "training": members.training[name].tolist(),
                "validation": members.validation[name].tolist(),
            }
            for name in members.names
        },
    }


def check_partition(told: dict[str, Any], path: Path) -> dict[str, Any]:
    """A partition record, or a `DataError` where it lacks what it must have."""
    of_client = ("architecture", "samples_by_class", "training", "validation")
    whole = all(key in told for key in ("sha256", "data_sha256", "labels", "shape", "clients"))
    if not whole or not isinstance(told["clients"], dict) or not all(
        isinstance(held, dict) and all(key in held for key in of_client)
        for held in told["clients"].values()
    ):  # fmt: skip
        raise DataError(f"{path} is damaged: it is not a partition")
    return told


def save_trust(
    path: Path, names: tuple[str, ...], lessons: Mapping[tuple[str, str], LessonReport]
) -> None:
    """Write the trust of one round, sample by sample, to an npz; nothing if there were no teachers.

    Columns: ``trust`` (lambda), ``lambda_dis``, ``g``, ``mass`` (of the target on the label),
    ``label``, ``client`` (index of the host), ``right`` (whether the target's argmax is the label).
    """
    judged = [(host, r.trust) for (_, host), r in lessons.items() if r.trust is not None]
    if not judged:
        return
    columns: dict[str, Any] = {
        "trust": np.concatenate([t.trust for _, t in judged]),
        "lambda_dis": np.concatenate([t.disagreement_trust for _, t in judged]),
        "g": np.concatenate([t.label_trust for _, t in judged]),
        "mass": np.concatenate([t.mass for _, t in judged]),
        "label": np.concatenate([t.label for _, t in judged]),
        "right": np.concatenate([t.right for _, t in judged]),
        "client": np.concatenate([np.full(len(t.label), names.index(h)) for h, t in judged]),
    }
    beside = path.with_suffix(".part.npz")
    with beside.open("wb") as file:
        np.savez(file, **columns)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def environment() -> dict[str, Any]:
    """What a run ran with: versions and hardware."""
    return {
        "calmfed": calmfed.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()

"""What a run leaves behind, read back: figures and trained models."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from torch import nn

from calmfed.config import Config, parse
from calmfed.errors import DataError, UserError
from calmfed.models import ModelSpec
from calmfed.simulate.checkpoint import Checkpoint, ClientState, read_json
from calmfed.simulate.record import Event, check_partition, read_events


@dataclass(frozen=True)
class _Client:
    """Figures of one client's model."""

    accuracy: float
    own_mix: float
    per_class: list[float | None]


@dataclass(frozen=True)
class _Effort:
    """Of the counters, those that tables show."""

    samples_studied: int
    teacher_passes: int
    bytes_moved: int
    refusals: int


@dataclass(frozen=True)
class _Models:
    """Figures of one checkpoint of all clients."""

    accuracy: float
    ensemble: float
    own_mix: float
    per_architecture: dict[str, float]
    per_class: list[float | None]
    clients: dict[str, _Client]


@dataclass(frozen=True)
class _Point:
    """Of the curve over rounds."""

    round: int
    accuracy: float
    ensemble: float


@dataclass(frozen=True)
class _Figures:
    """What ``result.json`` must hold for those who read it."""

    config: dict[str, Any]
    headline: Literal["last", "best"]
    test_samples: int
    last: _Models
    best: _Models
    curve: list[_Point]
    counters: _Effort
    times: dict[str, float]
    also: dict[str, _Models] = field(default_factory=dict)


_FIGURES: TypeAdapter[_Figures] = TypeAdapter(_Figures)


@dataclass(frozen=True)
class Result:
    """The figures of a finished run.

    Attributes:
        told: The content of ``result.json``.
        directory: Where the run is kept; None where it was not.
    """

    told: dict[str, Any]
    directory: Path | None

    @classmethod
    def read(cls, folder: Path) -> "Result":
        """Read ``result.json``."""
        path = folder / "result.json"
        try:
            told = read_json(path, "the result of a run")
        except FileNotFoundError:
            raise UserError(f"{folder} holds no finished run") from None
        except DataError as error:
            raise DataError(f"{error}; delete it, and the same command makes it anew") from None
        try:
            _FIGURES.validate_python(told)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise DataError(
                f"{path} is damaged: {key}: {first['msg'].lower()}; delete it, and the same "
                "command makes it anew"
            ) from None
        return cls(told, folder)

    @property
    def accuracy(self) -> float:
        """Global accuracy of the checkpoint that speaks for the method (``headline``)."""
        return float(self.told[self.told["headline"]]["accuracy"])

    @property
    def last(self) -> float:
        """Global accuracy of the last models."""
        return float(self.told["last"]["accuracy"])

    @property
    def best(self) -> float:
        """Global accuracy of the models that were best on their own validation splits."""
        return float(self.told["best"]["accuracy"])

    @property
    def ensemble(self) -> float:
        """Accuracy of the mean of all clients' last models: how much there is to pass on."""
        return float(self.told["last"]["ensemble"])


@dataclass(frozen=True)
class RunClient:
    """A client of a run on disk, and its trained models."""

    name: str
    spec: ModelSpec
    _state: ClientState
    _checkpoint: Checkpoint

    @property
    def last(self) -> nn.Module:
        """Its model after the last round, in evaluation mode."""
        return self._model(which="last")

    @property
    def best(self) -> nn.Module:
        """Its model of the round that was best on its own validation split."""
        return self._model(which="best")

    def _model(self, which: str) -> nn.Module:
        model = self.spec.build()
        ref = getattr(self._state, which)
        self._checkpoint.store.verify([ref])
        model.load_state_dict(self._checkpoint.store.get(ref))
        return model.eval()


@dataclass(frozen=True)
class Run:
    """A run on disk, finished or not."""

    directory: Path
    config: Config

    @property
    def result(self) -> Result:
        """Its result; a `UserError` if it is not finished."""
        return Result.read(self.directory)

    @property
    def partition(self) -> dict[str, Any]:
        """Who holds what, as ``partition.json`` tells it."""
        path = self.directory / "partition.json"
        return check_partition(_read_json(path, "a partition"), path)

    def events(self) -> list[Event]:
        """All its events."""
        return list(read_events(self.directory / "events.jsonl"))

    def client(self, index: int) -> RunClient:
        """A client by number, 0 for the first."""
        if not isinstance(index, int):
            raise UserError(f"a client is known by its number, got {index!r}")
        checkpoint = Checkpoint(self.directory / "checkpoint", read_only=True)
        progress = checkpoint.load()
        if progress is None:
            raise UserError(f"{self.directory} holds no checkpoint yet")
        names = list(progress.clients)
        if not 0 <= index < len(names):
            raise UserError(f"there are clients 0..{len(names) - 1}, not {index}")
        name, shape = names[index], self.partition
        spec = self.config.spec(index, shape["shape"][0], len(shape["labels"]))
        return RunClient(name, spec, progress.clients[name], checkpoint)


def load_run(directory: Path | str) -> Run:
    """Open the directory of a run: ``load_run(d).client(3).best`` is a trained model."""
    if not isinstance(directory, str | Path):
        raise UserError(f"directory must be a path, got {directory!r}")
    folder = Path(directory)
    path = folder / "config.json"
    told = _read_json(path, "the configuration of a run").get("config")
    if not isinstance(told, dict):
        raise DataError(f"{path} is damaged: it is not the configuration of a run")
    return Run(folder, parse(told))


def _read_json(path: Path, what: str) -> dict[str, Any]:
    try:
        return read_json(path, what)
    except FileNotFoundError:
        raise UserError(f"{path.parent} holds no run: there is no {path.name}") from None

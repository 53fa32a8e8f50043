"""Running one federation from its configuration to its result, and going on where it stopped."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from calmfed import data
from calmfed.config import Config, parse
from calmfed.data.dataset import Dataset
from calmfed.errors import DataError, Interrupted, UserError
from calmfed.simulate.checkpoint import Checkpoint, Progress, read_json, write_json
from calmfed.simulate.engine import Engine, make_engine
from calmfed.simulate.evaluate import Evaluator, ensemble_accuracy, summarise
from calmfed.simulate.federation import Federation, assemble
from calmfed.simulate.lock import LOCK, locked
from calmfed.simulate.record import (
    Event,
    EventLog,
    check_partition,
    environment,
    partition_record,
    read_events,
    save_trust,
)
from calmfed.simulate.result import Result
from calmfed.simulate.rounds import Rounds
from calmfed.simulate.venue import Venue
from calmfed.workshop import try_out

OnProgress = Callable[[int, int, str], None]
"""Called with steps done, steps in all, and a note on how it stands."""


def run(
    config: Config | None = None,
    *,
    dataset: Dataset | None = None,
    directory: Path | str | None = None,
    workers: int = 1,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> Result:
    """Run one federation, or go on with one that was stopped, and give its result.

    Args:
        config: What to run; or give its fields as keyword arguments.
        dataset: Samples of one's own (see `calmfed.from_arrays`) in place of ``config.data``.
        directory: Where the run is kept, and resumed from. Without one nothing is kept.
        workers: Worker processes; below two it all happens in this one. They change no number.
        on_progress: Told how it goes.
        **settings: Fields of `Config`.

    Returns:
        The result; with a directory, also written there as ``result.json``.
    """
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise UserError(f"workers must be a whole number, got {workers!r}")
    if not isinstance(directory, str | PathLike | None):
        raise UserError(f"directory must be a path, got {directory!r}")
    if config is not None and not isinstance(config, Config):
        raise UserError(f"config must be a calmfed.Config, got {type(config).__name__}")
    if dataset is not None and not isinstance(dataset, Dataset):
        raise UserError(
            f"dataset must be a data set, as calmfed.from_arrays makes one, "
            f"got {type(dataset).__name__}"
        )
    if config is not None and settings:
        raise UserError("give either a config or its settings, not both")
    if dataset is not None and settings.get("data", dataset.name) != dataset.name:
        raise UserError("give either a dataset or the name of one as data, not both")
    config = config or parse(settings)
    if dataset is not None:
        config = replace(config, data=dataset.name)
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="calmfed-") as folder:
            return _run(config, dataset, Path(folder), workers, on_progress, kept=False)
    return _run(config, dataset, Path(directory), workers, on_progress, kept=True)


def _run(
    config: Config,
    dataset: Dataset | None,
    folder: Path,
    workers: int,
    on_progress: OnProgress | None,
    *,
    kept: bool,
) -> Result:
    finished = folder / "result.json"
    over = _is_claimed(folder, config) and finished.exists()
    if over and dataset is None and not may_change(config):
        return Result.read(folder)
    if dataset is None:
        dataset = data.load(config.data, public=config.wants_public())
    federation = assemble(config, dataset)  # before anything is written: it may be refused
    if over:  # of these very samples?
        _write_partition(folder / "partition.json", federation)
        return Result.read(folder)
    for spec in dict.fromkeys(federation.members.specs.values()):
        try_out(spec, federation.shape)
    _refuse_strange(folder)
    with locked(folder), _threads(config.threads):
        if not _is_claimed(folder, config):
            _refuse_strange(folder)
            _claim(folder, config)
        _write_partition(folder / "partition.json", federation)
        try:
            told = _Simulation(federation, folder, workers, on_progress).finish()
        except KeyboardInterrupt:
            raise Interrupted(
                "stopped; the same command goes on where it was" if kept else "stopped"
            ) from None
        write_json(finished, told)
        return Result.read(folder) if kept else Result(json.loads(json.dumps(told)), None)


def may_change(config: Config) -> bool:
    """Whether a configuration's samples lie in a file of the user's own, and not a publisher's."""
    return data.source(config.data).argument is not None


class _Simulation:
    """One start of a run."""

    def __init__(
        self, federation: Federation, folder: Path, workers: int, on_progress: OnProgress | None
    ) -> None:
        self._federation = federation
        self._config = federation.config
        self._folder = folder
        self._workers = workers
        self._on_progress = on_progress
        self._checkpoint = Checkpoint(folder / "checkpoint")
        self._venue = Venue(federation, self._checkpoint.store)
        self._note = ""

    def finish(self) -> dict[str, Any]:
        """Do what is left of the run; the content of ``result.json``."""
        engine = make_engine(self._venue, self._workers)
        try:
            return self._walk(engine)
        finally:
            engine.close()

    def _walk(self, engine: Engine) -> dict[str, Any]:
        config = self._config
        rounds = Rounds(self._venue, engine)
        on_the_way = Evaluator(self._federation, engine, whole=False)
        progress = self._checkpoint.load()
        log = EventLog(self._folder / "events.jsonl", progress.events_bytes if progress else 0)
        try:
            if progress is None:
                progress = rounds.start()
                self._measure(progress, on_the_way, log)
                self._checkpoint.commit(progress)
            if progress.round > config.rounds or progress.clients.keys() != set(
                self._federation.members.names
            ):
                raise DataError(
                    f"{self._folder / 'checkpoint'} is damaged: it is of another federation"
                )
            self._tell(progress.round * config.active)
            while progress.round < config.rounds:
                self._round(progress, rounds, on_the_way, log)
        finally:
            log.close()
        return self._result(progress, engine)

    def _round(
        self, progress: Progress, rounds: Rounds, on_the_way: Evaluator, log: EventLog
    ) -> None:
        """One round, up to the instant at which it counts."""
        steps = iter(range(progress.round * self._config.active + 1, self._config.steps() + 1))
        began = time.perf_counter()
        report = rounds.walk(progress, lambda: self._tell(next(steps)))
        number = progress.round
        progress.events_bytes = log.append(report.events)
        progress.seconds["rounds"] += time.perf_counter() - began
        if number % self._config.eval_every == 0 or number == self._config.rounds:
            self._measure(progress, on_the_way, log)
        if number == self._config.rounds:
            save_trust(self._folder / "trust.npz", self._federation.members.names, report.lessons)
        began = time.perf_counter()
        self._checkpoint.commit(progress)
        progress.seconds["rounds"] += time.perf_counter() - began

    def _measure(self, progress: Progress, evaluator: Evaluator, log: EventLog) -> None:
        """Global accuracy of the last models on the part of the test set, as events."""
        began = time.perf_counter()
        predictions = evaluator.probabilities(
            {name: state.last for name, state in progress.clients.items()}
        )
        labels = evaluator.labels
        own = {n: (p.argmax(axis=1) == labels).mean() for n, p in predictions.items()}
        events = [
            Event(progress.round, "", "accuracy", float(sum(own.values()) / len(own))),
            Event(progress.round, "", "ensemble", ensemble_accuracy(predictions, labels)),
        ]
        events += [Event(progress.round, n, "accuracy", float(a)) for n, a in own.items()]
        progress.events_bytes = log.append(events)
        self._note = f"accuracy {events[0].value:.1%}"
        progress.seconds["evaluation"] += time.perf_counter() - began

    def _result(self, progress: Progress, engine: Engine) -> dict[str, Any]:
        """Measure both checkpoints of everybody on the whole test set, and put it all together."""
        began = time.perf_counter()
        config, members = self._config, self._federation.members
        evaluator = Evaluator(self._federation, engine, whole=True)
        steps = iter(range(config.rounds * config.active + 1, self._config.steps() + 1))
        checkpoints = {}
        for which in ("last", "best"):
            states = {name: getattr(c, which) for name, c in progress.clients.items()}
            predictions = evaluator.probabilities(states, lambda: self._tell(next(steps)))
            checkpoints[which] = summarise(self._federation, predictions, evaluator.labels)
        public = self._federation.arrays.public_x
        also = self._also(progress, evaluator)
        self._tell(self._config.steps())
        progress.seconds["evaluation"] += time.perf_counter() - began
        return {
            "config": asdict(config),
            "identity": config.identity(),
            "headline": config.method_setup().method.headline,
            "test_samples": len(evaluator.labels),
            "public_samples": 0 if public is None else len(public),
            **checkpoints,
            "also": also,
            "best_round": {name: c.best_round for name, c in progress.clients.items()},
            "curve": _curve(self._folder / "events.jsonl"),
            "curve_samples": len(members.evaluation),
            "counters": asdict(progress.counters),
            "times": progress.seconds,
        }

    def _also(self, progress: Progress, evaluator: Evaluator) -> dict[str, Any]:
        """What a method keeps beside last and best: servers' models, peaks, prototypes."""
        method, clients, found = self._config.method_setup().method, progress.clients, {}
        for which, kept in method.also(self._federation.members.specs).items():
            states = {
                name: progress.memory.get(kept.get(name, ""), client.last)
                for name, client in clients.items()
            }
            predictions = evaluator.probabilities(states)
            found[which] = summarise(self._federation, predictions, evaluator.labels)
        if (near := progress.memory.get(method.prototypes or "")) is not None:
            states = {name: client.last for name, client in clients.items()}
            predictions = evaluator.probabilities(states, prototypes=near)
            found["prototypes"] = summarise(self._federation, predictions, evaluator.labels)
        return found

    def _tell(self, step: int) -> None:
        if self._on_progress is not None:
            self._on_progress(step, self._config.steps(), self._note)


def _curve(events: Path) -> list[dict[str, Any]]:
    """Global accuracy and ensemble over rounds."""
    points: dict[int, dict[str, Any]] = {}
    for event in read_events(events):
        if event.client == "":
            points.setdefault(event.round, {"round": event.round})[event.metric] = event.value
    return list(points.values())


def _refuse_strange(folder: Path) -> None:
    """Refuse a directory in which something else than a run lies, before touching it."""
    if not folder.is_dir() or (folder / "config.json").exists():
        return
    if any(p.name not in (LOCK, "config.json.part") for p in folder.iterdir()):
        raise UserError(f"{folder} is not empty and holds no run: choose another directory")


def _claim(folder: Path, config: Config) -> None:
    """Take a directory for a configuration."""
    told = {"config": asdict(config), "identity": config.identity(), **environment()}
    write_json(folder / "config.json", told)


def _is_claimed(folder: Path, config: Config) -> bool:
    """Whether a directory is already this configuration's; if it is another's, a `UserError`."""
    path = folder / "config.json"
    if not path.exists():
        return False
    mine = json.loads(json.dumps(asdict(config)))
    theirs = read_json(path, "the configuration of a run").get("config")
    if not isinstance(theirs, dict) or theirs.keys() != mine.keys():
        raise DataError(f"{path} is damaged: it is not the configuration of a run")
    differing = [f.name for f in fields(Config) if theirs[f.name] != mine[f.name]]
    if differing:
        key = differing[0]
        raise UserError(
            f"{folder} holds another run: there {key} is {theirs.get(key)!r}, here {mine[key]!r}; "
            "choose another directory"
        )
    return True


def _write_partition(path: Path, federation: Federation) -> None:
    """Write down who holds what, or see that it is what was written before."""
    record = partition_record(federation)
    if not path.exists():
        write_json(path, record)
        return
    before = check_partition(read_json(path, "a partition"), path)
    for key, what in (("data_sha256", "samples"), ("sha256", "partition")):
        if before[key] != record[key]:
            raise UserError(f"{path.parent} was begun with other {what}: choose another directory")


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

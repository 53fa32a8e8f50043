"""Global accuracy by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from calmfed.config import parse
from calmfed.data import Dataset
from calmfed.simulate.checkpoint import Progress
from calmfed.simulate.engine import InProcess
from calmfed.simulate.evaluate import Evaluator, ensemble_accuracy, measure
from calmfed.simulate.federation import assemble
from calmfed.simulate.rounds import Rounds
from calmfed.simulate.store import StateStore
from calmfed.simulate.venue import PredictTask, Venue


def predictions(*answers: int, classes: int = 3) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[list(answers)]


def test_own_mix_weighs_classes_as_the_owner_holds_them() -> None:
    """Right on class 0 once of two, on class 1 always: 3 of 4 own samples are of class 1."""
    measured = measure(
        predictions(0, 2, 1, 1), np.array([0, 0, 1, 1]), own_labels=np.array([0, 1, 1, 1])
    )
    assert measured.accuracy == 0.75
    assert measured.per_class == [0.5, 1.0, None]  # the test set has none of class 2
    assert measured.own_mix == pytest.approx(0.25 * 0.5 + 0.75 * 1.0)


def test_own_mix_leaves_out_classes_that_are_not_tested() -> None:
    measured = measure(predictions(0, 1), np.array([0, 0]), own_labels=np.array([0, 2, 2]))
    assert measured.own_mix == 0.5


def test_the_ensemble_is_the_mean_of_probabilities_not_a_vote() -> None:
    """Two clients lean to class 1, one is sure of class 0, which wins the mean: (.4+.4+1)/3."""
    sure, leaning = np.array([[1.0, 0.0]], np.float32), np.array([[0.4, 0.6]], np.float32)
    clients = {"a": leaning, "b": leaning, "c": sure}
    assert ensemble_accuracy(clients, np.array([0])) == 1.0


def test_the_ensemble_needs_no_majority() -> None:
    clients = {"a": np.array([[0.4, 0.35, 0.25]], np.float32)}
    assert ensemble_accuracy(clients, np.array([0])) == 1.0


class Counting(InProcess):
    """Writes down how many tasks it was given."""

    def __init__(self, venue: Venue) -> None:
        super().__init__(venue)
        self.given: list[int] = []

    def perform(self, tasks: Sequence[Any], done: Any) -> list[Any]:
        self.given.append(len(tasks))
        return super().perform(tasks, done)


def test_only_changed_models_are_evaluated_again(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    federation = assemble(parse({**settings, "data": "blobs"}), dataset)
    venue = Venue(federation, StateStore(tmp_path))
    engine = Counting(venue)
    rounds = Rounds(venue, InProcess(venue))
    progress = rounds.start()
    clients = progress.clients
    evaluator = Evaluator(federation, engine, whole=False)
    for _ in (1, 2):
        evaluator.probabilities({name: c.last for name, c in clients.items()})
        rounds.walk(progress, lambda: None)
    evaluator.probabilities({name: c.last for name, c in clients.items()})
    evaluator.probabilities({name: c.last for name, c in clients.items()})
    assert engine.given == [4, 3, 3, 0]  # all four clients, then those three that were active


def overflowing(venue: Venue, rounds: Rounds) -> tuple[str, Progress]:
    """A client whose last layer answers beyond the largest number."""
    progress = rounds.start()
    clients = progress.clients
    name = next(iter(clients))
    state = {key: tensor.clone() for key, tensor in venue.store.get(clients[name].last).items()}
    state["norms.5.bias"].fill_(1e30)
    state["head.weight"].fill_(1e30)
    clients[name].last = venue.store.put(state)
    return name, progress


def test_a_model_that_overflows_says_nothing_at_evaluation_and_as_a_teacher(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    settings |= {"active": 4, "data": "blobs"}
    federation = assemble(parse(settings), dataset)
    venue = Venue(federation, StateStore(tmp_path))
    rounds = Rounds(venue, InProcess(venue))
    name, progress = overflowing(venue, rounds)
    spec = federation.members.specs[name]
    shares = PredictTask(spec, progress.clients[name].last, whole=True).perform(venue)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    report = rounds.walk(progress, lambda: None)
    others = [r for (student, _), r in report.lessons.items() if student != name]
    assert [r.unheard for r in others] == [1, 1, 1]
    assert progress.counters.unheard == 3


def test_shares_are_probabilities(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    federation = assemble(parse({**settings, "data": "blobs"}), dataset)
    venue = Venue(federation, StateStore(tmp_path))
    clients = Rounds(venue, InProcess(venue)).start().clients
    (name, state), *_ = clients.items()
    shares = PredictTask(federation.members.specs[name], state.last, whole=True).perform(venue)
    model = federation.initial_model(name).eval()
    with torch.no_grad():
        x = federation.members.normalisation(dataset.test_x)
        torch.testing.assert_close(torch.from_numpy(shares), model(x).softmax(dim=1))

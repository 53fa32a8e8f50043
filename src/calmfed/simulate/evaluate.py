"""Global accuracy: how well every client's model does on the whole world's test set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calmfed.models import ModelSpec
from calmfed.simulate.engine import Done, Engine
from calmfed.simulate.federation import Federation
from calmfed.simulate.store import StateRef
from calmfed.simulate.venue import PredictTask

Probabilities = NDArray[np.float32]
_Key = tuple[ModelSpec, StateRef, StateRef | None]


class Evaluator:
    """Predicts the test set with clients' models; what it has seen it does not predict again."""

    def __init__(self, federation: Federation, engine: Engine, *, whole: bool) -> None:
        self._engine = engine
        self._members = federation.members
        self._whole = whole
        self._known: dict[_Key, Probabilities] = {}
        y = federation.arrays.test_y
        self.labels = y if whole else y[federation.members.evaluation]

    def probabilities(
        self,
        states: Mapping[str, StateRef],
        done: Done = lambda: None,
        prototypes: StateRef | None = None,
    ) -> dict[str, Probabilities]:
        """Each client's predictions, [n, classes]; those of other states are forgotten.

        By its classifier or, where prototypes are given, by the nearest of them.
        """
        wanted = {
            name: (self._members.specs[name], ref, prototypes) for name, ref in states.items()
        }
        missing = list(dict.fromkeys(key for key in wanted.values() if key not in self._known))
        tasks = [PredictTask(spec, ref, self._whole, near) for spec, ref, near in missing]
        found = self._engine.perform(tasks, done)
        self._known |= dict(zip(missing, found, strict=True))
        self._known = {key: self._known[key] for key in wanted.values()}
        return {name: self._known[key] for name, key in wanted.items()}


@dataclass(frozen=True)
class Measurement:
    """What one model does on the test set.

    Attributes:
        accuracy: On all of it.
        per_class: On each class; None where the test set has none of it.
        own_mix: With each class weighing as much as in its owner's training samples.
    """

    accuracy: float
    per_class: list[float | None]
    own_mix: float


def measure(
    probabilities: Probabilities, labels: NDArray[np.int64], own_labels: NDArray[np.int64]
) -> Measurement:
    """Compare predictions [n, classes] with the labels [n].

    Classes that the test set lacks are left out of ``own_mix`` and the others weigh the more.
    """
    classes = probabilities.shape[1]
    right = probabilities.argmax(axis=1) == labels
    counts = np.bincount(labels, minlength=classes)
    hits = np.bincount(labels, weights=right, minlength=classes)
    tested = counts > 0
    rates = np.divide(hits, counts, out=np.zeros(classes), where=tested)
    mix = np.bincount(own_labels, minlength=classes) * tested
    return Measurement(
        accuracy=float(right.mean()),
        per_class=[
            float(rate) if known else None for rate, known in zip(rates, tested, strict=True)
        ],
        own_mix=float((mix * rates).sum() / mix.sum()) if mix.any() else 0.0,
    )


def ensemble_accuracy(predictions: Mapping[str, Probabilities], labels: NDArray[np.int64]) -> float:
    """Accuracy of the plain mean of all clients' probabilities: how much there is to pass on."""
    mean = np.mean([predictions[name] for name in sorted(predictions)], axis=0, dtype=np.float64)
    return float((mean.argmax(axis=1) == labels).mean())


def summarise(
    federation: Federation,
    predictions: Mapping[str, Probabilities],
    labels: NDArray[np.int64],
) -> dict[str, Any]:
    """The figures of one checkpoint of all clients; every mean is over clients, unweighted."""
    members = federation.members
    own = {
        name: measure(p, labels, federation.arrays.train_y[members.training[name]])
        for name, p in predictions.items()
    }
    by_architecture: dict[str, list[float]] = {}
    for name, measured in own.items():
        by_architecture.setdefault(members.specs[name].name, []).append(measured.accuracy)
    per_class = zip(*(m.per_class for m in own.values()), strict=True)
    return {
        "accuracy": _mean([m.accuracy for m in own.values()]),
        "ensemble": ensemble_accuracy(predictions, labels),
        "own_mix": _mean([m.own_mix for m in own.values()]),
        "per_architecture": {
            name: _mean(by_architecture[name]) for name in sorted(by_architecture)
        },
        "per_class": [None if None in rates else _mean(list(rates)) for rates in per_class],
        "clients": {
            name: {"accuracy": m.accuracy, "own_mix": m.own_mix, "per_class": m.per_class}
            for name, m in own.items()
        },
    }


def _mean(values: list[Any]) -> float:
    return float(np.mean(values))

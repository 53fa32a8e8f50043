"""Where the work of a simulated federation is done, in whichever process: lessons, predictions."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from calmfed.aids import PUBLIC
from calmfed.data.views import Samples
from calmfed.lesson import Lesson, TrustRecord, carry_out
from calmfed.models import ModelSpec
from calmfed.simulate.federation import Federation
from calmfed.simulate.store import StateRef, StateStore
from calmfed.workshop import NearestPrototype, Teacher, Workshop


class Venue:
    """What a process needs to work: the federation, the store of states, a workshop."""

    def __init__(self, federation: Federation, store: StateStore) -> None:
        self.federation = federation
        self.store = store
        self.workshop = Workshop()
        self._host: tuple[str, Samples] | None = None

    def samples(self, host: str) -> Samples:
        """The host's training samples; the last host's are kept at hand."""
        if self._host is None or self._host[0] != host:
            self._host = host, self.federation.samples(host)
        return self._host[1]


@dataclass(frozen=True)
class LessonReport:
    """What is told of a lesson: the stored outcome and the effort."""

    state: StateRef
    samples_studied: int
    teacher_passes: int
    unheard: int
    trust: TrustRecord | None


@dataclass(frozen=True)
class LessonTask:
    """Carry out a lesson on frozen states."""

    lesson: Lesson
    frozen: Mapping[str, StateRef]
    handouts: Mapping[str, StateRef]
    samples: int

    @property
    def cost(self) -> float:
        """Passes, weighed by the size of the models that make them."""
        student = 3 * self.lesson.recipe.epochs * self.frozen[self.lesson.student].nbytes
        teachers = sum(self.frozen[name].nbytes for name in self.lesson.teachers)
        return self.samples * (student + teachers)

    def perform(self, context: Venue) -> LessonReport:
        """Load the models, teach, store the outcome."""
        specs, store, workshop = context.federation.members.specs, context.store, context.workshop
        name = self.lesson.student
        student = workshop.student(specs[name], store.get(self.frozen[name]))
        teachers = (
            workshop.teacher(specs[name], store.get(self.frozen[name]))
            for name in self.lesson.teachers
        )
        handouts = {name: store.get(ref) for name, ref in self.handouts.items()}
        if any(PUBLIC in aid.handouts for aid in self.lesson.aids):
            handouts[PUBLIC] = {"x": context.federation.public}
        outcome = carry_out(
            self.lesson, student, context.samples(self.lesson.host), teachers, handouts
        )
        heard = outcome.heard
        return LessonReport(
            state=store.put(outcome.state),
            samples_studied=outcome.samples_studied,
            teacher_passes=heard.teacher_passes,
            unheard=heard.unheard,
            trust=heard.trust,
        )


@dataclass(frozen=True)
class PredictTask:
    """Predict the test set, or its part for measurements on the way.

    By the classifier or, with prototypes, by the nearest prototype.
    """

    spec: ModelSpec
    state: StateRef
    whole: bool
    prototypes: StateRef | None = None

    @property
    def cost(self) -> float:
        """Grows with the size of the model."""
        return self.state.nbytes

    def perform(self, context: Venue) -> NDArray[np.float32]:
        """Probabilities, [n, classes]; all alike for a sample on which the model overflows."""
        federation = context.federation
        model = context.workshop.teacher(self.spec, context.store.get(self.state))
        part = federation.members.evaluation
        n = len(federation.arrays.test_y) if self.whole else len(part)
        batch = federation.config.teacher_batch
        chunks = []
        decide: Teacher = model
        if self.prototypes is not None:
            decide = NearestPrototype(model, context.store.get(self.prototypes))
        with torch.no_grad():
            for start in range(0, n, batch):
                span = slice(start, start + batch)
                x = federation.arrays.test_x[span if self.whole else part[span]]
                shares = decide(federation.members.normalisation(x)).float().softmax(dim=1)
                chunks.append(shares.nan_to_num(1 / shares.shape[1]))
        return torch.cat(chunks).numpy()

"""A lesson: whose model studies, on whose samples, judged by which teachers; and carrying it out.

`carry_out` is *view -> judge -> study*: the one way in which a client's model is trained, in the
simulator and in the node alike. What a server or a group trains besides is in `calmfed.joint`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calmfed.aids import Aid, Desk, Penalty
from calmfed.data.views import Samples, View, lay_out
from calmfed.loss import objective
from calmfed.recipe import Recipe
from calmfed.rules import Judgement, Rule
from calmfed.snapshot import State, state_of
from calmfed.streams import Stream
from calmfed.workshop import Teacher


@dataclass(frozen=True)
class Lesson:
    """One lesson as plain data; who carries it out needs nothing else but the models and samples.

    Attributes:
        student: Whose model studies.
        host: On whose samples.
        teachers: Whose snapshots judge, sorted by name; none means labels alone.
        rule: How their predictions become target and trust; None without teachers.
        recipe: How the student trains.
        stream: Where order, augmentation and dropout are drawn from.
        aids: What the student learns from besides labels and teachers, if anything.
    """

    student: str
    host: str
    teachers: tuple[str, ...]
    rule: Rule | None
    recipe: Recipe
    stream: Stream
    aids: tuple[Aid, ...] = ()

    @property
    def at_home(self) -> bool:
        """Whether the student studies its owner's samples."""
        return self.student == self.host


@dataclass(frozen=True)
class TrustRecord:
    """What a rule thought of each of the host's samples, [n] each, as first shown.

    Attributes:
        trust: lambda.
        disagreement_trust: lambda_dis; equal to lambda for rules without gates.
        label_trust: g; one for rules without gates.
        mass: The target's mass on the true label.
        label: The true label.
        right: Whether the target's largest entry is the true label.
    """

    trust: NDArray[np.float32]
    disagreement_trust: NDArray[np.float32]
    label_trust: NDArray[np.float32]
    mass: NDArray[np.float32]
    label: NDArray[np.int64]
    right: NDArray[np.bool_]


@dataclass(frozen=True)
class Hearing:
    """What the teachers said on a stream, judged.

    Attributes:
        judgement: By place in the stream if the view is augmented, else by sample; None if there
            was nobody to hear.
        trust: The record of the first pass; None likewise.
        teacher_passes: Forward passes of teachers, one a teacher and sample.
        unheard: Teachers whose predictions were not finite here, and so were left out.
    """

    judgement: Judgement | None = None
    trust: TrustRecord | None = None
    teacher_passes: int = 0
    unheard: int = 0


@dataclass(frozen=True)
class Outcome:
    """What comes out of a lesson, besides the trained student.

    Attributes:
        state: The student's state after it.
        samples_studied: Forward and backward passes of the student.
        heard: What the teachers said, and how far they were believed.
    """

    state: State
    samples_studied: int
    heard: Hearing


def carry_out(
    lesson: Lesson,
    student: nn.Module,
    samples: Samples,
    teachers: Iterable[Teacher],
    handouts: Mapping[str, State] | None = None,
) -> Outcome:
    """Carry out a lesson at its host: view, judge, study.

    Args:
        lesson: What to do.
        student: The student's model; it is trained in place.
        samples: The host's training samples.
        teachers: The teachers' models in evaluation mode, in the order of ``lesson.teachers``;
            each is used up before the next is asked for.
        handouts: The tensors that the lesson's aids ask for, by name.
    """
    recipe = lesson.recipe
    height, width = samples.x.shape[2:]
    rng = lesson.stream.generator()
    view = lay_out(len(samples), recipe.epochs, recipe.augment, (height, width), rng)
    heard = Hearing()
    if lesson.teachers and lesson.rule is not None:
        heard = judge(lesson.rule, teachers, samples, view, recipe.teacher_batch)
    desk = Desk(handouts or {}, recipe, rng)
    with lesson.stream.torch_generator(), desk.closing:
        begun = [aid.begin(student, desk) for aid in lesson.aids]
        penalties = [penalty for penalty in begun if penalty is not None]
        study(student, samples, view, heard.judgement, recipe, penalties)
    return Outcome(state_of(student), len(view) + desk.samples_studied, heard)


def judge(
    rule: Rule, teachers: Iterable[Teacher], samples: Samples, view: View, batch: int
) -> Hearing:
    """Let the teachers predict on the stream and the rule judge them.

    Where nothing is augmented all passes show the same samples: each is judged once. A teacher
    that overflows on these samples has nothing to say about them; the others still do.
    """
    shown = view if view.augmented else _once(view)
    chunks = [slice(i, min(i + batch, len(shown))) for i in range(0, len(shown), batch)]
    with torch.no_grad():
        logits = [
            torch.cat([teacher(shown.show(samples.x, c)) for c in chunks]).float()
            for teacher in teachers
        ]
    passes = len(shown) * len(logits)
    sound = [said for said in logits if bool(torch.isfinite(said).all())]
    unheard = len(logits) - len(sound)
    if not sound:
        return Hearing(None, None, passes, unheard)
    labels = samples.y[torch.from_numpy(shown.order)]
    judgement = rule(torch.stack(sound), labels)
    return Hearing(judgement, _record(judgement, labels, len(samples)), passes, unheard)


def study(
    student: nn.Module,
    samples: Samples,
    view: View,
    judgement: Judgement | None,
    recipe: Recipe,
    penalties: Sequence[Penalty] = (),
) -> None:
    """Train the student on the stream against labels, targets and trusts (Eq. 10), in place.

    What a lesson's aids ask for is added to the loss of each batch.
    """
    log_prior = samples.log_frequencies() if recipe.ce == "prior" else None
    optimiser = recipe.optimiser(student)
    order = torch.from_numpy(view.order)
    student.train()
    for span in view.batches(recipe.batch):
        chosen = order[span]
        logits = student(view.show(samples.x, span))
        part = None
        if judgement is not None:
            part = judgement[span if view.augmented else chosen]
        loss = objective(logits, samples.y[chosen], part, recipe.kd_weight, log_prior)
        for penalty in penalties:
            loss = loss + penalty(samples.y[chosen])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
    optimiser.zero_grad()  # a model at rest holds no gradients


def _once(view: View) -> View:
    return View(np.arange(view.epoch), None, None, view.epoch)


def _record(judgement: Judgement, labels: Tensor, n: int) -> TrustRecord:
    """The first n places of the stream, as numbers to keep."""
    target, labels = judgement.target[:n], labels[:n]
    trust = judgement.trust[:n]
    by_disagreement, by_label = judgement.disagreement_trust, judgement.label_trust
    return TrustRecord(
        trust=trust.numpy(),
        disagreement_trust=(trust if by_disagreement is None else by_disagreement[:n]).numpy(),
        label_trust=(torch.ones_like(trust) if by_label is None else by_label[:n]).numpy(),
        mass=target.gather(1, labels[:, None])[:, 0].numpy(),
        label=labels.numpy(),
        right=(target.argmax(dim=1) == labels).numpy(),
    )

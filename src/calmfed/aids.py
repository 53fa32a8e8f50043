"""Aids: what a student learns from besides labels and teachers, hooked into the one training loop.

An aid is plain data in a `Lesson`, by names: the tensors that it needs are handed out to the host
that carries the lesson out.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calmfed.data.views import lay_out
from calmfed.loss import divergence_from_target
from calmfed.models.features import listen
from calmfed.recipe import Recipe
from calmfed.rules import Judgement
from calmfed.snapshot import State

PUBLIC = "public"
"""The handout that every host has by itself: the public samples ``x`` [P, C, H, W]."""

Penalty = Callable[[Tensor], Tensor]
"""Called after the student's pass over each batch with its labels [B]; what the loss grows by."""


@dataclass
class Desk:
    """What lies before a student when its lesson begins.

    Attributes:
        handouts: Tensors by the name of the handout and their own.
        recipe: How it trains.
        rng: The lesson's stream, after the order of its samples was drawn.
        samples_studied: Forward and backward passes for the aids so far; each aid adds its own.
        closing: What is to be undone when the lesson is over.
    """

    handouts: Mapping[str, State]
    recipe: Recipe
    rng: np.random.Generator
    samples_studied: int = 0
    closing: ExitStack = field(default_factory=ExitStack)


class Aid(Protocol):
    """A frozen dataclass with whatever settings it has."""

    @property
    def handouts(self) -> tuple[str, ...]:
        """What it needs: `PUBLIC`, or a name under which the method remembers tensors."""
        ...

    def begin(self, student: nn.Module, desk: Desk) -> Penalty | None:
        """Do what comes before the lesson; what is to be added to the loss of each batch."""
        ...


@dataclass(frozen=True)
class Proximity:
    """Stay near the model that the lesson began with (FedProx): ``mu / 2 |w - w0|^2``.

    Attributes:
        mu: How strongly.
    """

    mu: float

    handouts = ()

    def begin(self, student: nn.Module, desk: Desk) -> Penalty:
        """Remember where the student stood."""
        parameters = list(student.parameters())
        anchor = [p.detach().clone() for p in parameters]

        def penalty(labels: Tensor) -> Tensor:
            squares = [(p - a).square().sum() for p, a in zip(parameters, anchor, strict=True)]
            return self.mu / 2 * sum(squares[1:], squares[0])

        return penalty


@dataclass(frozen=True)
class Digest:
    """Before the lesson, fit what was agreed on about public samples (FedMD).

    Attributes:
        agreed: The handout that holds ``target`` [m, C] and ``index`` [m], the public samples
            that it is about.
        loss: ``"l1"`` between logits and target, or ``"kl"`` from a target that is a distribution.
        temperature: Of the student, under ``"kl"``.
        epochs: Passes over the public samples.
        batch: Public samples a step.
    """

    agreed: str
    loss: str = "l1"
    temperature: float = 1.0
    epochs: int = 1
    batch: int = 256

    @property
    def handouts(self) -> tuple[str, ...]:
        """The public samples and what is said about them."""
        return (PUBLIC, self.agreed)

    def begin(self, student: nn.Module, desk: Desk) -> None:
        """Train the student on the public samples."""
        index, target = desk.handouts[self.agreed]["index"], desk.handouts[self.agreed]["target"]
        if len(index) < 2:  # batch norm cannot train on a single sample
            return
        x = desk.handouts[PUBLIC]["x"][index]
        view = lay_out(len(x), self.epochs, "none", (x.shape[2], x.shape[3]), desk.rng)
        order = torch.from_numpy(view.order)
        optimiser = desk.recipe.optimiser(student)
        student.train()
        for span in view.batches(self.batch):
            optimiser.zero_grad()
            self._distance(student(view.show(x, span)), target[order[span]]).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimiser.step()
        optimiser.zero_grad()
        desk.samples_studied += len(view)

    def _distance(self, logits: Tensor, target: Tensor) -> Tensor:
        if self.loss == "l1":
            return F.l1_loss(logits, target)
        whole = Judgement(target, torch.ones(len(target)), self.temperature)
        return divergence_from_target(logits, whole).mean()


@dataclass(frozen=True)
class PrototypePull:
    """Draw the features of a sample towards the prototype of its class (FedProto).

    Attributes:
        prototypes: The handout that holds ``mean`` [C, F] and ``known`` [C].
        weight: Of the mean squared distance.
    """

    prototypes: str
    weight: float

    @property
    def handouts(self) -> tuple[str, ...]:
        """The prototypes."""
        return (self.prototypes,)

    def begin(self, student: nn.Module, desk: Desk) -> Penalty:
        """Listen to the student's features."""
        mean = desk.handouts[self.prototypes]["mean"]
        known = desk.handouts[self.prototypes]["known"]
        heard, stop = listen(student)
        desk.closing.callback(stop)

        def penalty(labels: Tensor) -> Tensor:
            squares = (heard[0] - mean[labels]).square().mean(dim=1)
            return self.weight * (squares * known[labels]).mean()

        return penalty


@dataclass(frozen=True)
class Rehearsal:
    """Beside each batch, follow a target on a batch of samples that were handed out.

    Attributes:
        material: The handout that holds ``x`` [m, C, H, W] and ``target`` [m, classes].
        weight: Of the divergence from the target.
    """

    material: str
    weight: float

    @property
    def handouts(self) -> tuple[str, ...]:
        """The samples and what to say about them."""
        return (self.material,)

    def begin(self, student: nn.Module, desk: Desk) -> Penalty | None:
        """Lay the samples ready, if there are any."""
        x, target = desk.handouts[self.material]["x"], desk.handouts[self.material]["target"]
        if not len(x):
            return None
        size = min(desk.recipe.batch, len(x))

        def penalty(labels: Tensor) -> Tensor:
            chosen = torch.from_numpy(desk.rng.choice(len(x), size, replace=False))
            desk.samples_studied += size
            whole = Judgement(target[chosen], torch.ones(size), 1.0)
            return self.weight * divergence_from_target(student(x[chosen]), whole).mean()

        return penalty

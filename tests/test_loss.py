"""Eq. 2 and 10 with numbers worked out by hand, and against a float64 reading."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from calmfed.loss import distillation_loss, objective
from calmfed.rules import Calm, Judgement, Uniform

Array = NDArray[np.float64]


def log_softmax(z: Array) -> Array:
    z = z - z.max(axis=-1, keepdims=True)
    return np.asarray(z - np.log(np.exp(z).sum(axis=-1, keepdims=True)))


def read(z: Array, y: Array, judgement: Judgement, alpha: float, log_prior: Array | float) -> float:
    """Eq. 10 in float64; labels as distributions."""
    qbar = judgement.target.double().numpy()
    trust = judgement.trust.double().numpy()
    temperature = judgement.temperature
    cross_entropy = -(y * log_softmax(z + log_prior)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_class = np.where(qbar > 0, qbar * (np.log(qbar) - log_softmax(z / temperature)), 0.0)
    distillation = temperature**2 * per_class.sum(axis=1)
    return float(((1 - alpha) * cross_entropy + alpha * trust * distillation).mean())


@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(1, 6),
    classes=st.integers(1, 12),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e3]),
    temperature=st.floats(0.5, 10),
    alpha=st.floats(0, 1),
    prior=st.booleans(),
    indices=st.booleans(),
)
def test_the_loss_is_equation_10(
    seed: int,
    samples: int,
    classes: int,
    scale: float,
    temperature: float,
    alpha: float,
    prior: bool,
    indices: bool,
) -> None:
    rng = np.random.default_rng(seed)
    z = scale * rng.standard_normal((samples, classes))
    teachers = torch.from_numpy(scale * rng.standard_normal((3, samples, classes)))
    labels = rng.integers(classes, size=samples)
    y = np.eye(classes)[labels] if indices else rng.dirichlet(np.ones(classes), size=samples)
    judgement = Calm(temperature=temperature)(teachers, torch.from_numpy(labels))
    log_prior = np.log(rng.dirichlet(np.ones(classes)) + 1e-3) if prior else None
    found = distillation_loss(
        torch.from_numpy(z),
        torch.from_numpy(labels if indices else y),
        judgement,
        alpha,
        log_prior=None if log_prior is None else torch.from_numpy(log_prior),
    )
    expected = read(z, y, judgement, alpha, 0.0 if log_prior is None else log_prior)
    # Targets are float32, and T^2 multiplies their rounding.
    assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-6 * max(1, temperature**2))


# By hand: one sample, two classes; the student says 3 : 1 at temperature one.

Z = torch.tensor([[math.log(3), 0.0]])
Y = torch.tensor([0])
CROSS_ENTROPY = math.log(4 / 3)


def believed(target: list[float], trust: float = 1.0, temperature: float = 1.0) -> Judgement:
    return Judgement(torch.tensor([target]), torch.tensor([trust]), temperature)


def test_equation_2_by_hand() -> None:
    # KL((1/2, 1/2) || (3/4, 1/4)) = log(1/2) - (log(3/4) + log(1/4)) / 2 = log(4/3) / 2
    loss = distillation_loss(Z, Y, believed([0.5, 0.5]), kd_weight=0.5)
    assert loss.item() == pytest.approx(0.5 * CROSS_ENTROPY + 0.5 * math.log(4 / 3) / 2)


def test_equation_10_by_hand() -> None:
    # At T = 2 the student says sqrt 3 : 1. KL((1, 0) || that) = log(1 + 1 / sqrt 3), times T^2 = 4.
    loss = distillation_loss(Z, Y, believed([1.0, 0.0], trust=0.25, temperature=2.0), kd_weight=0.7)
    distillation = 4 * math.log(1 + 1 / math.sqrt(3))
    assert loss.item() == pytest.approx(0.3 * CROSS_ENTROPY + 0.7 * 0.25 * distillation)


def test_the_default_weight_of_the_teachers_is_that_of_the_reference() -> None:
    loss = distillation_loss(Z, Y, believed([0.5, 0.5]))
    assert loss.item() == pytest.approx(0.3 * CROSS_ENTROPY + 0.7 * math.log(4 / 3) / 2)


def test_a_student_who_says_what_its_teachers_say_has_nothing_to_learn_from_them() -> None:
    loss = distillation_loss(Z, Y, believed([0.75, 0.25]), kd_weight=1.0)
    assert loss.item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("weight", "trust"), [(0.0, 1.0), (0.4, 0.0)])
def test_without_weight_or_trust_cross_entropy_alone_is_left(weight: float, trust: float) -> None:
    loss = distillation_loss(Z, Y, believed([0.1, 0.9], trust=trust), kd_weight=weight)
    assert loss.item() == pytest.approx((1 - weight) * CROSS_ENTROPY)


def test_prior_corrected_cross_entropy_by_hand() -> None:
    # With the class frequencies 1/4 and 3/4 the student's 3 : 1 becomes 3 : 3, so the
    # cross-entropy is log 2. The distillation does not see the frequencies.
    log_prior = torch.tensor([0.25, 0.75]).log()
    loss = distillation_loss(Z, Y, believed([0.5, 0.5]), kd_weight=0.5, log_prior=log_prior)
    assert loss.item() == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(4 / 3) / 2)


def test_prior_correction_does_not_push_an_absent_class_down() -> None:
    log_prior = torch.tensor([0.999, 0.001]).log()
    pushes = []
    for given_prior in (None, log_prior):
        z = torch.zeros(1, 2, requires_grad=True)
        loss = distillation_loss(z, Y, believed([0.5, 0.5]), 0.0, log_prior=given_prior)
        pushes.append(torch.autograd.grad(loss, z)[0][0, 1].item())
    assert pushes[0] == pytest.approx(0.5)
    assert pushes[1] == pytest.approx(0.001, rel=1e-3)


def test_the_loss_is_the_mean_over_the_batch() -> None:
    judgement = Judgement(
        torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([1.0, 0.25]), temperature=1.0
    )
    both = distillation_loss(Z.repeat(2, 1), Y.repeat(2), judgement)
    one = distillation_loss(Z, Y, believed([0.5, 0.5]))
    other = distillation_loss(Z, Y, believed([1.0, 0.0], trust=0.25))
    assert both.item() == pytest.approx((one.item() + other.item()) / 2)


def test_a_lesson_without_teachers_has_cross_entropy_with_weight_one() -> None:
    assert objective(Z, Y, None, 0.7, None).item() == pytest.approx(CROSS_ENTROPY)
    log_prior = torch.tensor([0.25, 0.75]).log()
    assert objective(Z, Y, None, 0.7, log_prior).item() == pytest.approx(math.log(2))


def test_the_gradient_flows_through_the_student_alone() -> None:
    teachers = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    z = torch.zeros(4, 3, requires_grad=True)
    labels = torch.tensor([0, 1, 2, 0])
    distillation_loss(z, labels, Calm()(teachers, labels)).backward()  # type: ignore[no-untyped-call]
    assert z.grad is not None
    assert z.grad.abs().sum() > 0
    assert teachers.grad is None


def test_the_gradient_of_distillation_is_that_of_softened_predictions() -> None:
    # d/dz of T^2 KL(qbar || softmax(z / T)) = T (softmax(z / T) - qbar); at z = 0, T = 4 and
    # trust 1/2, on two classes and the target (1, 0): 1/2 * 4 * (-1/2, 1/2).
    z = torch.zeros(1, 2, requires_grad=True)
    loss = distillation_loss(z, Y, believed([1.0, 0.0], trust=0.5, temperature=4.0), 1.0)
    torch.testing.assert_close(torch.autograd.grad(loss, z)[0], torch.tensor([[-1.0, 1.0]]))


def test_extreme_logits_give_finite_losses_and_gradients() -> None:
    z = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], requires_grad=True)
    labels = torch.tensor([0, 0])
    judgement = Uniform()(torch.tensor([[[1e4, -1e4], [1e4, -1e4]]]), labels)
    loss = distillation_loss(z, labels, judgement)
    assert torch.isfinite(loss)
    assert torch.isfinite(torch.autograd.grad(loss, z)[0]).all()


def test_one_hot_distributions_are_the_same_labels_as_indices() -> None:
    z = torch.arange(12.0).reshape(4, 3).sin()
    labels = torch.tensor([0, 2, 1, 1])
    judgement = Uniform()(z[None], labels)
    by_index = distillation_loss(z, labels, judgement)
    by_distribution = distillation_loss(z, torch.eye(3)[labels], judgement)
    torch.testing.assert_close(by_distribution, by_index)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_labels_may_be_any_integers(dtype: torch.dtype) -> None:
    z = torch.arange(12.0).reshape(4, 3).sin()
    labels = torch.tensor([0, 2, 1, 1])
    judgement = Uniform()(z[None], labels)
    expected = distillation_loss(z, labels, judgement)
    assert torch.equal(distillation_loss(z, labels.to(dtype), judgement), expected)


OK = believed([0.5, 0.5])


ARRAY: Any = Z.numpy()  # what a caller without a type checker may hand over
LIST: Any = [0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distillation_loss(Z[0], Y, OK), r"student_logits must be \[samples, classes\]"),
        (lambda: distillation_loss(Z * math.nan, Y, OK), "student_logits must be finite: 2 of 2"),
        (lambda: distillation_loss(Z.long(), Y, OK), "student_logits must be floating point"),
        (lambda: distillation_loss(Z, Y + 2, OK), r"labels must lie in 0..1, got 2..2"),
        (lambda: distillation_loss(Z, Y - 1, OK), r"labels must lie in 0..1, got -1..-1"),
        (lambda: distillation_loss(Z, Y.repeat(2), OK), r"labels must be .* got shape \[2\]"),
        (lambda: distillation_loss(Z, Y, OK, 1.1), r"kd_weight must lie in \[0, 1\], got 1.1"),
        (lambda: distillation_loss(Z, Y, OK, -0.1), r"kd_weight must lie in \[0, 1\], got -0.1"),
        (lambda: distillation_loss(Z, Y, OK, math.nan), "kd_weight must lie in .*, got nan"),
        (
            lambda: distillation_loss(Z, Y, believed([0.2, 0.3, 0.5])),
            r"judgement must be of the student's samples and classes \[1, 2\], .* \[1, 3\]",
        ),
        (
            lambda: distillation_loss(
                Z.repeat(2, 1), Y.repeat(2), replace(OK, target=torch.full((2, 2), 0.5))
            ),
            r"judgement.trust must be one number a sample \[2\], got \[1\]",
        ),
        (lambda: distillation_loss(Z[:0], Y[:0], OK), "of at least one sample, got shape"),
        (lambda: distillation_loss(ARRAY, Y, OK), "student_logits must be a torch tensor"),
        (lambda: distillation_loss(Z, LIST, OK), "labels must be a torch tensor, got list"),
        (
            lambda: distillation_loss(Z, Y, replace(OK, trust=torch.tensor([1.5]))),
            r"judgement.trust must lie in \[0, 1\], got 1.5",
        ),
        (
            lambda: distillation_loss(Z, Y, replace(OK, target=torch.full((1, 2), math.nan))),
            "judgement.target must be finite",
        ),
        (
            lambda: distillation_loss(Z, Y, replace(OK, temperature=0.0)),
            "judgement.temperature must be a finite number above zero",
        ),
        (
            lambda: distillation_loss(Z, Y, OK, log_prior=torch.tensor([0.0, math.nan])),
            "log_prior must be finite",
        ),
        (
            lambda: distillation_loss(Z, Y, OK, log_prior=torch.zeros(3)),
            r"log_prior must be one number a class \[2\], got shape \[3\]",
        ),
    ],
)
def test_bad_input_is_named(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_judgement_or_prior_is_named() -> None:
    with pytest.raises(ValueError, match="judgement must be a Judgement, got NoneType"):
        distillation_loss(Z, Y, None)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueError, match="log_prior must be a torch tensor, got list"):
        distillation_loss(Z, Y, believed([0.5, 0.5]), log_prior=[0.5, 0.5])  # type: ignore[arg-type]  # that is the point

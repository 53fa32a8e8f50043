"""The gates against the equations, read line by line in numpy float64.

A gate answers in float32. Where its answer lies in [0, 1] it must be within 1e-6 of the reading;
the disagreement d can be large, and float32 writes a large number only to a relative 6e-8, so
there a relative error of 1e-6 is allowed as well.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from calmfed import gates

Array = NDArray[np.float64]

# The reading: one function an equation of the method, J teachers, B samples, C classes.


def softened(logits: Array, temperature: float) -> Array:
    """Eq. 1: q_j = softmax(f_j / T)."""
    scaled = logits / temperature
    e = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def mean_of(q: Array) -> Array:
    """Eq. 3: q~_c = mean_j q_jc."""
    return np.asarray(q.sum(axis=0) / len(q))


def agreements(q: Array, tau: float) -> Array:
    """Eq. 3 and 4: a_jc = exp(-|q_jc - q~_c| / tau)."""
    return np.asarray(np.exp(-np.abs(q - mean_of(q)) / tau))


def weighted(q: Array, tau: float) -> Array:
    """Eq. 5: sum_j a_jc q_jc / sum_j a_jc, renormalised over the classes."""
    a = agreements(q, tau)
    qbar = (a * q).sum(axis=0) / a.sum(axis=0)
    return np.asarray(qbar / qbar.sum(axis=-1, keepdims=True))


def divergence(q: Array, qbar: Array) -> Array:
    """Eq. 6: d = mean_j sum_c q_jc log(q_jc / qbar_c), where 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q > 0, q * (np.log(q) - np.log(qbar)), 0.0)
    return np.asarray(terms.sum(axis=-1).mean(axis=0))


def modulation(d: Array, sigma: float, floor: float) -> Array:
    """Eq. 7: clip(exp(-d / sigma), floor, 1)."""
    return np.asarray(np.clip(np.exp(-d / sigma), floor, 1))


def on_the_label(qbar: Array, labels: NDArray[np.int64], eta: float) -> Array:
    """Eq. 8: (qbar_y) ** eta."""
    return np.asarray(qbar[np.arange(len(labels)), labels] ** eta)


SCALES = st.sampled_from([0.0, 1e-6, 1e-2, 1.0, 10.0, 1e3, 1e4])
TEMPERATURES = st.floats(0.25, 20)
TAUS = st.floats(0.005, 100)
SIGMAS = st.floats(1e-3, 1e3)
ETAS = st.sampled_from([0.0]) | st.floats(0.05, 4)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def pools(draw: st.DrawFn) -> Array:
    """Teacher logits [J, B, C] of any scale: random, identical, one-hot or at the extremes."""
    teachers, samples, classes = (draw(st.integers(1, high)) for high in (9, 4, 12))
    shape = (teachers, samples, classes)
    scale = draw(SCALES)
    rng = np.random.default_rng(draw(SEEDS))
    kind = draw(st.sampled_from(["random", "identical", "one-hot", "extreme"]))
    if kind == "identical":
        return np.broadcast_to(scale * rng.standard_normal(shape[1:]), shape).copy()
    if kind == "one-hot":
        return np.asarray(scale * np.eye(classes)[rng.integers(classes, size=shape[:2])])
    if kind == "extreme":
        return np.asarray(rng.choice([-1e4, 1e4], size=shape))
    return np.asarray(scale * rng.standard_normal(shape))


@st.composite
def predictions(draw: st.DrawFn) -> Array:
    """Soft predictions [J, B, C] of such a pool."""
    return softened(draw(pools()), draw(TEMPERATURES))


def close(found: Tensor, expected: Array, relative: float = 0.0) -> None:
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.double().numpy(), expected, rtol=relative, atol=1e-6)


def tensor(array: Array) -> Tensor:
    return torch.from_numpy(array)


# Every gate agrees with its equation.


@given(pools(), TEMPERATURES)
def test_soften_is_equation_1(logits: Array, temperature: float) -> None:
    close(gates.soften(tensor(logits), temperature), softened(logits, temperature))


@given(predictions())
def test_consensus_is_the_plain_mean_of_equation_3(q: Array) -> None:
    close(gates.consensus(tensor(q)), mean_of(q))


@given(predictions(), TAUS)
def test_agreement_is_equation_4(q: Array, tau: float) -> None:
    close(gates.agreement(tensor(q), tau), agreements(q, tau))


@given(predictions(), TAUS)
def test_agreement_target_is_equation_5(q: Array, tau: float) -> None:
    close(gates.agreement_target(tensor(q), tau), weighted(q, tau))


@given(predictions(), TAUS)
def test_disagreement_is_equation_6(q: Array, tau: float) -> None:
    qbar = weighted(q, tau)
    close(gates.disagreement(tensor(q), tensor(qbar)), divergence(q, qbar), relative=1e-6)


@given(predictions(), SEEDS, st.sampled_from([0.1, 10.0, 300.0]))
def test_disagreement_with_a_target_from_elsewhere_is_equation_6(
    q: Array, seed: int, scale: float
) -> None:
    qbar = softened(scale * np.random.default_rng(seed).standard_normal(q.shape[1:]), 1.0)
    close(gates.disagreement(tensor(q), tensor(qbar)), divergence(q, qbar), relative=1e-6)


@given(st.lists(st.floats(0, 1e6), min_size=1), SIGMAS, st.floats(0, 1))
def test_disagreement_gate_is_equation_7(d: list[float], sigma: float, floor: float) -> None:
    given_d = np.array(d)
    close(gates.disagreement_gate(tensor(given_d), sigma, floor), modulation(given_d, sigma, floor))


@given(predictions(), TAUS, ETAS, SEEDS)
def test_label_gate_is_equation_8(q: Array, tau: float, eta: float, seed: int) -> None:
    qbar = weighted(q, tau)
    labels = np.random.default_rng(seed).integers(qbar.shape[1], size=len(qbar))
    found = gates.label_gate(tensor(qbar), torch.from_numpy(labels), eta)
    close(found, on_the_label(qbar, labels, eta))


# The same, with numbers that can be worked out by hand: two teachers, one sample, two classes.

HAND = torch.tensor([[[0.9, 0.1]], [[0.5, 0.5]]])  # consensus (.7, .3), every deviation .2


def test_soften_by_hand() -> None:
    logits = torch.tensor([4 * math.log(3), 0.0])  # T = 4 makes it log 3 against 0: 3 to 1
    torch.testing.assert_close(gates.soften(logits, 4.0), torch.tensor([0.75, 0.25]))


def test_consensus_and_agreement_by_hand() -> None:
    torch.testing.assert_close(gates.consensus(HAND), torch.tensor([[0.7, 0.3]]))
    torch.testing.assert_close(gates.agreement(HAND, 0.1), torch.full((2, 1, 2), math.exp(-2)))


def test_two_teachers_deviate_alike_so_their_target_is_the_plain_mean() -> None:
    torch.testing.assert_close(gates.agreement_target(HAND, 0.1), torch.tensor([[0.7, 0.3]]))


def test_agreement_target_by_hand_for_three_teachers() -> None:
    # Consensus (.6, .4); the deviations are 0, .3 and .3, the weights at tau = .3 are 1, e and e
    # with e = exp(-1): (.6 + .9 e + .3 e) / (1 + 2 e) = .6. A fourth view moves it:
    q = torch.tensor([[[0.6, 0.4]], [[0.9, 0.1]], [[0.3, 0.7]]])
    torch.testing.assert_close(gates.agreement_target(q, 0.3), torch.tensor([[0.6, 0.4]]))
    # Teachers .8, .8, .2 on the first class: consensus .6, deviations .2, .2, .4, and at
    # tau = .2 / log 2 the weights are 1/2, 1/2, 1/4: (.4 + .4 + .05) / 1.25 = .68 instead of .6.
    q = torch.tensor([[[0.8, 0.2]], [[0.8, 0.2]], [[0.2, 0.8]]])
    target = gates.agreement_target(q, 0.2 / math.log(2))
    torch.testing.assert_close(target, torch.tensor([[0.68, 0.32]]))


def test_the_target_is_renormalised_over_the_classes() -> None:
    # Three teachers, three classes, each sure of another one: class by class the consensus is
    # 1/3, the deviations 2/3, 1/3, 1/3. With tau = 1 / (3 log 2) the weights are 1/4, 1/2, 1/2, so
    # each class has the mass (1/4) / (5/4) = .2, which adds up to .6, and a third of that each.
    q = torch.eye(3)[:, None, :]
    target = gates.agreement_target(q, 1 / (3 * math.log(2)))
    torch.testing.assert_close(target, torch.full((1, 3), 1 / 3))


def test_disagreement_by_hand() -> None:
    # Teachers (1, 0) and (0, 1) against (1/2, 1/2): each diverges by log 2.
    q = torch.eye(2)[:, None, :]
    d = gates.disagreement(q, torch.tensor([[0.5, 0.5]]))
    torch.testing.assert_close(d, torch.tensor([math.log(2)]))
    # Against (1/4, 3/4) by log 4 and log 4/3.
    d = gates.disagreement(q, torch.tensor([[0.25, 0.75]]))
    torch.testing.assert_close(d, torch.tensor([(math.log(4) + math.log(4 / 3)) / 2]))


def test_disagreement_is_infinite_where_a_teacher_believes_what_the_target_rules_out() -> None:
    q = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert gates.disagreement(q, torch.tensor([[1.0, 0.0]])).tolist() == [math.inf]


def test_disagreement_gate_by_hand() -> None:
    d = torch.tensor([0.0, math.log(2), math.log(8), math.inf])
    found = gates.disagreement_gate(d, sigma=1.0, floor=0.25)
    torch.testing.assert_close(found, torch.tensor([1.0, 0.5, 0.25, 0.25]))
    found = gates.disagreement_gate(d, sigma=3.0, floor=0.0)
    torch.testing.assert_close(found, torch.tensor([1.0, 0.5 ** (1 / 3), 0.5, 0.0]))


def test_label_gate_by_hand() -> None:
    target = torch.tensor([[0.25, 0.75], [0.25, 0.75], [1.0, 0.0]])
    found = gates.label_gate(target, torch.tensor([0, 1, 1]), eta=0.5)
    torch.testing.assert_close(found, torch.tensor([0.5, 0.75**0.5, 0.0]))
    found = gates.label_gate(target, torch.tensor([0, 1, 1]), eta=2.0)
    torch.testing.assert_close(found, torch.tensor([0.0625, 0.5625, 0.0]))


def test_label_gate_with_a_distribution_reads_the_mass_that_the_target_gives_it() -> None:
    labels = torch.tensor([[0.5, 0.5, 0.0]])
    found = gates.label_gate(torch.tensor([[0.2, 0.6, 0.2]]), labels, eta=1.0)
    torch.testing.assert_close(found, torch.tensor([0.4]))


@given(predictions(), TAUS, ETAS, SEEDS)
def test_one_hot_distributions_are_the_same_labels_as_indices(
    q: Array, tau: float, eta: float, seed: int
) -> None:
    target = tensor(weighted(q, tau))
    labels = torch.from_numpy(
        np.random.default_rng(seed).integers(target.shape[1], size=len(target))
    )
    one_hot = torch.eye(target.shape[1])[labels]
    torch.testing.assert_close(
        gates.label_gate(target, one_hot, eta),
        gates.label_gate(target, labels, eta),
        rtol=0,
        atol=1e-6,
    )


# Limits.


@given(predictions())
def test_infinite_tau_makes_every_weight_one_and_the_target_the_mean_exactly(q: Array) -> None:
    assert torch.equal(gates.agreement(tensor(q), math.inf), torch.ones(q.shape))
    assert torch.equal(gates.agreement_target(tensor(q), math.inf), gates.consensus(tensor(q)))
    log_q = tensor(q).log()  # before it is rounded too
    assert torch.equal(gates.log_agreement_target(log_q, math.inf), gates.log_consensus(log_q))


@given(st.lists(st.floats(0, math.inf), min_size=1), st.floats(0, 1))
def test_infinite_sigma_makes_the_disagreement_gate_one_exactly(
    d: list[float], floor: float
) -> None:
    found = gates.disagreement_gate(torch.tensor(d), math.inf, floor)
    assert torch.equal(found, torch.ones(len(d)))


@given(predictions(), SEEDS)
def test_eta_zero_makes_the_label_gate_one_exactly_even_without_mass(q: Array, seed: int) -> None:
    labels = np.random.default_rng(seed).integers(q.shape[2], size=q.shape[1])
    found = gates.label_gate(tensor(q[0]), torch.from_numpy(labels), 0.0)
    assert torch.equal(found, torch.ones(q.shape[1]))


@given(predictions(), st.sampled_from([1e-3, 1e-6, 1e-30, 1e-300, 1e-310, 5e-324]))
@example(np.eye(3)[:, None, :], 1e-310)  # on each class those who say 0 are the nearest
def test_tiny_tau_does_not_underflow(q: Array, tau: float) -> None:
    target = gates.agreement_target(tensor(q), tau)
    assert torch.isfinite(target).all()
    np.testing.assert_allclose(target.double().sum(dim=-1).numpy(), 1, atol=1e-6)


@pytest.mark.parametrize("tau", [1e-3, 1e-6, 1e-310])
def test_tiny_tau_leaves_the_teacher_that_is_nearest_to_the_consensus(tau: float) -> None:
    # The consensus is (.567, .433): the middle teacher is nearest to it on both classes.
    q = torch.tensor([[[0.9, 0.1]], [[0.6, 0.4]], [[0.2, 0.8]]], dtype=torch.float64)
    torch.testing.assert_close(gates.agreement_target(q, tau), torch.tensor([[0.6, 0.4]]))


@pytest.mark.parametrize("temperature", [1e-310, 1e-30, 1e30])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e308])
def test_soften_survives_any_finite_logits_and_temperature(
    scale: float, temperature: float
) -> None:
    logits = scale * torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)
    q = gates.soften(logits, temperature)
    assert torch.isfinite(q).all()
    assert q.double().sum().item() == pytest.approx(1, abs=1e-6)
    assert q[0] >= q[2] >= q[1]


# What holds for any pool.


@given(predictions(), TAUS)
def test_targets_lie_on_the_simplex(q: Array, tau: float) -> None:
    for target in (gates.consensus(tensor(q)), gates.agreement_target(tensor(q), tau)):
        assert (target >= 0).all()
        np.testing.assert_allclose(target.double().sum(dim=-1).numpy(), 1, atol=1e-6)


@given(predictions(), TAUS, SIGMAS, ETAS, st.floats(0, 1), SEEDS)
def test_trusts_lie_between_zero_and_one_and_disagreement_never_below_zero(
    q: Array, tau: float, sigma: float, eta: float, floor: float, seed: int
) -> None:
    target = gates.agreement_target(tensor(q), tau)
    d = gates.disagreement(tensor(q), target)
    assert (d >= 0).all()
    trust = gates.disagreement_gate(d, sigma, floor)
    assert (trust >= np.float32(floor)).all()
    assert (trust <= 1).all()
    labels = np.random.default_rng(seed).integers(q.shape[2], size=q.shape[1])
    g = gates.label_gate(target, torch.from_numpy(labels), eta)
    assert (g >= 0).all()
    assert (g <= 1).all()


@given(predictions(), TAUS, SEEDS)
def test_the_order_of_teachers_does_not_matter(q: Array, tau: float, seed: int) -> None:
    other = q[np.random.default_rng(seed).permutation(len(q))]
    target = gates.agreement_target(tensor(q), tau)
    close(gates.agreement_target(tensor(other), tau), target.double().numpy())
    close(gates.consensus(tensor(other)), gates.consensus(tensor(q)).double().numpy())
    d = gates.disagreement(tensor(q), target).double().numpy()
    close(gates.disagreement(tensor(other), target), d, relative=1e-6)


@given(predictions(), TAUS)
def test_teachers_who_all_say_the_same_are_believed(q: Array, tau: float) -> None:
    same = np.broadcast_to(q[:1], q.shape).copy()
    target = gates.agreement_target(tensor(same), tau)
    close(target, same[0])
    close(gates.disagreement(tensor(same), tensor(same[0])), np.zeros(q.shape[1]))


CALLS: list[tuple[str, Callable[[Tensor, Tensor], Tensor]]] = [
    ("soften", lambda q, d: gates.soften(q, 4.0)),
    ("consensus", lambda q, d: gates.consensus(q)),
    ("agreement", lambda q, d: gates.agreement(q, 0.1)),
    ("agreement_target", lambda q, d: gates.agreement_target(q, 0.1)),
    ("disagreement", lambda q, d: gates.disagreement(q, q[0])),
    ("disagreement_gate", lambda q, d: gates.disagreement_gate(d, 1.0, 0.05)),
    ("label_gate", lambda q, d: gates.label_gate(q[0], torch.tensor([0, 1]), 0.5)),
    ("label_gate, distributions", lambda q, d: gates.label_gate(q[0], q[1], 0.5)),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_any_float_goes_in_float32_comes_out_and_no_gradient_flows(
    name: str, call: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype
) -> None:
    # eighths, which every dtype writes exactly: so every dtype must give the same answer
    q = torch.tensor([[[4, 2, 2], [1, 6, 1]], [[1, 1, 6], [2, 5, 1]], [[3, 3, 2], [6, 1, 1]]]) / 8
    d = torch.tensor([0.5, 2.0])
    found = call(q.to(dtype).requires_grad_(), d.to(dtype).requires_grad_())
    assert found.dtype == torch.float32
    assert not found.requires_grad
    assert torch.equal(found, call(q.double(), d.double()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("classes", [10, 1000])
def test_short_floats_that_add_up_to_one_only_roughly_are_still_predictions(
    dtype: torch.dtype, classes: int
) -> None:
    logits = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 20, classes)))
    q = torch.softmax(3 * logits, dim=-1).to(dtype)
    target = gates.agreement_target(q, 0.1)
    np.testing.assert_allclose(target.double().sum(dim=-1).numpy(), 1, atol=1e-6)


# Bad input is refused by name.

Q = torch.full((2, 3, 4), 0.25)
TARGET = torch.full((3, 4), 0.25)
LABELS = torch.tensor([0, 1, 3])
D = torch.zeros(3)
NAN = torch.full((2, 3, 4), math.nan)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gates.soften(NAN, 4.0), r"logits must be finite: 24 of 24 values are NaN"),
        (lambda: gates.soften(torch.tensor([0, 1]), 4.0), "logits must be floating point, got"),
        (lambda: gates.soften(torch.tensor(1.0), 4.0), "logits must end in a dimension of classes"),
        (lambda: gates.soften(torch.empty(3, 0), 4.0), r"logits must end in .* got shape \[3, 0\]"),
        (lambda: gates.soften(Q, 0.0), "temperature must be a finite .*above zero, got 0"),
        (lambda: gates.soften(Q, -1.0), "temperature must be a finite .*above zero, got -1"),
        (
            lambda: gates.soften(Q, math.nan),
            "temperature must be a finite .*above zero, got nan",
        ),
        (
            lambda: gates.soften(Q, math.inf),
            "temperature must be a finite .*above zero, got inf",
        ),
        (lambda: gates.consensus(TARGET), r"q must be \[teachers, samples, classes\], got .*3, 4"),
        (lambda: gates.consensus(Q[:0]), r"q holds no teacher: shape \[0, 3, 4\]"),
        (lambda: gates.consensus(NAN), "q must be finite"),
        (lambda: gates.consensus(-Q), "q must not be negative, got -0.25"),
        (lambda: gates.consensus(Q / 2), "q must add up to one over the classes, got 0.5"),
        (lambda: gates.agreement(Q, 0.0), "tau must be above zero, got 0"),
        (lambda: gates.agreement(Q, math.nan), "tau must be above zero, got nan"),
        (lambda: gates.agreement(Q[:0], 0.1), "q holds no teacher"),
        (lambda: gates.agreement_target(Q, -0.1), "tau must be above zero, got -0.1"),
        (lambda: gates.agreement_target(NAN, 0.1), "q must be finite"),
        (
            lambda: gates.disagreement(Q, TARGET[:2]),
            r"target must be \[3, 4\] like the teachers' predictions, got \[2, 4\]",
        ),
        (lambda: gates.disagreement(Q, TARGET[0]), r"target must be \[samples, classes\], got"),
        (lambda: gates.disagreement(Q, 2 * TARGET), "target must add up to one .*, got 2"),
        (lambda: gates.disagreement(Q[:0], TARGET), "q holds no teacher"),
        (lambda: gates.disagreement_gate(D, 0.0, 0.05), "sigma must be above zero, got 0"),
        (lambda: gates.disagreement_gate(D, math.nan, 0.05), "sigma must be above zero, got nan"),
        (lambda: gates.disagreement_gate(D, 1.0, -0.1), r"floor must lie in \[0, 1\], got -0.1"),
        (lambda: gates.disagreement_gate(D, 1.0, 1.1), r"floor must lie in \[0, 1\], got 1.1"),
        (lambda: gates.disagreement_gate(D - 1, 1.0, 0.05), "d must be at least zero .*, got -1"),
        (lambda: gates.disagreement_gate(NAN[0, 0], 1.0, 0.05), "d must be .* not NaN, got nan"),
        (lambda: gates.disagreement_gate(TARGET, 1.0, 0.05), "d must be one number a sample"),
        (lambda: gates.label_gate(TARGET, LABELS, -0.5), "eta must be .* at least zero, got -0.5"),
        (lambda: gates.label_gate(TARGET, LABELS, math.inf), "eta must be a finite .*, got inf"),
        (lambda: gates.label_gate(TARGET, LABELS + 1, 0.5), r"labels must lie in 0..3, got 1..4"),
        (lambda: gates.label_gate(TARGET, LABELS - 1, 0.5), r"labels must lie in 0..3, got -1..2"),
        (
            lambda: gates.label_gate(TARGET, (LABELS + 1).to(torch.uint16), 0.5),
            r"labels must lie in 0..3, got 1..4",
        ),
        (lambda: gates.label_gate(TARGET, LABELS[:2], 0.5), r"labels must be .* got shape \[2\]"),
        (lambda: gates.label_gate(TARGET, D, 0.5), "labels must be integer class indices, got"),
        (lambda: gates.label_gate(TARGET, D > 0, 0.5), "labels must be integer class indices, got"),
        (lambda: gates.label_gate(TARGET, TARGET[:, :2], 0.5), "labels must have 4 classes, got"),
        (lambda: gates.label_gate(TARGET, TARGET / 2, 0.5), "labels must add up to one"),
        (lambda: gates.label_gate(NAN[0], LABELS, 0.5), "target must be finite"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_the_first_bad_logit_is_located() -> None:
    logits = torch.zeros(2, 3, 4)
    logits[1, 0, 2] = math.inf
    with pytest.raises(ValueError, match=r"1 of 24 values .* the first at \[1, 0, 2\]"):
        gates.soften(logits, 1.0)


def test_no_samples_are_no_mistake() -> None:
    empty = torch.zeros(2, 0, 3)
    assert gates.agreement_target(empty, 0.1).shape == (0, 3)
    assert gates.label_gate(empty[0], torch.zeros(0, dtype=torch.long), 0.5).shape == (0,)


def test_a_target_a_hair_above_one_gives_no_more_than_full_trust() -> None:
    target = torch.tensor([[1.00005, 0.0]])
    assert gates.label_gate(target, torch.tensor([0]), 0.5).item() == 1.0


@pytest.mark.parametrize("value", ["a", None, True, torch.tensor(0.1)])
def test_a_scale_that_is_no_number_is_named(value: Any) -> None:
    q = torch.full((2, 1, 2), 0.5)
    with pytest.raises(ValueError, match="tau must be a number"):
        gates.agreement(q, value)
    with pytest.raises(ValueError, match="temperature must be a number"):
        gates.soften(q, value)


def test_no_gradient_comes_from_the_labels_either() -> None:
    labels = torch.tensor([[0.5, 0.5]], requires_grad=True)
    assert not gates.label_gate(torch.tensor([[0.5, 0.5]]), labels, 0.5).requires_grad

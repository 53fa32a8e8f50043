"""Rules against a straightforward float64 reading, and with numbers worked out by hand."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from calmfed.rules import Calm, ConfidenceWeighted, HardFilter, Judgement, Rule, Uniform, gated

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# The reading: J teachers, B samples, C classes; each gives target [B, C] and trust [B].


def softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def read_uniform(logits: Array, temperature: float) -> Array:
    return np.asarray(softmax(logits / temperature).mean(axis=0))


def read_calm(logits: Array, labels: Indices, rule: Calm) -> tuple[Array, Array]:
    q = softmax(logits / rule.temperature)  # Eq. 1
    delta = np.abs(q - q.mean(axis=0))  # Eq. 3
    a = np.exp(-delta / rule.tau)  # Eq. 4
    target = (a * q).sum(axis=0) / a.sum(axis=0)  # Eq. 5
    target = target / target.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.where(q > 0, q * np.log(q / target), 0.0).sum(axis=-1)
    d = kl.mean(axis=0)  # Eq. 6
    lambda_dis = np.clip(np.exp(-d / rule.sigma), rule.floor, 1)  # Eq. 7
    g = target[np.arange(len(labels)), labels] ** rule.eta  # Eq. 8
    return target, lambda_dis * g  # Eq. 9


def read_hard(logits: Array, rule: HardFilter) -> tuple[Array, float]:
    """The target, and how near any deviation comes to the threshold at which it is dropped."""
    q = softmax(logits / rule.temperature)
    delta = np.abs(q - q.mean(axis=0))
    lower_median = np.sort(delta, axis=0)[(len(q) - 1) // 2]
    limit = rule.kappa * lower_median + 1e-6  # ties within 1e-6 are kept
    target = np.zeros(q.shape[1:])
    for b in range(q.shape[1]):
        for c in range(q.shape[2]):
            kept = [q[j, b, c] for j in range(len(q)) if delta[j, b, c] <= limit[b, c]]
            target[b, c] = sum(kept) / len(kept) if kept else 0.0
        mass = target[b].sum()
        target[b] = target[b] / mass if mass > 0 else q[:, b].mean(axis=0)
    return target, float(np.abs(delta - limit).min())


def read_confidence(logits: Array, labels: Indices, temperature: float) -> Array:
    q = softmax(logits / temperature)
    teachers, samples, _ = q.shape
    if teachers == 1:
        return np.asarray(q[0])
    top = logits.max(axis=-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    cross_entropy = -log_p[:, np.arange(samples), labels]  # [J, B]
    w = (1 - softmax(cross_entropy.T).T) / (teachers - 1)
    return np.asarray((w[:, :, None] * q).sum(axis=0))


TEMPERATURES = st.floats(0.25, 20)
CALMS = st.builds(
    Calm,
    temperature=TEMPERATURES,
    tau=st.floats(0.005, 100) | st.just(math.inf),
    sigma=st.floats(1e-3, 1e3) | st.just(math.inf),
    eta=st.just(0.0) | st.floats(0.05, 4),
    floor=st.floats(0, 1),
)
HARDS = st.builds(HardFilter, temperature=TEMPERATURES, kappa=st.just(1.0) | st.floats(0, 4))
ANY_RULE: st.SearchStrategy[Rule] = st.one_of(
    st.builds(Uniform, temperature=TEMPERATURES),
    CALMS,
    HARDS,
    st.builds(ConfidenceWeighted, temperature=TEMPERATURES),
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Array, Indices]:
    """Teacher logits [J, B, C] of any scale and kind, and labels [B]."""
    teachers, samples, classes = (draw(st.integers(1, high)) for high in (9, 4, 12))
    shape = (teachers, samples, classes)
    scale = draw(st.sampled_from([0.0, 1e-6, 1e-2, 1.0, 10.0, 1e3, 1e4]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = rng.integers(classes, size=samples)
    kind = draw(st.sampled_from(["random", "identical", "one-hot", "extreme"]))
    if kind == "identical":
        return np.broadcast_to(scale * rng.standard_normal(shape[1:]), shape).copy(), labels
    if kind == "one-hot":
        return scale * np.eye(classes)[rng.integers(classes, size=shape[:2])], labels
    if kind == "extreme":
        return rng.choice([-1e4, 1e4], size=shape), labels
    return scale * rng.standard_normal(shape), labels


Question = tuple[Array, Indices]


def ask(rule: Rule, logits: Array, labels: Indices) -> Judgement:
    judgement = rule(torch.from_numpy(logits), torch.from_numpy(labels))
    assert judgement.target.dtype == judgement.trust.dtype == torch.float32
    return judgement


def close(found: Tensor, expected: Array) -> None:
    np.testing.assert_allclose(found.double().numpy(), expected, rtol=0, atol=1e-6)


@given(questions(), TEMPERATURES)
def test_uniform_is_the_plain_mean_believed_in_full(question: Question, temperature: float) -> None:
    judgement = ask(Uniform(temperature), *question)
    close(judgement.target, read_uniform(question[0], temperature))
    assert (judgement.trust == 1).all()


@given(questions(), CALMS)
def test_calm_is_equations_1_to_9(question: Question, rule: Calm) -> None:
    judgement = ask(rule, *question)
    target, trust = read_calm(*question, rule)
    close(judgement.target, target)
    close(judgement.trust, trust)
    assert judgement.temperature == rule.temperature


@given(questions(), CALMS)
def test_the_parts_of_calms_trust_multiply_to_it(question: Question, rule: Calm) -> None:
    judgement = ask(rule, *question)
    assert judgement.disagreement_trust is not None
    assert judgement.label_trust is not None
    product = judgement.disagreement_trust.double() * judgement.label_trust.double()
    close(judgement.trust, product.numpy())


@given(questions(), HARDS)
def test_hard_filter_is_its_definition_away_from_its_threshold(
    question: Question, rule: HardFilter
) -> None:
    target, margin = read_hard(question[0], rule)
    assume(margin > 1e-9)  # nearer, rounding decides who is kept
    judgement = ask(rule, *question)
    close(judgement.target, target)
    assert (judgement.trust == 1).all()


@given(questions(), TEMPERATURES)
def test_confidence_weights_are_those_of_its_definition(
    question: Question, temperature: float
) -> None:
    judgement = ask(ConfidenceWeighted(temperature), *question)
    close(judgement.target, read_confidence(*question, temperature))
    assert (judgement.trust == 1).all()


# What holds for every rule.


@given(questions(), ANY_RULE)
def test_targets_lie_on_the_simplex_and_trusts_in_0_to_1(question: Question, rule: Rule) -> None:
    judgement = ask(rule, *question)
    assert (judgement.target >= 0).all()
    close(judgement.target.double().sum(dim=1), np.ones(len(question[1])))
    assert (judgement.trust >= 0).all()
    assert (judgement.trust <= 1).all()


@given(questions(), ANY_RULE, st.integers(0, 2**32 - 1))
def test_the_order_of_teachers_changes_nothing(question: Question, rule: Rule, seed: int) -> None:
    logits, labels = question
    if isinstance(rule, HardFilter):
        assume(read_hard(logits, rule)[1] > 1e-9)
    judgement = ask(rule, logits, labels)
    order = np.random.default_rng(seed).permutation(len(logits))
    other = ask(rule, logits[order], labels)
    close(other.target, judgement.target.double().numpy())
    close(other.trust, judgement.trust.double().numpy())


@given(questions(), ANY_RULE)
def test_samples_are_judged_one_by_one(question: Question, rule: Rule) -> None:
    logits, labels = question
    together = ask(rule, logits, labels)
    for b in range(len(labels)):
        alone = ask(rule, logits[:, b : b + 1], labels[b : b + 1])
        close(alone.target, together.target[b : b + 1].double().numpy())
        close(alone.trust, together.trust[b : b + 1].double().numpy())


@given(questions(), ANY_RULE)
def test_a_teacher_alone_is_the_target(question: Question, rule: Rule) -> None:
    logits, labels = question
    assume(not isinstance(rule, HardFilter) or read_hard(logits[:1], rule)[1] > 1e-9)
    judgement = ask(rule, logits[:1], labels)
    close(judgement.target, softmax(logits[0] / rule.temperature))


@given(questions(), ANY_RULE)
def test_teachers_who_all_say_the_same_are_the_target(question: Question, rule: Rule) -> None:
    logits, labels = question
    judgement = ask(rule, np.repeat(logits[:1], 4, axis=0), labels)
    close(judgement.target, softmax(logits[0] / rule.temperature))
    if isinstance(rule, Calm):  # nothing but the label can lower the trust
        assert judgement.disagreement_trust is not None
        close(judgement.disagreement_trust, np.ones(len(labels)))


@given(questions(), ANY_RULE)
def test_one_hot_distributions_are_the_same_labels_as_indices(
    question: Question, rule: Rule
) -> None:
    logits, labels = question
    judgement = ask(rule, logits, labels)
    one_hot = torch.eye(logits.shape[2])[torch.from_numpy(labels)]
    other = rule(torch.from_numpy(logits), one_hot)
    close(other.target, judgement.target.double().numpy())
    close(other.trust, judgement.trust.double().numpy())


RULES: list[Rule] = [Uniform(), Calm(), HardFilter(), ConfidenceWeighted()]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)


@each_rule
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_float_goes_in_float32_comes_out_and_no_gradient_flows(
    rule: Rule, dtype: torch.dtype
) -> None:
    logits = torch.arange(24.0).reshape(3, 2, 4).sin().to(dtype)
    labels = torch.tensor([0, 3])
    judgement = rule(logits.clone().requires_grad_(), labels)
    exact = rule(logits.double(), labels)
    for found, expected in ((judgement.target, exact.target), (judgement.trust, exact.trust)):
        assert found.dtype == torch.float32
        assert not found.requires_grad
        assert torch.equal(found, expected)


@each_rule
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.uint16])
def test_labels_may_be_any_integers(rule: Rule, dtype: torch.dtype) -> None:
    logits = torch.arange(24.0).reshape(3, 2, 4).sin()
    expected = rule(logits, torch.tensor([0, 3]))
    found = rule(logits, torch.tensor([0, 3]).to(dtype))
    assert torch.equal(found.target, expected.target)
    assert torch.equal(found.trust, expected.trust)


@each_rule
def test_a_rule_is_a_value_and_cannot_be_changed(rule: Rule) -> None:
    assert rule == type(rule)()
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.temperature = 1.0  # type: ignore[misc]


# Exact limits.


@given(questions(), TEMPERATURES, st.floats(0, 1))
def test_calm_with_all_gates_off_is_uniform_bit_for_bit(
    question: Question, temperature: float, floor: float
) -> None:
    off = ask(Calm(temperature, tau=math.inf, sigma=math.inf, eta=0, floor=floor), *question)
    uniform = ask(Uniform(temperature), *question)
    assert torch.equal(off.target, uniform.target)
    assert torch.equal(off.trust, uniform.trust)


@given(questions(), CALMS)
def test_each_gate_is_switched_off_exactly(question: Question, rule: Calm) -> None:
    uniform = ask(Uniform(rule.temperature), *question)
    without_1 = ask(dataclasses.replace(rule, tau=math.inf), *question)
    assert torch.equal(without_1.target, uniform.target)
    without_2 = ask(dataclasses.replace(rule, sigma=math.inf), *question)
    assert without_2.label_trust is not None
    assert torch.equal(without_2.trust, without_2.label_trust)
    without_3 = ask(dataclasses.replace(rule, eta=0.0), *question)
    assert without_3.disagreement_trust is not None
    assert torch.equal(without_3.trust, without_3.disagreement_trust)


@given(questions(), st.sampled_from([1e-3, 1e-6, 1e-300, 5e-324]))
def test_tiny_scales_give_numbers(question: Question, scale: float) -> None:
    judgement = ask(Calm(tau=scale, sigma=scale), *question)
    assert torch.isfinite(judgement.target).all()
    assert torch.isfinite(judgement.trust).all()
    close(judgement.target.double().sum(dim=1), np.ones(len(question[1])))


def test_a_huge_kappa_drops_nobody() -> None:
    logits = np.random.default_rng(0).standard_normal((5, 7, 3))
    judgement = ask(HardFilter(kappa=1e6), logits, np.zeros(7, np.int64))
    close(judgement.target, read_uniform(logits, 4.0))


# By hand.


def logits_of(*teachers: list[float], temperature: float = 4.0) -> Tensor:
    """Logits [J, 1, C] that give these probabilities at the temperature."""
    return temperature * torch.tensor(teachers, dtype=torch.float64)[:, None].log()


LABEL = torch.tensor([0])


def test_calm_by_hand() -> None:
    # Teachers (.9, .1) and (.5, .5): the target is (.7, .3), both deviate alike.
    judgement = Calm()(logits_of([0.9, 0.1], [0.5, 0.5]), LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.7, 0.3]]))
    first = 0.9 * math.log(0.9 / 0.7) + 0.1 * math.log(0.1 / 0.3)
    second = 0.5 * math.log(0.5 / 0.7) + 0.5 * math.log(0.5 / 0.3)
    d = (first + second) / 2
    assert judgement.disagreement_trust is not None
    assert judgement.label_trust is not None
    assert judgement.disagreement_trust.item() == pytest.approx(math.exp(-d))
    assert judgement.label_trust.item() == pytest.approx(0.7**0.5)
    assert judgement.trust.item() == pytest.approx(math.exp(-d) * 0.7**0.5)


def test_the_floor_applies_before_the_label_gate() -> None:
    # One-hot teachers that contradict each other: d = log 2, exp(-d / .01) is below the floor.
    rule = Calm(temperature=1, sigma=0.01, floor=0.05, eta=1)
    judgement = rule(torch.tensor([[[1e4, 0.0]], [[0.0, 1e4]]]), LABEL)
    assert judgement.trust.item() == pytest.approx(0.05 * 0.5)


def test_agreeing_on_the_wrong_class_is_not_trusted() -> None:
    logits = logits_of([0.01, 0.99], [0.01, 0.99])
    judgement = Calm()(logits, LABEL)
    assert judgement.disagreement_trust is not None
    assert judgement.disagreement_trust.item() == pytest.approx(1)
    assert judgement.trust.item() == pytest.approx(0.1)


def test_gates_are_chosen_by_number_and_keep_their_scales() -> None:
    scales = Calm(temperature=2, tau=0.3, sigma=5, eta=2, floor=0.2)
    assert gated("123", scales) == scales
    assert gated("12", scales) == dataclasses.replace(scales, eta=0)
    assert gated("13", scales) == dataclasses.replace(scales, sigma=math.inf)
    assert gated("2", scales) == dataclasses.replace(scales, tau=math.inf, eta=0)
    assert gated("", scales) == Calm(2, math.inf, math.inf, 0, 0.2)
    assert gated("1") == Calm(sigma=math.inf, eta=0)


def test_hard_filter_by_hand_with_three_teachers() -> None:
    # First class .8, .7, .3: mean .6, deviations .2, .1, .3, median .2: .3 is dropped, .75 left.
    # Second class .2, .3, .7: likewise .25 left. They add up to one already.
    judgement = HardFilter()(logits_of([0.8, 0.2], [0.7, 0.3], [0.3, 0.7]), LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.75, 0.25]]))
    assert judgement.trust.tolist() == [1]


def test_hard_filter_with_four_teachers_takes_the_lower_median() -> None:
    # First class .9, .8, .6, .1: mean .6, deviations .3, .2, 0, .5. The lower median is .2, the
    # upper .3: .8 and .6 stay, which is .7. Second class .1, .2, .4, .9: .2 and .4 stay, .3.
    logits = logits_of([0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.1, 0.9])
    judgement = HardFilter()(logits, LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.7, 0.3]]))
    # kappa = 1.5 brings the threshold to .3, and a tie with the threshold stays: .9, .8 and .6.
    judgement = HardFilter(kappa=1.5)(logits, LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[2.3 / 3, 0.7 / 3]]))


def test_hard_filter_censors_each_class_by_itself_and_renormalises() -> None:
    # First class .5, .4, .3: mean .4, deviations .1, 0, .1, median .1: all stay, .4.
    # Second class .4, .4, .1: mean .3, deviations .1, .1, .2: .4 stays.
    # Third class .1, .2, .6: mean .3, deviations .2, .1, .3, median .2: .1 and .2 stay, .15.
    # Together .95.
    logits = logits_of([0.5, 0.4, 0.1], [0.4, 0.4, 0.2], [0.3, 0.1, 0.6])
    judgement = HardFilter()(logits, LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.4, 0.4, 0.15]]) / 0.95)


def test_hard_filter_keeps_ties_within_a_millionth() -> None:
    # Deviations x, x + .5e-6 and far above: with kappa = 1 the second ties with the median x...
    near = HardFilter(temperature=1)
    q = [[0.6 + 0.5e-6, 0.4 - 0.5e-6], [0.6, 0.4], [0.5, 0.5], [0.5, 0.5]]
    # mean .55 + 1.25e-7: deviations are .05 + 3.75e-7, .05 - 1.25e-7 and twice .05 + 1.25e-7
    judgement = near(logits_of(*q, temperature=1), LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.55, 0.45]]), rtol=0, atol=1e-6)
    # ...but four millionths apart it does not: only the lower half stays.
    q = [[0.6 + 4e-6, 0.4 - 4e-6], [0.6, 0.4], [0.5, 0.5], [0.5, 0.5]]
    # mean .550001: deviations are .050003, .049999 and twice .050001; median .050001
    judgement = near(logits_of(*q, temperature=1), LABEL)
    expected = torch.tensor([[1.6 / 3, 1.4 / 3]])
    torch.testing.assert_close(judgement.target, expected, rtol=0, atol=2e-6)


def test_hard_filter_falls_back_on_the_plain_mean_where_no_mass_is_left() -> None:
    # kappa = 0 keeps only teachers that sit on the consensus, and here none does.
    judgement = HardFilter(kappa=0)(logits_of([0.9, 0.1], [0.5, 0.5]), LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.7, 0.3]]))
    # Each teacher sure of another class: on each class the two that say 0 stay, no mass at all.
    judgement = HardFilter()(1e5 * torch.eye(3)[:, None], LABEL)
    torch.testing.assert_close(judgement.target, torch.full((1, 3), 1 / 3))


def test_confidence_by_hand_with_two_teachers() -> None:
    # At temperature one the label has probability .8 and .2: cross-entropies -log .8 and -log .2,
    # their softmax 1/.8 : 1/.2 = .2 : .8, so the weights are .8 and .2.
    logits = logits_of([0.8, 0.2], [0.2, 0.8], temperature=1)
    judgement = ConfidenceWeighted(temperature=1)(logits, LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.68, 0.32]]))
    # The weights do not depend on the temperature at which the predictions are softened: at
    # T = 2 they are 2 : 1 and 1 : 2, so the target is .8 * 2/3 + .2 * 1/3 = .6.
    judgement = ConfidenceWeighted(temperature=2)(logits, LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.6, 0.4]]))


def test_confidence_by_hand_with_three_teachers() -> None:
    # Label probabilities .5, .25, .25: softmax of the cross-entropies 2 : 4 : 4 = .2, .4, .4, so
    # the weights are .8 / 2, .6 / 2, .6 / 2 and the target has .4 * .5 + .6 * .25 = .35.
    logits = logits_of([0.5, 0.5], [0.25, 0.75], [0.25, 0.75], temperature=1)
    judgement = ConfidenceWeighted(temperature=1)(logits, LABEL)
    torch.testing.assert_close(judgement.target, torch.tensor([[0.35, 0.65]]))


def test_confidence_with_a_distribution_takes_the_expected_cross_entropy() -> None:
    # For the label (1/2, 1/2) the cross-entropies are -log(.16) / 2 twice: equal weights.
    logits = logits_of([0.8, 0.2], [0.2, 0.8], temperature=1)
    judgement = ConfidenceWeighted(temperature=1)(logits, torch.tensor([[0.5, 0.5]]))
    torch.testing.assert_close(judgement.target, torch.tensor([[0.5, 0.5]]))


def test_a_part_of_a_judgement() -> None:
    judgement = Calm()(torch.arange(24.0).reshape(2, 4, 3).cos(), torch.tensor([0, 1, 2, 0]))
    for part in (slice(1, 3), torch.tensor([1, 2])):
        chosen = judgement[part]
        assert torch.equal(chosen.target, judgement.target[1:3])
        assert torch.equal(chosen.trust, judgement.trust[1:3])
        assert chosen.temperature == judgement.temperature


# Bad input is refused by name.

Z = torch.zeros(2, 3, 4)
Y = torch.tensor([0, 1, 3])


@each_rule
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (Z[:0], Y, r"teacher_logits holds no teacher: shape \[0, 3, 4\]"),
        (Z[0], Y, r"teacher_logits must be \[teachers, samples, classes\], got shape \[3, 4\]"),
        (Z / 0, Y, "teacher_logits must be finite: 24 of 24 values are NaN or infinite"),
        (Z - math.inf, Y, "teacher_logits must be finite"),
        (Z.long(), Y, "teacher_logits must be floating point, got torch.int64"),
        (Z[..., :0], Y, r"teacher_logits must end in a dimension of classes, got .*\[2, 3, 0\]"),
        (Z, Y[:2], r"labels must be class indices \[3\] or distributions \[3, 4\], got shape \[2"),
        (Z, Y[None, :, None], r"labels must be class indices .* got shape \[1, 3, 1\]"),
        (Z, Y + 1, r"labels must lie in 0..3, got 1..4"),
        (Z, Y - 1, r"labels must lie in 0..3, got -1..2"),
        (Z, Y.float(), "labels must be integer class indices, got torch.float32"),
        (Z, torch.full((3, 5), 0.2), r"labels must have 4 classes, got shape \[3, 5\]"),
        (Z, torch.full((3, 4), 0.3), "labels must add up to one over the classes, got 1.2"),
        (Z, torch.tensor([[1.5, -0.5, 0, 0]] * 3), "labels must not be negative, got -0.5"),
        (Z, torch.full((3, 4), math.nan), "labels must be finite"),
    ],
)
def test_bad_input_is_named(rule: Rule, logits: Tensor, labels: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rule(logits, labels)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(0), "temperature must be a finite number above zero, got 0"),
        (lambda: Uniform(math.inf), "temperature must be a finite number above zero, got inf"),
        (lambda: HardFilter(-1), "temperature must be a finite number above zero, got -1"),
        (lambda: ConfidenceWeighted(math.nan), "temperature must be a finite number .*, got nan"),
        (lambda: HardFilter(kappa=-0.1), "kappa must be .* at least zero, got -0.1"),
        (lambda: HardFilter(kappa=math.inf), "kappa must be a finite number .*, got inf"),
        (lambda: Calm(temperature=0), "temperature must be a finite number above zero, got 0"),
        (lambda: Calm(tau=0), "tau must be above zero, got 0"),
        (lambda: Calm(tau=math.nan), "tau must be above zero, got nan"),
        (lambda: Calm(sigma=-1), "sigma must be above zero, got -1"),
        (lambda: Calm(eta=-1), "eta must be .* at least zero, got -1"),
        (lambda: Calm(eta=math.inf), "eta must be a finite number .*, got inf"),
        (lambda: Calm(floor=1.5), r"floor must lie in \[0, 1\], got 1.5"),
        (lambda: Calm(floor=math.nan), r"floor must lie in \[0, 1\], got nan"),
    ],
)
def test_settings_out_of_range_are_named(make: Callable[[], Rule], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("rule", [Calm(), ConfidenceWeighted(), Uniform(), HardFilter()])
def test_no_gradient_comes_from_logits_or_labels(rule: Rule) -> None:
    logits = torch.randn(3, 1, 2, requires_grad=True)
    labels = torch.tensor([[0.5, 0.5]], requires_grad=True)
    judgement = rule(logits, labels)
    assert not judgement.target.requires_grad
    assert not judgement.trust.requires_grad

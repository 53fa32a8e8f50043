"""DFML by hand: the cycle of the mutual share, what the models say to each other, the peak."""

import math

import pytest
import torch

from calmfed.data.views import lay_out
from calmfed.joint.mutual import mutual_divergences, study_together
from calmfed.methods import set_up
from calmfed.methods.dfml import DFML, Phase, phase
from calmfed.snapshot import State, encode
from calmfed.workshop import new_model
from hand import PLAIN, SPEC, Hand, held, inputs, round_of, weights

ZERO = weights((0, 0), (0, 0))
SURE = weights((math.log(3), 0), (0, 0))
ONE = held(0, x=inputs((1, 0)))


def test_the_share_rises_over_ten_then_fifteen_rounds() -> None:
    assert phase(1, 0.5) == Phase(0, 0.0)
    assert phase(10, 0.5) == Phase(0, 0.5)
    assert phase(11, 0.5) == Phase(1, 0.0)
    assert phase(18, 0.5).share == pytest.approx(0.25)  # in the middle of 11..25
    assert phase(25, 0.5) == Phase(1, 0.5)
    assert phase(26, 0.5) == Phase(2, 0.0)


def test_divergences_are_weighed_by_the_sizes_of_the_others() -> None:
    """KL((.75, .25) || (.5, .5)) and the like, the others' weights 1 and 3 as 1/4 and 3/4."""
    p = [torch.tensor([[share, 1 - share]]).log() for share in (0.5, 0.75, 0.9)]

    def kl(a: float, b: float) -> float:
        return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))

    found = mutual_divergences(p, [2, 1, 3])
    assert found[0].item() == pytest.approx(0.25 * kl(0.75, 0.5) + 0.75 * kl(0.9, 0.5), rel=1e-5)
    assert found[1].item() == pytest.approx(0.4 * kl(0.5, 0.75) + 0.6 * kl(0.9, 0.75), rel=1e-5)


def together(share: float, *states: State, ce: str = "plain") -> list[list[list[float]]]:
    """The weights after one step on one sample (1, 0) of class 0."""
    from dataclasses import replace

    import numpy as np

    students = [new_model(SPEC, state) for state in states]
    view = lay_out(1, 1, "none", (1, 2), np.random.default_rng(0))
    recipe = replace(PLAIN, ce=ce)
    study_together(students, [1] * len(students), ONE, view, recipe, share)
    return [student.state_dict()["1.weight"].tolist() for student in students]


def test_a_step_by_hand() -> None:
    """Slopes of logits: (1 - a) (p - y) + a (p - p_other), with p = (.5, .5) and (.75, .25).

    a = .5 gives .5 (-.5) + .5 (-.25) = -.375 for the first model, .5 (-.25) + .5 (.25) = 0 for
    the second; a step of .1 against them.
    """
    first, second = together(0.5, ZERO, SURE)
    assert first == [[pytest.approx(0.0375), 0], [pytest.approx(-0.0375), 0]]
    assert second == [[pytest.approx(math.log(3)), 0], [pytest.approx(0, abs=1e-7), 0]]


def test_one_that_diverged_does_not_take_the_others_with_it() -> None:
    """They learn as if it were not there; alone with it, from labels."""
    lost = weights((math.nan, 0), (0, 0))
    assert together(0.5, ZERO, lost)[0] == together(0.5, ZERO)[0]
    assert together(0.5, ZERO, SURE, lost)[:2] == together(0.5, ZERO, SURE)


def test_without_the_others_it_is_training_alone() -> None:
    assert together(0.0, ZERO, SURE)[0] == together(0.0, ZERO)[0]
    (alone,) = together(0.5, ZERO)  # nobody else is there
    assert alone[0][0] == pytest.approx(0.5 * 0.1 * 0.5)


def test_the_aggregator_s_label_frequencies_count_in_the_labels_part_alone() -> None:
    """One sample of class 0: log frequencies (1.5 / 2, .5 / 2), so p + prior = (.75, .25)."""
    (alone,) = together(0.0, ZERO, ce="prior")
    assert alone[0][0] == pytest.approx(0.1 * 0.25)


def test_all_train_at_one_host_and_go_home() -> None:
    method = set_up("dfml").method
    assert isinstance(method, DFML)
    commons = Hand({"a": ZERO, "b": SURE, "c": ZERO}, dict.fromkeys("abc", ONE))
    method.after(round_of("a", "b", "c"), commons)
    assert commons.bytes_moved == 4 * len(encode(ZERO))  # two there, two back
    assert commons.samples_studied == 3
    assert method.aggregator(round_of("a", "b", "c")) in "abc"
    hosts = {method.aggregator(round_of("a", "b", "c", number=n)) for n in range(1, 20)}
    assert hosts == set("abc")


def test_the_peak_is_the_copy_of_the_highest_share() -> None:
    method = DFML(share_max=0.5)
    assert method.replaces(Phase(0, 0.0), None)
    assert method.replaces(Phase(0, 0.3), Phase(0, 0.2))
    assert not method.replaces(Phase(1, 0.2), Phase(0, 0.5))
    assert method.replaces(Phase(1, 0.3), Phase(0, 0.5))
    assert not method.replaces(Phase(1, 0.3), Phase(1, 0.4))


def test_a_peak_outlives_the_rounds_after_it() -> None:
    method = DFML()
    commons = Hand({"a": ZERO}, {"a": ONE})
    method.after(round_of("a", number=10), commons)
    kept = commons.memory["peak/a"]
    method.after(round_of("a", number=11), commons)
    assert commons.memory["peak/a"] is kept
    assert commons.states["a"] is not kept
    assert method.also({"a": SPEC}) == {"peak": {"a": "peak/a"}}

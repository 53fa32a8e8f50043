"""What an owner lets into its model."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from calmfed.client import Client, Score
from calmfed.data.views import Samples
from calmfed.models import ModelSpec
from calmfed.snapshot import State
from calmfed.workshop import Workshop


@dataclass(frozen=True)
class Flat(ModelSpec):
    """A linear model: with the identity as its weight, a sample is its own logits."""

    def build(self) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))


def state(*weight: list[float]) -> State:
    return {"1.weight": torch.tensor(weight)}


OWN = state([1.0, 0.0], [0.0, 1.0])
SWAPPED = state([0.0, 1.0], [1.0, 0.0])
ALWAYS_FIRST = state([1.0, 1.0], [0.0, 0.0])
LABELS = torch.tensor([0, 0, 0, 1])
LOGITS = torch.tensor([[2.0, 1.0], [3.0, 1.0], [1.0, 2.0], [1.0, 3.0]])


def client(
    frequencies: tuple[float, float] = (0.5, 0.5), tolerance: float = 0.5, x: torch.Tensor = LOGITS
) -> Client:
    return Client(
        name="c0",
        spec=Flat("flat"),
        validation=Samples(x[:, None, None], LABELS, 2),
        log_frequencies=torch.tensor(frequencies).log(),
        tolerance=tolerance,
    )


def test_a_score_by_hand() -> None:
    # Plain, the third sample is taken for the second class: 3 of 4 are right.
    score = client().check(OWN, Workshop(), 10)
    assert score.accuracy == 0.75
    assert score.corrected == 0.75
    losses = [math.log1p(math.exp(-1)), math.log1p(math.exp(-2)), math.log1p(math.exp(1))]
    assert score.loss == pytest.approx((sum(losses) + losses[1]) / 4)


def test_corrected_accuracy_knows_how_frequent_the_owners_classes_are() -> None:
    # log 4 = 1.39 in favour of the first class turns the third sample, which is wrong by 1, to
    # right; it does not turn the fourth, which is right by 2. log 9 = 2.2 turns that to wrong.
    score = client((0.8, 0.2)).check(OWN, Workshop(), 10)
    assert (score.accuracy, score.corrected) == (0.75, 1.0)
    score = client((0.9, 0.1)).check(OWN, Workshop(), 10)
    assert (score.accuracy, score.corrected) == (0.75, 0.75)


def test_a_score_does_not_depend_on_the_batch() -> None:
    assert client().check(OWN, Workshop(), 1) == client().check(OWN, Workshop(), 10)


def test_better_is_more_accurate_or_as_accurate_at_a_smaller_loss() -> None:
    def score(accuracy: float, loss: float, corrected: float = 0.5) -> Score:
        return Score(accuracy, corrected, loss)

    assert score(0.6, 9).better_than(score(0.5, 1))
    assert not score(0.5, 1).better_than(score(0.6, 9))
    assert score(0.5, 1).better_than(score(0.5, 2))
    assert not score(0.5, 1).better_than(score(0.5, 1, corrected=0))
    assert not score(0.5, math.nan).better_than(score(0.5, 1))


def adopted(
    offered: State, owner: Client | None = None, *, at_home: bool = False, own: State = OWN
) -> tuple[str | None, float | None]:
    owner, workshop = owner or client(), Workshop()
    own_score = owner.check(own, workshop, 10)
    verdict = owner.adopt(offered, own, own_score, workshop, 10, at_home=at_home)
    assert verdict.adopted == (verdict.refusal is None)
    if verdict.adopted:
        assert verdict.score == owner.check(offered, workshop, 10)
    return verdict.refusal, verdict.drop


def test_a_drop_beyond_the_tolerance_is_refused_and_up_to_it_accepted() -> None:
    # The swapped model is right on the third sample alone: a drop from 3/4 to 1/4.
    assert adopted(SWAPPED, client(tolerance=0.5)) == (None, 0.5)
    refusal = "validation accuracy dropped by 0.500"
    assert adopted(SWAPPED, client(tolerance=0.49)) == (refusal, 0.5)


def test_a_gain_is_a_negative_drop() -> None:
    assert adopted(OWN, own=SWAPPED, owner=client(tolerance=0)) == (None, -0.5)


def test_the_drop_is_of_corrected_accuracy() -> None:
    # At (.8, .2) the owner's own model is right on all four corrected. One that always says the
    # first class is right on three, at a drop of 1/4, though plainly it is no worse: 3 of 4.
    owner = client((0.8, 0.2), tolerance=0.2)
    assert adopted(ALWAYS_FIRST, owner) == ("validation accuracy dropped by 0.250", 0.25)


def test_a_lesson_at_home_is_accepted_whatever_it_costs() -> None:
    assert adopted(SWAPPED, client(tolerance=0), at_home=True) == (None, 0.5)


@pytest.mark.parametrize("at_home", [True, False])
@pytest.mark.parametrize(
    ("offered", "refusal"),
    [
        ({}, "not of its architecture: lacks 1.weight"),
        ({**OWN, "2.weight": torch.ones(1)}, "not of its architecture: has 2.weight"),
        (state([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), "not of its architecture: 1.weight is"),
        ({"1.weight": OWN["1.weight"].double()}, "not of its architecture: 1.weight is"),
        (state([1.0, math.nan], [0.0, 1.0]), "not finite"),
        (state([1.0, 0.0], [0.0, -math.inf]), "not finite"),
        (state([3e38, 3e38], [-3e38, -3e38]), "predictions not finite"),
    ],
)
def test_what_cannot_be_its_model_is_refused_even_at_home(
    offered: State, refusal: str, at_home: bool
) -> None:
    found, drop = adopted(offered, client(tolerance=1), at_home=at_home)
    assert found is not None
    assert found.startswith(refusal)
    assert drop is None


def test_an_offer_and_ones_own_state_stay_as_they_were() -> None:
    before = [state["1.weight"].clone() for state in (OWN, SWAPPED)]
    adopted(SWAPPED)
    assert torch.equal(OWN["1.weight"], before[0])
    assert torch.equal(SWAPPED["1.weight"], before[1])


def test_the_loss_is_of_the_plain_logits() -> None:
    """It settles ties between checkpoints, and a checkpoint is judged as it will be used."""
    score = client(frequencies=(0.9, 0.1)).check(OWN, Workshop(), 100)
    expected = torch.nn.functional.cross_entropy(LOGITS, LABELS).item()
    assert score.loss == pytest.approx(expected)

"""The generator of FedGD-style: any size, balanced, and steered by what is worked out by hand."""

import math

import pytest
import torch
from torch import nn

from calmfed.aids import Rehearsal
from calmfed.joint.generator import (
    NOISE,
    Generator,
    Invention,
    Statistics,
    disagreement,
    draw,
    ensemble,
    invent,
)
from calmfed.methods import set_up
from calmfed.methods.fedgd import GENERATOR, INVENTED
from calmfed.snapshot import encode, same, state_of
from hand import Hand, round_of, weights


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 32, 101), (1, 16, 50)])
def test_samples_of_any_size_with_mean_zero_and_deviation_one(shape: tuple[int, int, int]) -> None:
    generator = Generator(shape, 4)
    made = generator(torch.randn(40, NOISE), torch.arange(40) % 4)
    assert made.shape == (40, *shape)
    torch.testing.assert_close(made.mean(dim=(0, 2, 3)), torch.zeros(shape[0]), atol=1e-4, rtol=0)
    spread = made.var(dim=(0, 2, 3), unbiased=False)
    torch.testing.assert_close(spread, torch.ones(shape[0]), atol=1e-2, rtol=0)


def test_classes_are_drawn_in_equal_shares() -> None:
    generator = Generator((1, 8, 8), 3)
    told = []
    generator.register_forward_pre_hook(lambda _, given: told.append(given[1]))
    assert draw(generator, 7).shape == (7, 1, 8, 8)
    assert torch.bincount(told[0]).tolist() == [3, 2, 2]


def test_disagreement_counts_where_the_largest_entries_differ() -> None:
    """KL((.75, .25) || (.25, .75)) = .5 ln 3 for the first of two samples, 0 for the other."""
    three = math.log(3)
    said = torch.tensor([[three, 0], [three, 0]])
    answer = torch.tensor([[0, three], [2 * three, 0]])
    assert disagreement(said, answer).item() == pytest.approx(0.5 * three / 2)


def test_statistics_are_distances_from_what_batch_norm_remembers() -> None:
    """Mean 3 and variance 4 against the 0 and 1 of a new layer: 3 + 3, over two teachers."""
    teacher = nn.Sequential(nn.BatchNorm2d(1)).eval()
    plain = nn.Sequential(nn.Flatten()).eval()
    statistics = Statistics([teacher, plain])
    x = torch.tensor([1.0, 5]).view(2, 1, 1, 1)
    teacher(x)
    plain(x)
    assert statistics.distance().item() == pytest.approx(6 / 2)
    statistics.clear()
    assert statistics.distance().item() == 0
    statistics.close()
    assert not teacher[0]._forward_pre_hooks


def test_training_makes_the_ensemble_surer_of_the_drawn_labels() -> None:
    torch.manual_seed(0)
    teachers = [nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(64, 3)) for _ in range(2)]
    for teacher in teachers:
        teacher.eval()
        list(teacher.parameters())[-2].data *= 3
    before = [state_of(teacher) for teacher in teachers]
    generator = Generator((1, 8, 8), 3)
    student = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    labels = torch.arange(300) % 3

    def surprise() -> float:
        said = ensemble(teachers, draw(generator, 300))
        return nn.functional.cross_entropy(said, labels).item()

    first = surprise()
    how = Invention(steps=30, generator_batch=32, generator_lr=0.01, adversary=0)
    assert invent(generator, student, teachers, how, 0.01) == (3 * 30 * 32, 2 * 30 * 32)
    assert surprise() < 0.9 * first
    assert all(same(a, state_of(b)) for a, b in zip(before, teachers, strict=True))


def test_a_round_hands_out_what_the_ensemble_says_about_what_was_made() -> None:
    states = {"a": weights((1, 0), (0, 1)), "b": weights((3, 0), (0, 3))}
    commons = Hand(dict(states))
    method = set_up("fedgd,samples=6,steps=2,generator_batch=4").method
    method.before(round_of("a", "b"), commons)
    material = commons.memory[INVENTED]
    x = material["x"].flatten(1)
    torch.testing.assert_close(material["target"], (2 * x).softmax(dim=1))  # (1 + 3) / 2
    assert commons.passes == 2 * 6 + 2 * 2 * 4 + 2 * 6
    assert commons.samples_studied == 3 * 2 * 4
    assert commons.bytes_moved == 2 * len(encode(states["a"])) + 2 * len(encode(material))
    assert method.plan(round_of("a", "b")).lessons[0].aids == (Rehearsal(INVENTED, 1.0),)


def test_a_broken_ensemble_hands_out_nothing_and_does_not_spoil_the_generator() -> None:
    commons = Hand({"a": weights((math.nan, 0), (0, 1))})
    method = set_up("fedgd,samples=6,steps=1,generator_batch=4").method
    method.before(round_of("a"), commons)
    assert len(commons.memory[INVENTED]["x"]) == 0
    assert GENERATOR not in commons.memory

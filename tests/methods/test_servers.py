"""Methods with a server: what it makes of what it is sent, worked out by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from calmfed.aids import Desk, Digest, PrototypePull, Proximity, Rehearsal
from calmfed.joint.distil import distil
from calmfed.methods import set_up
from calmfed.methods.fedproto import class_means, merged, unknown
from calmfed.methods.msfkd import recall, weighed_by_class
from calmfed.snapshot import State, encode
from calmfed.workshop import NearestPrototype, new_model
from hand import PLAIN, SPEC, Hand, held, inputs, round_of, weights

A = weights((1, 0), (0, 1))
B = weights((4, 0), (0, 7))


def desk(**handouts: State) -> Desk:
    return Desk(handouts, PLAIN, np.random.default_rng(0))


def weight(model: nn.Module) -> torch.Tensor:
    found: torch.Tensor = model.state_dict()["1.weight"]
    return found


class TestFedAvg:
    method = set_up("fedavg").method

    def test_the_mean_is_weighed_by_samples_and_goes_to_all(self) -> None:
        """1 sample of A and 2 of B: (1 + 2 * 4) / 3 = 3 and (1 + 2 * 7) / 3 = 5."""
        commons = Hand({"a": A, "b": B}, {"a": held(0), "b": held(0, 1)})
        self.method.after(round_of("a", "b"), commons)
        mean = weights((3, 0), (0, 5))
        for state in (commons.memory["server"], commons.states["a"], commons.states["b"]):
            torch.testing.assert_close(state, mean)
        assert commons.bytes_moved == 4 * len(encode(A))  # two up, two down

    def test_who_has_the_server_s_model_is_not_sent_it_again(self) -> None:
        commons = Hand({"a": A, "b": B}, memory={"server": A})
        self.method.before(round_of("a", "b"), commons)
        assert commons.bytes_moved == len(encode(A))
        torch.testing.assert_close(commons.states["b"], A)

    def test_lessons_are_those_of_training_alone(self) -> None:
        round_ = round_of("a", "b")
        assert self.method.plan(round_) == set_up("local").method.plan(round_)


def test_fedprox_pulls_back_by_mu_times_the_way_gone() -> None:
    """From 1 to 3 and from 2 to 1: mu / 2 (2^2 + 1^2); its gradient is mu times the way."""
    model = new_model(SPEC, weights((1, 2), (0, 0)))
    (lesson, _) = set_up("fedprox,mu=.5").method.plan(round_of("a", "b")).lessons
    (aid,) = lesson.aids
    assert isinstance(aid, Proximity)
    penalty = aid.begin(model, desk())
    model.load_state_dict(weights((3, 1), (0, 0)))
    value = penalty(torch.tensor([0]))
    assert value.item() == pytest.approx(0.5 / 2 * 5)
    value.backward()  # type: ignore[no-untyped-call]
    (parameter,) = model.parameters()
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [[1.0, -0.5], [0.0, 0.0]]


class TestFedMD:
    public = inputs((1, 0), (0, 1))

    def agreed(self, method: str) -> tuple[State, Hand]:
        commons = Hand({"a": A, "b": B}, public=self.public)
        set_up(method).method.before(round_of("a", "b"), commons)
        return commons.memory["agreed"], commons

    def test_what_is_agreed_on_is_the_mean_of_the_logits(self) -> None:
        """(1 + 4) / 2 for the first sample's first class, (1 + 7) / 2 for the second's second."""
        agreed, commons = self.agreed("fedmd")
        assert agreed["target"].tolist() == [[2.5, 0], [0, 4]]
        assert agreed["index"].tolist() == [0, 1]
        assert commons.passes == 4
        up, down = (
            len(encode({"said": agreed["target"]})),
            len(encode({"target": agreed["target"]})),
        )
        assert commons.bytes_moved == 2 * (up + down)

    def test_with_kl_it_is_the_softened_mean(self) -> None:
        agreed, _ = self.agreed("fedmd,loss=kl,temperature=2.5")
        assert agreed["target"][0].tolist() == pytest.approx(
            [math.e / (math.e + 1), 1 / (math.e + 1)]
        )

    def test_who_overflows_is_not_asked(self) -> None:
        commons = Hand({"a": A, "b": weights((math.inf, 0), (0, 1))}, public=self.public)
        set_up("fedmd").method.before(round_of("a", "b"), commons)
        assert commons.memory["agreed"]["target"].tolist() == [[1, 0], [0, 1]]
        alone = Hand({"b": weights((math.nan, 0), (0, 1))}, public=self.public)
        set_up("fedmd").method.before(round_of("b"), alone)
        assert len(alone.memory["agreed"]["index"]) == 0

    def test_a_step_towards_it(self) -> None:
        """All four logits of a zero model lie below or at the target: |z - t| has slope -1/4.

        At t = 0 the slope is 0. A step of .1 raises the two that differ by .025.
        """
        agreed, _ = self.agreed("fedmd")
        (lesson, _) = set_up("fedmd").method.plan(round_of("a", "b")).lessons
        (aid,) = lesson.aids
        assert isinstance(aid, Digest)
        model = new_model(SPEC, weights((0, 0), (0, 0)))
        at = desk(agreed=agreed, public={"x": self.public})
        aid.begin(model, at)
        torch.testing.assert_close(weight(model), torch.tensor([[0.025, 0], [0, 0.025]]))
        assert at.samples_studied == 2

    def test_a_step_by_divergence(self) -> None:
        """Softmax of zeros is (.5, .5); the slope of the mean of T^2 KL is T (p - t) / 2."""
        target = {"target": torch.tensor([[0.9, 0.1], [0.3, 0.7]]), "index": torch.arange(2)}
        model = new_model(SPEC, weights((0, 0), (0, 0)))
        Digest("agreed", "kl", 2.0).begin(model, desk(agreed=target, public={"x": self.public}))
        step = -0.1 * 2 / 2
        expected = torch.tensor([[-0.4, 0.2], [0.4, -0.2]]) * step
        torch.testing.assert_close(weight(model), expected)


class TestMSFKDStyle:
    def test_teachers_count_as_far_as_they_know_the_class(self) -> None:
        """Class 0: (1 * .8 + .5 * .4) / 1.5 = 2/3, class 1: .5 * .6 / .5 = .6."""
        q = torch.tensor([[[0.8, 0.2]], [[0.4, 0.6]]])
        target = weighed_by_class(q, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
        assert target[0].tolist() == pytest.approx([2 / 3 / (2 / 3 + 0.6), 0.6 / (2 / 3 + 0.6)])

    def test_a_class_that_nobody_knows_has_no_share_and_nobody_at_all_is_uniform(self) -> None:
        q = torch.tensor([[[0.8, 0.2]], [[0.4, 0.6]]])
        assert weighed_by_class(q, torch.tensor([[1.0, 0], [1, 0]])).tolist() == [[1, 0]]
        assert weighed_by_class(q, torch.zeros(2, 2)).tolist() == [[0.5, 0.5]]

    def test_recall_by_class(self) -> None:
        logits = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])
        assert recall(logits, held(0, 0, 1, classes=3)).tolist() == [0.5, 1, 0]

    def test_only_confident_samples_are_digested(self) -> None:
        """A knows both classes. On (9, 0) it is sure, on (0, 0) it is not."""
        own = held(0, 1, x=inputs((1, 0), (0, 1)))
        commons = Hand({"a": A}, {"a": own}, public=inputs((0, 0), (9, 0)))
        set_up("msfkd").method.before(round_of("a"), commons)
        agreed = commons.memory["agreed"]
        assert agreed["index"].tolist() == [1]
        assert commons.passes == 2 + 2  # public samples, and its own for the recall
        assert agreed["target"][0].tolist() == pytest.approx(torch.tensor([9.0, 0]).softmax(0))

    def test_a_single_sample_is_left_out(self) -> None:
        """Batch norm cannot train on it."""
        one = {"target": torch.tensor([[1.0, 0]]), "index": torch.tensor([0])}
        model = new_model(SPEC, A)
        at = desk(agreed=one, public={"x": inputs((1, 0))})
        Digest("agreed", "kl").begin(model, at)
        assert weight(model).equal(A["1.weight"])
        assert at.samples_studied == 0


class TestFedDF:
    def test_a_first_step_of_adam_is_its_learning_rate(self) -> None:
        """Whatever the slope: each weight moves by lr towards the target, or not at all."""
        model = new_model(SPEC, weights((0, 0), (0, 0)))
        x, target = inputs((1, 0), (1, 0)), torch.tensor([[0.9, 0.1], [0.9, 0.1]])
        rng = np.random.default_rng(0)
        assert distil(model, x, target, rng, steps=1, batch=9, lr=0.1) == 2
        torch.testing.assert_close(weight(model), torch.tensor([[0.1, 0], [-0.1, 0]]))

    def test_a_single_sample_is_left_out(self) -> None:
        model = new_model(SPEC, A)
        one = (inputs((1, 0)), torch.tensor([[1.0, 0]]), np.random.default_rng(0))
        assert distil(model, *one, steps=1, batch=9, lr=0.1) == 0
        assert weight(model).equal(A["1.weight"])

    def test_the_server_fuses_and_sends(self) -> None:
        """The mean of A (1 sample) and B (2 samples), then a step of .1 towards both's opinion.

        On (1, 0) A says 1, B says 4 and the mean model 3 against 0: they are less sure than it is,
        since (1 + 4) / 2 < 3, so its first weight falls and the one below rises.
        """
        commons = Hand(
            {"a": A, "b": B},
            {"a": held(0), "b": held(0, 1)},
            public=inputs((1, 0), (1, 0)),
        )
        set_up("feddf,steps=1,server_lr=.1").method.after(round_of("a", "b"), commons)
        fused = torch.tensor([[2.9, 0], [0.1, 5]])
        for state in (
            commons.memory["server/linear_by_hand"],
            commons.states["a"],
            commons.states["b"],
        ):
            torch.testing.assert_close(state["1.weight"], fused)
        assert commons.passes == 4
        assert commons.samples_studied == 2
        assert commons.bytes_moved == 4 * len(encode(A))


class TestFedProto:
    def test_means_by_class(self) -> None:
        features = torch.tensor([[1.0, 0], [3, 2], [5, 5]])
        mean, has = class_means(features, torch.tensor([0, 0, 2]), 3)
        assert mean.tolist() == [[2, 1], [0, 0], [5, 5]]
        assert has.tolist() == [True, False, True]

    def test_clients_count_alike_and_old_prototypes_stand(self) -> None:
        means = torch.tensor([[[2.0], [0], [0]], [[4.0], [6], [0]]])
        has = torch.tensor([[True, False, False], [True, True, False]])
        known = {
            "mean": torch.tensor([[9.0], [9], [9]]),
            "known": torch.tensor([False, False, True]),
        }
        found = merged(known, means, has)
        assert found["mean"].tolist() == [[3], [6], [9]]
        assert found["known"].tolist() == [True, True, True]
        assert unknown(3, 1)["known"].tolist() == [False, False, False]

    def test_the_pull_is_the_mean_squared_distance_from_known_prototypes(self) -> None:
        """The features of a linear model are its input: (1, 0) is 1 and 2 away from (2, 2).

        (1 + 4) / 2 for the first sample; the second's class has no prototype; over two samples.
        """
        prototypes = {
            "mean": torch.tensor([[2.0, 2], [7, 7]]),
            "known": torch.tensor([True, False]),
        }
        at = desk(prototypes=prototypes)
        model = new_model(SPEC, A)
        with at.closing:
            penalty = PrototypePull("prototypes", 3.0).begin(model, at)
            model(inputs((1, 0), (1, 0)))
            assert penalty(torch.tensor([0, 1])).item() == pytest.approx(3 * 2.5 / 2)
        (linear,) = (m for m in model.modules() if isinstance(m, nn.Linear))
        assert not linear._forward_pre_hooks  # the bench is used again

    def test_the_nearest_known_prototype_decides(self) -> None:
        prototypes = {
            "mean": torch.tensor([[0.0, 0], [4, 0], [1, 0]]),
            "known": torch.tensor([True, True, False]),
        }
        near = NearestPrototype(new_model(SPEC, A), prototypes)
        scores = near(inputs((1, 0), (3, 0)))
        assert scores.tolist() == [[-0.5, -4.5, -math.inf], [-4.5, -0.5, -math.inf]]

    def test_a_round_tells_means_of_features(self) -> None:
        """By hand's features are the samples themselves."""
        own = held(0, 0, 1, x=inputs((1, 0), (3, 0), (5, 5)))
        commons = Hand({"a": A}, {"a": own})
        method = set_up("fedproto,feature_size=2").method
        method.after(round_of("a"), commons)
        assert commons.memory["prototypes"]["mean"].tolist() == [[2, 0], [5, 5]]
        assert commons.passes == 3
        assert method.plan(round_of("a")).lessons[0].aids == ()  # nothing is known at first
        assert method.plan(round_of("a", number=2)).lessons[0].aids


def test_rehearsal_follows_the_target_on_what_was_handed_out() -> None:
    """KL((.5, .5) || softmax(ln 3, 0) = (.75, .25)) = .5 ln(.5 / .75) + .5 ln(.5 / .25)."""
    material = {"x": inputs((1, 0)), "target": torch.tensor([[0.5, 0.5]])}
    at = desk(invented=material)
    penalty = Rehearsal("invented", 2.0).begin(
        new_model(SPEC, weights((math.log(3), 0), (0, 0))), at
    )
    assert penalty is not None
    expected = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert penalty(torch.tensor([0])).item() == pytest.approx(2 * expected)
    assert at.samples_studied == 1
    nothing = {"x": torch.empty(0, 1, 1, 2), "target": torch.empty(0, 2)}
    assert Rehearsal("invented", 2.0).begin(new_model(SPEC, A), desk(invented=nothing)) is None

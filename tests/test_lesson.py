"""Carrying out a lesson: it is a plain training loop, and leaves everything else alone."""

import copy
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calmfed.data.views import Samples, lay_out
from calmfed.errors import UserError
from calmfed.lesson import Lesson, TrustRecord, carry_out
from calmfed.recipe import Recipe
from calmfed.rules import Calm, Rule, Uniform
from calmfed.snapshot import State, same, state_of
from calmfed.streams import Stream
from calmfed.workshop import Teacher

N, CLASSES = 21, 3
STREAM = Stream(5, "lesson", 2, "c1")


def small_model(seed: int, dropout: float = 0.5) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Flatten(),
            nn.Linear(4 * 8 * 9, CLASSES),
        )


@pytest.fixture(scope="module")
def samples() -> Samples:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 2, 8, 9, generator=generator)
    y = torch.randint(CLASSES, (N,), generator=generator)
    return Samples(x.contiguous(memory_format=torch.channels_last), y, CLASSES)


def lesson(rule: Rule | None = None, teachers: int = 0, **settings: object) -> Lesson:
    recipe = Recipe(**{"epochs": 3, "batch": 4, "lr": 0.05, **settings})  # type: ignore[arg-type]
    names = tuple(f"t{i}" for i in range(teachers))
    return Lesson("c1", "c2", names, rule, recipe, STREAM)


def pool(size: int) -> list[nn.Module]:
    return [small_model(100 + i).eval() for i in range(size)]


def plain_loop(asked: Lesson, student: nn.Module, samples: Samples, pool: list[nn.Module]) -> State:
    """The same lesson without any of calmfed's training code: Eq. 10 in plain torch."""
    recipe = asked.recipe
    view = lay_out(N, recipe.epochs, recipe.augment, (8, 9), asked.stream.generator())
    stream_x = view.show(samples.x, slice(0, None))  # all at once; it is small here
    stream_y = samples.y[torch.from_numpy(view.order)]
    # The teachers judge the places of an augmented stream, else each sample once.
    judged_x, judged_y = (stream_x, stream_y) if view.augmented else (samples.x, samples.y)
    place = torch.arange(len(view)) if view.augmented else torch.from_numpy(view.order)
    if asked.rule is not None:
        with torch.no_grad():
            logits = [torch.cat([t(part) for part in torch.split(judged_x, N)]) for t in pool]
        judgement = asked.rule(torch.stack(logits), judged_y)
        target, trust = judgement.target[place], judgement.trust[place]
    counts = torch.bincount(samples.y, minlength=CLASSES).double()
    log_prior = ((counts + 0.5) / (N + 0.5 * CLASSES)).log().float()
    optimiser = torch.optim.SGD(student.parameters(), recipe.lr, recipe.momentum, 0, 5e-4)
    student.train()
    with asked.stream.torch_generator():
        for epoch in range(recipe.epochs):
            for batch in ((0, 4), (4, 8), (8, 12), (12, 16), (16, 21)):  # the 21st joins the last
                where = slice(epoch * N + batch[0], epoch * N + batch[1])
                z, y = student(stream_x[where]), stream_y[where]
                shifted = z + log_prior if recipe.ce == "prior" else z
                if asked.rule is None:
                    loss = F.cross_entropy(shifted, y)
                else:
                    temperature, alpha = asked.rule.temperature, recipe.kd_weight
                    kl = F.kl_div(
                        F.log_softmax(z / temperature, dim=1),
                        target[where],
                        reduction="none",
                    ).sum(dim=1)
                    distillation = alpha * trust[where] * (temperature**2 * kl)
                    cross_entropy = F.cross_entropy(shifted, y, reduction="none")
                    loss = ((1 - alpha) * cross_entropy + distillation).mean()
                student.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    return state_of(student)


@pytest.mark.parametrize("ce", ["plain", "prior"])
@pytest.mark.parametrize("augment", ["none", "crop", "crop_flip"])
@pytest.mark.parametrize(
    "rule", [None, Uniform(), Calm(temperature=2)], ids=["alone", "uniform", "calm"]
)
def test_a_lesson_is_a_plain_training_loop_bit_for_bit(
    samples: Samples, rule: Rule | None, augment: str, ce: str
) -> None:
    teachers = pool(3 if rule else 0)
    # Teachers predict N at a time here as there, so that not even the last bit differs.
    asked = lesson(rule, len(teachers), augment=augment, ce=ce, teacher_batch=N)
    student = small_model(1).eval()  # as it comes from an examination
    expected = plain_loop(asked, copy.deepcopy(student), samples, teachers)
    outcome = carry_out(asked, student, samples, teachers)
    assert same(outcome.state, expected)
    assert same(outcome.state, state_of(student))


def test_the_settings_of_the_recipe_reach_the_training(samples: Samples) -> None:
    results: list[State] = []
    changes: list[dict[str, object]] = [
        {},
        {"epochs": 2},
        {"batch": 5},
        {"lr": 0.04},
        {"momentum": 0.0},
        {"weight_decay": 0.0},
        {"kd_weight": 0.5},
        {"ce": "prior"},
        {"augment": "crop"},
    ]
    for change in changes:
        asked = lesson(Uniform(), 2, **change)
        results.append(carry_out(asked, small_model(1), samples, pool(2)).state)
    for i, one in enumerate(results):
        assert not any(same(one, other) for other in results[:i])


def test_a_lesson_gives_the_same_result_again_even_with_dropout(samples: Samples) -> None:
    first = carry_out(lesson(Calm(), 2), small_model(1), samples, pool(2))
    torch.rand(7)  # what happens in between does not matter
    np.random.default_rng(1).random(7)
    again = carry_out(lesson(Calm(), 2), small_model(1), samples, pool(2))
    assert same(first.state, again.state)
    # and dropout does take part: without it the outcome is another
    without = carry_out(lesson(Calm(), 2), small_model(1, dropout=0), samples, pool(2))
    assert not same(first.state, without.state)


def test_torchs_generator_stays_as_it_was(samples: Samples) -> None:
    before = torch.get_rng_state()
    carry_out(lesson(Calm(), 2, augment="crop_flip"), small_model(1), samples, pool(2))
    assert torch.equal(torch.get_rng_state(), before)


def test_teachers_and_samples_stay_as_they_were(samples: Samples) -> None:
    teachers = pool(2)
    before = [state_of(teacher) for teacher in teachers]
    x, y = samples.x.clone(), samples.y.clone()
    carry_out(lesson(Calm(), 2), small_model(1), samples, teachers)
    for teacher, state in zip(teachers, before, strict=True):
        assert same(state_of(teacher), state)
        assert not teacher.training
        assert all(parameter.grad is None for parameter in teacher.parameters())
    assert torch.equal(samples.x, x)
    assert torch.equal(samples.y, y)


def test_a_student_at_rest_holds_no_gradients(samples: Samples) -> None:
    student = small_model(1)
    outcome = carry_out(lesson(), student, samples, [])
    assert all(parameter.grad is None for parameter in student.parameters())
    before = {name: tensor.clone() for name, tensor in outcome.state.items()}
    with torch.no_grad():
        next(student.parameters()).add_(1)
    assert same(outcome.state, before)  # the outcome is a copy


def counting(teacher: Teacher, shown: list[int]) -> Teacher:
    def predict(x: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        shown.append(len(x))
        return teacher(x)

    return predict


@pytest.mark.parametrize(("augment", "judged"), [("none", N), ("crop", 3 * N)])
def test_teachers_judge_each_sample_once_or_each_place_of_an_augmented_stream(
    samples: Samples, augment: str, judged: int
) -> None:
    shown: list[list[int]] = [[], []]
    teachers = [counting(teacher, seen) for teacher, seen in zip(pool(2), shown, strict=True)]
    asked = lesson(Uniform(), 2, augment=augment, teacher_batch=8)
    outcome = carry_out(asked, small_model(1), samples, teachers)
    for seen in shown:
        assert sum(seen) == judged
        assert max(seen) == 8
    assert outcome.heard.teacher_passes == 2 * judged
    assert outcome.samples_studied == 3 * N


def test_without_teachers_nobody_is_asked(samples: Samples) -> None:
    outcome = carry_out(lesson(Uniform(), 0), small_model(1), samples, [])
    assert (outcome.samples_studied, outcome.heard.teacher_passes) == (3 * N, 0)
    assert outcome.heard.trust is None


def test_each_teacher_is_used_up_before_the_next_is_asked_for(samples: Samples) -> None:
    # One bench serves all teachers of an architecture: a teacher is gone once the next is there.
    states = [state_of(small_model(100 + i)) for i in range(3)]
    bench = small_model(0).eval()

    def in_turn() -> Iterator[Teacher]:
        for state in states:
            bench.load_state_dict(state)
            yield bench

    for augment in ("none", "crop"):
        asked = lesson(Calm(), 3, augment=augment, teacher_batch=8)
        found = carry_out(asked, small_model(1), samples, in_turn())
        assert same(found.state, carry_out(asked, small_model(1), samples, pool(3)).state)


def record_of(samples: Samples, rule: Rule, **settings: object) -> TrustRecord:
    trust = carry_out(lesson(rule, 2, **settings), small_model(1), samples, pool(2)).heard.trust
    assert trust is not None
    return trust


def test_the_record_of_trust_is_what_the_rule_thought_of_each_sample(samples: Samples) -> None:
    rule = Calm()
    logits = torch.stack([teacher(samples.x).detach() for teacher in pool(2)])
    judgement = rule(logits, samples.y)
    record = record_of(samples, rule)
    assert judgement.disagreement_trust is not None
    assert judgement.label_trust is not None
    for found, expected in (
        (record.trust, judgement.trust),
        (record.disagreement_trust, judgement.disagreement_trust),
        (record.label_trust, judgement.label_trust),
        (record.mass, judgement.target[torch.arange(N), samples.y]),
    ):
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    assert record.label.tolist() == samples.y.tolist()
    assert record.right.tolist() == (judgement.target.argmax(dim=1) == samples.y).tolist()
    assert 0 < record.right.sum() < N  # both kinds occur, so the line above says something


def test_a_rule_without_gates_is_recorded_as_full_trust(samples: Samples) -> None:
    record = record_of(samples, Uniform())
    for part in (record.trust, record.disagreement_trust, record.label_trust):
        assert part.tolist() == [1] * N


def test_an_augmented_lesson_records_the_first_pass(samples: Samples) -> None:
    record = record_of(samples, Calm(), augment="crop")
    order = lay_out(N, 3, "crop", (8, 9), STREAM.generator()).order[:N]
    assert len(record.trust) == N
    assert record.label.tolist() == samples.y[torch.from_numpy(order)].tolist()


def test_a_lesson_is_at_home_where_student_and_host_are_one() -> None:
    assert not lesson().at_home
    assert Lesson("c1", "c1", (), None, Recipe(), STREAM).at_home


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recipe(epochs=0), "epochs must be at least 1, got 0"),
        (lambda: Recipe(batch=0), "batch must be at least 2, got 0"),
        (lambda: Recipe(teacher_batch=0), "teacher_batch must be at least 1, got 0"),
        (lambda: Recipe(lr=-0.1), "lr must be .* at least zero, got -0.1"),
        (lambda: Recipe(lr=float("nan")), "lr must be a finite number .*, got nan"),
        (lambda: Recipe(momentum=-1), "momentum must be .* at least zero, got -1"),
        (lambda: Recipe(weight_decay=-1), "weight_decay must be .* at least zero, got -1"),
        (lambda: Recipe(kd_weight=1.5), r"kd_weight must lie in \[0, 1\], got 1.5"),
        (lambda: Recipe(augment="flip"), "unknown augmentation 'flip'"),
    ],
)
def test_a_recipe_out_of_range_is_named(make: Callable[[], Recipe], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_an_unknown_cross_entropy_is_told_with_the_nearest_right_one() -> None:
    with pytest.raises(UserError, match="unknown ce 'prio': did you mean 'prior'"):
        Recipe(ce="prio")


def test_a_teacher_that_overflows_is_left_out_and_counted(samples: Samples) -> None:
    """The others are heard as if it were not there; if none is left, labels alone teach."""
    two = lesson(Calm(), 2)
    with_third = lesson(Calm(), 3)

    def overflowing(x: torch.Tensor) -> torch.Tensor:
        return torch.full((len(x), 3), torch.nan)

    alone = carry_out(two, small_model(1), samples, pool(2))
    beside = carry_out(with_third, small_model(1), samples, [*pool(2), overflowing])
    assert (beside.heard.unheard, alone.heard.unheard) == (1, 0)
    assert all(torch.equal(beside.state[key], alone.state[key]) for key in alone.state)
    nobody = carry_out(lesson(Calm(), 1), small_model(1), samples, [overflowing])
    assert nobody.heard.judgement is None
    assert nobody.heard.trust is None

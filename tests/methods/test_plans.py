"""A method is nothing but a plan: who studies where, judged by whom, and who merges."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calmfed.methods import AtHome, Merge, Plan, Round, set_up
from calmfed.models import ModelSpec
from calmfed.recipe import Recipe
from calmfed.rules import Calm, ConfidenceWeighted, HardFilter, Rule, Uniform
from calmfed.streams import Stream

ARCHITECTURES = ("resnet18", "resnet18_half", "cnn6")


def round_of(active: int, number: int = 3, seed: int = 0, recipe: Recipe | None = None) -> Round:
    """A round of the first clients of a federation with three architectures in turn."""
    names = tuple(f"c{i:02}" for i in range(active))
    specs = {name: ModelSpec(ARCHITECTURES[i % 3]) for i, name in enumerate(names)}
    return Round(number, names, specs, recipe or Recipe(), seed)


def plan(method: str, active: int = 10, number: int = 3, seed: int = 0) -> Plan:
    return set_up(method).method.plan(round_of(active, number, seed))


METHODS = ["local", "uniform", "hard", "calm", "calm:12", "confidence"]
METHODS += ["visit", "visit:calm", "visit:uniform", "visit,merge=false", "visit,abroad=false"]
each_method = pytest.mark.parametrize("method", METHODS)


@each_method
@pytest.mark.parametrize("active", [1, 2, 7])
def test_each_active_client_studies_exactly_one_lesson_and_each_host_has_one_guest(
    method: str, active: int
) -> None:
    lessons = plan(method, active).lessons
    names = round_of(active).active
    assert tuple(lesson.student for lesson in lessons) == names
    assert Counter(lesson.host for lesson in lessons) == Counter(names)


@each_method
def test_a_plan_is_plain_data_and_the_same_when_it_is_made_again(method: str) -> None:
    assert plan(method) == plan(method)
    assert hash(plan(method)) == hash(plan(method))


@each_method
def test_every_lesson_has_the_recipe_and_a_stream_of_its_own(method: str) -> None:
    recipe = Recipe(epochs=2, lr=0.3)
    lessons = set_up(method).method.plan(round_of(6, 4, 9, recipe)).lessons
    for lesson in lessons:
        assert lesson.recipe == recipe
        assert lesson.stream == Stream(9, "lesson", 4, lesson.student)
    assert len({lesson.stream for lesson in lessons}) == 6


@each_method
def test_teachers_are_sorted_by_name_and_active(method: str) -> None:
    for lesson in plan(method).lessons:
        assert list(lesson.teachers) == sorted(set(lesson.teachers))
        assert set(lesson.teachers) <= set(round_of(10).active)
        assert bool(lesson.teachers) == (lesson.rule is not None)


def test_local_is_labels_alone() -> None:
    for lesson in plan("local").lessons:
        assert lesson.at_home
        assert lesson.teachers == ()
        assert lesson.rule is None
    assert plan("local").merges == ()


OFF = math.inf


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("uniform", Uniform()),
        ("uniform,temperature=2", Uniform(2)),
        ("hard", HardFilter()),
        ("hard,kappa=1.5", HardFilter(kappa=1.5)),
        ("confidence", ConfidenceWeighted()),
        ("calm", Calm()),
        ("calm:1", Calm(sigma=OFF, eta=0)),
        ("calm:2", Calm(tau=OFF, eta=0)),
        ("calm:3", Calm(tau=OFF, sigma=OFF)),
        ("calm:12", Calm(eta=0)),
        ("calm:13", Calm(sigma=OFF)),
        ("calm:23", Calm(tau=OFF)),
        ("calm:123", Calm()),
        ("calm:12,tau=0.2,floor=0.1", Calm(tau=0.2, floor=0.1, eta=0)),
        ("calm,tau=inf,sigma=inf,eta=0", Calm(tau=OFF, sigma=OFF, eta=0)),
    ],
)
def test_distillation_at_home_is_judged_by_all_the_others(method: str, rule: Rule) -> None:
    lessons = plan(method).lessons
    for lesson in lessons:
        assert lesson.at_home
        assert lesson.rule == rule
        assert lesson.teachers == tuple(n for n in round_of(10).active if n != lesson.student)
        assert len(lesson.teachers) == 9
    assert plan(method).merges == ()


def test_alone_in_a_round_nobody_teaches() -> None:
    (lesson,) = plan("calm", active=1).lessons
    assert lesson.teachers == ()


@given(active=st.integers(2, 12), number=st.integers(1, 50), seed=st.integers(0, 50))
def test_a_visitor_is_never_at_home_and_all_move_by_the_same_step(
    active: int, number: int, seed: int
) -> None:
    lessons = plan("visit", active, number, seed).lessons
    names = round_of(active).active
    steps = {
        (names.index(lesson.host) - names.index(lesson.student)) % active for lesson in lessons
    }
    drawn = Stream(seed, "visit", number).generator().integers(1, active)
    assert steps == {drawn}


def test_the_step_of_a_visit_is_drawn_from_all_of_1_to_k_minus_1() -> None:
    hosts = {plan("visit", 5, number).lessons[0].host for number in range(1, 60)}
    assert hosts == {"c01", "c02", "c03", "c04"}


@pytest.mark.parametrize("method", ["visit", "visit:calm"])
def test_alone_in_a_round_a_visitor_studies_at_home(method: str) -> None:
    lone = plan(method, active=1)
    assert [(lesson.student, lesson.host) for lesson in lone.lessons] == [("c00", "c00")]
    assert lone.merges == ()


def test_without_going_abroad_models_study_at_home_and_merge() -> None:
    assert all(lesson.at_home for lesson in plan("visit,abroad=false").lessons)
    assert plan("visit,abroad=false").merges == plan("visit").merges


def test_a_visitor_has_no_teachers_unless_asked_for() -> None:
    for lesson in plan("visit").lessons:
        assert lesson.teachers == ()
        assert lesson.rule is None


@pytest.mark.parametrize(
    ("variant", "rule"),
    [
        ("uniform", Uniform()),
        ("hard", HardFilter()),
        ("calm", Calm()),
        ("calm,tau=0.5", Calm(tau=0.5)),
        ("confidence", ConfidenceWeighted()),
    ],
)
def test_a_visit_with_teachers_has_all_active_ones_and_the_visitor_among_them(
    variant: str, rule: Rule
) -> None:
    for lesson in plan(f"visit:{variant}").lessons:
        assert lesson.teachers == round_of(10).active
        assert lesson.student in lesson.teachers
        assert lesson.rule == rule


def test_merges_are_among_all_active_models_of_one_architecture() -> None:
    # Of seven, c00 c03 c06 are ResNet-18, c01 c04 half, c02 c05 CNN-6.
    groups = [("c00", "c03", "c06"), ("c01", "c04"), ("c02", "c05")]
    assert plan("visit", 7).merges == tuple(
        Merge(name, next(group for group in groups if name in group)) for name in round_of(7).active
    )


def test_a_client_of_a_unique_architecture_does_not_merge() -> None:
    assert plan("visit", 4).merges == (Merge("c00", ("c00", "c03")), Merge("c03", ("c00", "c03")))
    assert plan("visit", 3).merges == ()


def test_equals_are_equal_in_width_and_classes_too() -> None:
    names = ("a", "b", "c")
    specs = {
        "a": ModelSpec("cnn6", width=0.5),
        "b": ModelSpec("cnn6", width=1.0),
        "c": ModelSpec("cnn6", width=0.5),
    }
    merges = set_up("visit").method.plan(Round(1, names, specs, Recipe(), 0)).merges
    assert merges == (Merge("a", ("a", "c")), Merge("c", ("a", "c")))


@pytest.mark.parametrize("method", ["visit,merge=false", "visit:calm,merge=false"])
def test_merging_can_be_switched_off(method: str) -> None:
    assert plan(method).merges == ()
    assert not any(lesson.at_home for lesson in plan(method).lessons)


def test_all_methods_draw_the_same_streams_for_the_same_student() -> None:
    streams = [[lesson.stream for lesson in plan(method).lessons] for method in METHODS]
    assert all(found == streams[0] for found in streams)


def test_at_home_without_a_rule_is_local() -> None:
    assert AtHome().plan(round_of(3)) == plan("local", 3)

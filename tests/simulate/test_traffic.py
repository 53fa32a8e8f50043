"""What a real exchange would move, counted by hand."""

from collections import Counter

import pytest

from calmfed.lesson import Lesson
from calmfed.methods import Merge, Plan, Round, set_up
from calmfed.models import ModelSpec
from calmfed.recipe import Recipe
from calmfed.rules import Uniform
from calmfed.simulate.traffic import bytes_moved, transfers
from calmfed.streams import Stream

NAMES = tuple(f"c{i}" for i in range(10))
SPECS = {
    name: ModelSpec(("resnet18", "resnet18_half", "cnn6")[i % 3]) for i, name in enumerate(NAMES)
}


def moved(method: str) -> int:
    return len(transfers(set_up(method).method.plan(Round(1, NAMES, SPECS, Recipe(), 0))))


# Ten active clients of three architectures are 4, 3 and 3 equals: 4 * 3 + 3 * 2 + 3 * 2 = 24
# transfers to merge.
@pytest.mark.parametrize(
    ("method", "count"),
    [
        ("local", 0),
        ("uniform", 90),
        ("hard", 90),
        ("calm", 90),
        ("calm:1", 90),
        ("confidence", 90),
        ("visit,merge=false", 10 + 10),
        ("visit", 10 + 10 + 24),
        ("visit,abroad=false", 24),
        # each host fetches the other nine, the visitor among them; then it goes home
        ("visit:calm,merge=false", 90 + 10),
        ("visit:uniform", 90 + 10 + 24),
        ("visit:calm,abroad=false,merge=false", 90),
    ],
)
def test_transfers_of_a_round_with_ten_active_clients(method: str, count: int) -> None:
    assert moved(method) == count


def lesson(student: str, host: str, *teachers: str) -> Lesson:
    rule = Uniform() if teachers else None
    return Lesson(student, host, teachers, rule, Recipe(), Stream(0, "lesson", 1, student))


def test_a_host_fetches_what_it_does_not_own_once_and_the_outcome_goes_home() -> None:
    plan = Plan((lesson("a", "b", "a", "b", "c"), lesson("c", "b", "a"), lesson("b", "b", "c")))
    assert Counter(transfers(plan)) == Counter(
        [
            ("a", "b"),  # a visitor, and a teacher of three lessons
            ("c", "b"),
            ("a", "a"),  # the outcomes of the two lessons abroad, from b
            ("c", "c"),
        ]
    )


def test_an_owner_fetches_the_models_it_merges_with_its_own() -> None:
    plan = Plan((), (Merge("a", ("a", "b", "c")), Merge("b", ("a", "b", "c"))))
    expected = [("b", "a"), ("c", "a"), ("a", "b"), ("c", "b")]
    assert Counter(transfers(plan)) == Counter(expected)


def test_bytes_are_those_of_the_models_that_move() -> None:
    sizes = {"a": 1, "b": 10, "c": 100}
    assert bytes_moved(Plan((lesson("a", "a", "b", "c"),)), sizes) == 110
    assert bytes_moved(Plan((lesson("a", "c"),)), sizes) == 1 + 1
    assert bytes_moved(Plan((), (Merge("b", ("a", "b")),)), sizes) == 1
    assert bytes_moved(Plan((lesson("a", "a"),)), sizes) == 0

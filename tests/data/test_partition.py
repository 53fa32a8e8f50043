"""Who holds what: nothing lost, nothing doubled, nobody left with too little."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from calmfed.data.partition import (
    KINDS,
    allocate,
    digest,
    partition,
    repair,
    stratified,
    validation_split,
)
from calmfed.errors import UserError

Indices = NDArray[np.int64]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def deals(draw: st.DrawFn) -> tuple[Indices, int, int, dict[str, Any]]:
    """Labels, clients, a seed and settings that can be fulfilled."""
    classes = draw(st.integers(1, 12))
    samples = draw(st.integers(1, 400))
    labels = rng(draw(st.integers(0, 99))).integers(classes, size=samples)
    clients = draw(st.integers(1, min(samples, 60)))
    held = int(labels.max()) + 1
    settings = {
        "kind": draw(st.sampled_from(KINDS)),
        "min_samples": draw(st.integers(0, samples // clients)),
        "dirichlet_alpha": draw(st.sampled_from([1e-300, 1e-3, 0.1, 0.3, 1.0, 100.0, 1e6])),
        "classes_per_client": draw(st.integers(max(1, -(-held // clients)), held)),
    }
    return labels, clients, draw(st.integers(0, 2**32)), settings


Deal = tuple[Indices, int, int, dict[str, Any]]


@given(deals())
def test_nothing_is_lost_or_doubled_and_nobody_has_too_little(deal: Deal) -> None:
    labels, clients, seed, settings = deal
    parts = partition(labels, clients, rng(seed), **settings)
    assert len(parts) == clients
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert min(len(part) for part in parts) >= settings["min_samples"]
    assert all((np.diff(part) > 0).all() for part in parts)


@given(deals())
def test_the_same_seed_gives_the_same_deal(deal: Deal) -> None:
    labels, clients, seed, settings = deal
    first, again = (partition(labels, clients, rng(seed), **settings) for _ in range(2))
    assert digest(first) == digest(again)


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_gives_another_deal(kind: str) -> None:
    labels = np.arange(600) % 10
    first, other = (partition(labels, 12, rng(seed), kind=kind) for seed in (0, 1))
    assert digest(first) != digest(other)


def test_the_global_generator_is_not_used() -> None:
    before = np.random.get_state(legacy=False)  # noqa: NPY002 - the one to be left alone
    partition(np.arange(100) % 4, 5, rng())
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert np.array_equal(after["state"]["key"], before["state"]["key"])
    assert after["state"]["pos"] == before["state"]["pos"]


def test_two_hundred_very_skewed_clients_are_dealt_to_quickly() -> None:
    labels = np.arange(10_000) % 10
    began = time.process_time()
    parts = partition(labels, 200, rng(), dirichlet_alpha=0.1)
    # It takes a small part of a second. A repair that redraws would not come to an end at all.
    assert time.process_time() - began < 5
    assert min(len(part) for part in parts) >= 10
    assert sorted(np.concatenate(parts).tolist()) == list(range(10_000))


def held_classes(labels: Indices, part: Indices) -> int:
    return len(np.unique(labels[part]))


def test_a_smaller_concentration_is_more_skewed() -> None:
    labels = np.arange(5000) % 10
    mean = [
        np.mean(
            [
                np.bincount(labels[part], minlength=10).max() / len(part)
                for part in partition(labels, 20, rng(), dirichlet_alpha=alpha)
            ]
        )
        for alpha in (0.1, 0.5, 5, 1e6)
    ]
    assert mean[0] > mean[1] > mean[2] > mean[3]
    assert mean[3] == pytest.approx(0.1, abs=0.01)


def test_a_huge_concentration_deals_each_class_evenly() -> None:
    labels = np.arange(1000) % 10
    for part in partition(labels, 10, rng(), dirichlet_alpha=1e9):
        assert np.bincount(labels[part], minlength=10).tolist() == pytest.approx([10] * 10, abs=1)


def test_iid_parts_differ_in_size_by_one_at_most_and_are_shuffled() -> None:
    labels = np.sort(np.arange(103) % 4)
    parts = partition(labels, 4, rng(), kind="iid")
    assert sorted(len(part) for part in parts) == [25, 26, 26, 26]
    assert all(held_classes(labels, part) == 4 for part in parts)


@given(
    classes=st.integers(1, 10), clients=st.integers(1, 30), data=st.data(), seed=st.integers(0, 99)
)
def test_shards_give_each_client_exactly_its_number_of_classes_and_leave_none_out(
    classes: int, clients: int, data: st.DataObject, seed: int
) -> None:
    least = -(-classes // clients)
    per_client = data.draw(st.integers(least, classes))
    labels = np.arange(classes * 40) % classes  # enough of each for all its holders
    parts = partition(
        labels,
        clients,
        rng(seed),
        kind="shards",
        classes_per_client=per_client,
        min_samples=0,  # before repair
    )
    assert {held_classes(labels, part) for part in parts} == {per_client}
    assert len(np.unique(np.concatenate([labels[part] for part in parts]))) == classes
    holders = [sum(label in labels[part] for part in parts) for label in range(classes)]
    assert max(holders) - min(holders) <= 1
    for label, held in enumerate(holders):  # each class is split evenly over its holders
        shares = [int((labels[part] == label).sum()) for part in parts]
        assert {share for share in shares if share} <= {40 // held, -(-40 // held)}


def test_which_classes_a_client_holds_under_shards_is_drawn() -> None:
    labels = np.arange(400) % 10
    held = set()
    for seed in range(10):
        first = partition(labels, 4, rng(seed), kind="shards", classes_per_client=3)[0]
        held.add(tuple(np.unique(labels[first])))
    assert len(held) > 5


@pytest.mark.parametrize(
    ("labels", "clients", "settings", "message"),
    [
        (100, 0, {}, "clients must be at least 1, got 0"),
        (100, 11, {}, "11 clients with at least 10 samples each need 110 .* there are 100"),
        (100, 4, {"kind": "dirichelt"}, "unknown partition 'dirichelt': did you mean 'dirichlet'"),
        (100, 4, {"dirichlet_alpha": 0.0}, "dirichlet_alpha must be above zero .*, got 0"),
        (100, 4, {"dirichlet_alpha": -1.0}, "dirichlet_alpha must be above zero .*, got -1"),
        (100, 4, {"dirichlet_alpha": np.nan}, "dirichlet_alpha must be above zero .*, got nan"),
        (100, 4, {"dirichlet_alpha": np.inf}, "dirichlet_alpha must be .* finite, got inf"),
        (100, 4, {"kind": "shards", "classes_per_client": 0}, "classes_per_client .* 1..5, got 0"),
        (100, 4, {"kind": "shards", "classes_per_client": 6}, "classes_per_client .* 1..5, got 6"),
        (
            100,
            4,
            {"kind": "shards", "classes_per_client": 1},
            "4 clients with 1 classes each cannot hold all 5 classes",
        ),
    ],
)
def test_a_deal_that_cannot_be_made_is_refused(
    labels: int, clients: int, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        partition(np.arange(labels) % 5, clients, rng(), **settings)


def hold(*counts: list[int]) -> list[list[Indices]]:
    """Clients that hold so many samples of each class, numbered client * 1000 + class * 100 + i."""
    return [
        [np.arange(n) + 1000 * client + 100 * label for label, n in enumerate(of_client)]
        for client, of_client in enumerate(counts)
    ]


def counted(held: list[list[Indices]]) -> list[list[int]]:
    return [[len(indices) for indices in by_class] for by_class in held]


def test_repair_gives_a_poor_client_more_of_what_it_has() -> None:
    # Client 0 lacks 3 of 5. It holds class 1 alone; of those that can spare, client 2 holds most
    # of class 1. It may give half of its 8, and can spare 7: so it gives the 3 that are missing.
    held = hold([0, 2], [9, 1], [4, 8])
    repair(held, 5)
    assert counted(held) == [[0, 5], [9, 1], [4, 5]]
    assert held[0][1].tolist() == [100, 101, 2105, 2106, 2107]


def test_repair_takes_half_of_a_class_at_most_and_then_looks_again() -> None:
    # Client 0 lacks 6 of 7: client 1 gives 4 of its 8 and no more at once, so that then client 2
    # has most of class 0 with 5, and gives the 2 that are missing.
    held = hold([1, 0], [8, 6], [5, 9])
    repair(held, 7)
    assert counted(held) == [[7, 0], [4, 6], [3, 9]]


@pytest.mark.parametrize("kind", ["dirichlet", "shards"])
def test_which_samples_of_a_class_a_client_gets_is_drawn(kind: str) -> None:
    """Publishers put what belongs together side by side: nobody gets a run of neighbours."""
    labels = np.zeros(300, np.int64)
    settings = {"classes_per_client": 1, "dirichlet_alpha": 5.0}
    for mine in partition(labels, 3, np.random.default_rng(0), kind=kind, **settings):  # type: ignore[arg-type]  # one int, one float
        assert (np.diff(mine) > 1).sum() > 20


def test_no_sample_at_all_is_refused() -> None:
    with pytest.raises(UserError, match="labels holds no sample"):
        partition(np.zeros(0, np.int64), 3, np.random.default_rng(0), min_samples=0)


def test_repair_leaves_a_giver_its_own_minimum() -> None:
    # Client 1 holds most of class 0 but can spare 1 alone; client 2 gives the rest.
    held = hold([3, 0], [6, 0], [4, 6])
    repair(held, 5)
    assert counted(held) == [[5, 0], [5, 0], [3, 6]]


def test_repair_takes_any_class_only_where_nobody_can_spare_one_that_is_held() -> None:
    # Nobody else has class 0; then the most that anybody has of anything is the 9 of client 2.
    held = hold([2, 0, 0], [0, 6, 0], [0, 2, 9])
    repair(held, 4)
    assert counted(held) == [[2, 0, 2], [0, 6, 0], [0, 2, 7]]
    # A client that holds nothing at all is given most of the commonest class first.
    held = hold([0, 0], [4, 10])
    repair(held, 3)
    assert counted(held) == [[0, 3], [4, 7]]


def test_repair_settles_ties_by_the_earlier_client_and_class() -> None:
    held = hold([0, 0], [6, 6], [6, 6])
    repair(held, 2)
    assert counted(held) == [[2, 0], [4, 6], [6, 6]]


def test_repair_changes_nothing_where_everybody_has_enough() -> None:
    held = hold([3, 2], [0, 5])
    repair(held, 5)
    assert counted(held) == [[3, 2], [0, 5]]


# The validation split.


@st.composite
def holdings(draw: st.DrawFn) -> Indices:
    """Labels of one client, some classes absent, some held once."""
    counts = draw(st.lists(st.integers(0, 12), min_size=1, max_size=12))
    labels = np.repeat(np.arange(len(counts)), counts)
    if len(labels) < 3:
        labels = np.zeros(3, np.int64)
    return rng(draw(st.integers(0, 99))).permutation(labels)


FRACTIONS = st.floats(1e-9, 1, exclude_max=True)


@given(holdings(), FRACTIONS, st.integers(0, 99))
def test_a_split_covers_everything_once_and_leaves_two_to_train_on(
    labels: Indices, fraction: float, seed: int
) -> None:
    train, validation = validation_split(labels, rng(seed), fraction)
    assert sorted([*train, *validation]) == list(range(len(labels)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(validation) > 0).all()
    n = len(labels)
    assert len(validation) == min(max(1, round(fraction * n)), n - 2)


@given(holdings(), FRACTIONS, st.integers(0, 99))
def test_every_class_stays_in_training_wherever_that_is_possible(
    labels: Indices, fraction: float, seed: int
) -> None:
    train, validation = validation_split(labels, rng(seed), fraction)
    if len(validation) <= len(labels) - len(np.unique(labels)):
        assert set(labels[train]) == set(labels)


@given(holdings(), FRACTIONS, st.integers(0, 99))
def test_a_split_takes_each_class_by_its_share_unless_that_is_all_there_is(
    labels: Indices, fraction: float, seed: int
) -> None:
    _, validation = validation_split(labels, rng(seed), fraction)
    counts = np.bincount(labels)
    share = np.floor(counts * len(validation) / len(labels) - 1e-9)
    taken = np.bincount(labels[validation], minlength=len(counts))
    assert (taken >= np.minimum(share, counts - 1)).all()


def test_a_split_by_hand() -> None:
    # 20 samples, 4 of them for validation: of classes with 10, 6, 3 and 1 the shares are 2, 1.2,
    # .6 and .2: the last place goes to the remainder .6.
    labels = np.repeat([0, 1, 2, 3], [10, 6, 3, 1])
    train, validation = validation_split(labels, rng(), 0.2)
    assert np.bincount(labels[validation], minlength=4).tolist() == [2, 1, 1, 0]
    assert np.bincount(labels[train]).tolist() == [8, 5, 2, 1]


def test_the_only_sample_of_a_class_is_not_taken_from_training() -> None:
    # The shares are .4 each, so the first place would go to class 0; but nobody trains on it then.
    labels = np.array([0, 1, 1, 2, 2])
    for seed in range(10):
        _, validation = validation_split(labels, rng(seed), 0.4)
        assert sorted(labels[validation].tolist()) == [1, 2]


def test_where_every_class_is_held_once_one_is_taken_all_the_same() -> None:
    train, validation = validation_split(np.arange(5), rng(), 0.1)
    assert (len(train), len(validation)) == (4, 1)


def test_which_samples_are_split_off_is_drawn() -> None:
    labels = np.zeros(50, np.int64)
    chosen = {tuple(validation_split(labels, rng(seed), 0.1)[1]) for seed in range(10)}
    assert len(chosen) == 10


@pytest.mark.parametrize(
    ("samples", "fraction", "message"),
    [
        (2, 0.1, "needs at least 3 samples to set one aside, got 2"),
        (10, 0.0, "val_fraction must lie between 0 and 1, got 0"),
        (10, 1.0, "val_fraction must lie between 0 and 1, got 1"),
        (10, np.nan, "val_fraction must lie between 0 and 1, got nan"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(
    samples: int, fraction: float, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        validation_split(np.zeros(samples, np.int64), rng(), fraction)


# Stratified draws.


@given(holdings(), st.integers(0, 200), st.integers(0, 99))
def test_a_stratified_draw_keeps_each_class_within_one_of_its_share(
    labels: Indices, size: int, seed: int
) -> None:
    chosen = stratified(labels, size, rng(seed))
    size = min(size, len(labels))
    assert len(chosen) == size
    assert (np.diff(chosen) > 0).all()
    ideal = np.bincount(labels) * size / len(labels)
    taken = np.bincount(labels[chosen], minlength=len(ideal))
    assert (np.abs(taken - ideal) < 1 + 1e-9).all()


def test_a_stratified_draw_by_hand() -> None:
    labels = np.repeat([0, 1, 2], [50, 30, 20])
    chosen = stratified(labels, 10, rng())
    assert np.bincount(labels[chosen]).tolist() == [5, 3, 2]
    assert stratified(labels, 100, rng()).tolist() == list(range(100))
    assert stratified(labels, 101, rng()).tolist() == list(range(100))
    assert chosen.tolist() != stratified(labels, 10, rng(1)).tolist()


@pytest.mark.parametrize(
    ("counts", "size", "keep", "taken"),
    [
        ([6, 3, 1], 5, 0, [3, 2, 0]),  # 3, 1.5, .5: a tie goes to the earlier class
        ([6, 3, 1], 10, 0, [6, 3, 1]),
        ([6, 3, 1], 0, 0, [0, 0, 0]),
        ([6, 3, 1], 7, 1, [5, 2, 0]),  # 4.2, 2.1, .7, but the last of a class stays
        ([1, 1, 8], 2, 1, [0, 0, 2]),
        ([0, 4, 0], 3, 0, [0, 3, 0]),
        ([49, 49, 49], 3, 0, [1, 1, 1]),  # 49 * (3 / 147) is a little less than one
    ],
)
def test_allocate_by_hand(counts: list[int], size: int, keep: int, taken: list[int]) -> None:
    assert allocate(np.array(counts), size, keep).tolist() == taken


# The digest.


def test_the_digest_is_of_who_holds_what() -> None:
    parts = [np.array([1, 2]), np.array([0, 3])]
    assert digest(parts) == digest([part.astype(np.int32) for part in parts])
    others: list[Callable[[], list[Indices]]] = [
        lambda: parts[::-1],
        lambda: [np.array([1, 2, 0]), np.array([3])],
        lambda: [*parts, np.array([], np.int64)],
        lambda: [np.array([1, 2]), np.array([0, 4])],
    ]
    assert len({digest(other()) for other in others} | {digest(parts)}) == 5

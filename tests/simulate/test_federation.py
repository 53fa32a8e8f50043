"""A federation as its configuration describes it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calmfed.config import Config
from calmfed.data import Dataset, from_arrays
from calmfed.data.views import Normalisation
from calmfed.errors import UserError
from calmfed.simulate.federation import Arrays, Federation, assemble, client_name, shrunk
from calmfed.snapshot import state_of


def pictures(n: int, side: int = 8, seed: int = 0, classes: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, side, side + 1), np.uint8), np.arange(n) % classes


def data(train: int = 300, side: int = 8) -> Dataset:
    return from_arrays(*pictures(train, side), *pictures(90, side, 1), name="noise")


CONFIG = Config(data="noise", clients=12, active=4, width=0.05, eval_samples=30)


def federation(dataset: Dataset | None = None, **settings: Any) -> Federation:
    return assemble(replace(CONFIG, **settings), dataset or data())


# Shrinking.


def test_shrinking_by_hand_takes_the_means_of_squares() -> None:
    image = np.array([[0, 2, 10, 20], [4, 6, 30, 40], [1, 1, 255, 255], [1, 2, 255, 255]], np.uint8)
    found = shrunk(image[None, None], 2)
    assert found.dtype == np.float32
    assert found.tolist() == [[[[3, 25], [1.25, 255]]]]


def test_a_row_or_column_that_fills_no_square_is_left_out() -> None:
    image = np.arange(2 * 1 * 32 * 101, dtype=np.float32).reshape(2, 1, 32, 101)
    found = shrunk(image, 2)
    assert found.shape == (2, 1, 16, 50)
    corner = image[1, 0, 30:32, 98:100]  # the 101st column is not part of any
    assert found[1, 0, 15, 49] == corner.mean()


def test_channels_and_samples_are_shrunk_by_themselves() -> None:
    image = np.zeros((2, 3, 6, 6), np.uint8)
    image[1, 2] = 9
    found = shrunk(image, 3)
    assert found.shape == (2, 3, 2, 2)
    assert (found[1, 2] == 9).all()
    assert found.sum() == 4 * 9


def test_shrinking_by_one_leaves_the_samples_as_they_are() -> None:
    image = np.ones((1, 1, 8, 8), np.uint8)
    assert shrunk(image, 1) is image


def test_a_federation_shrinks_training_and_test_samples_alike() -> None:
    whole = data(side=17)
    arrays = federation(whole, shrink=2).arrays
    assert np.array_equal(arrays.train_x, shrunk(whole.train_x, 2))
    assert np.array_equal(arrays.test_x, shrunk(whole.test_x, 2))
    assert arrays.train_x.shape[1:] == (1, 8, 9)


@pytest.mark.parametrize(
    ("side", "shrink", "message"),
    [
        (7, 1, "noise: samples of 7x8 with shrink=1 are 7x8, but models need at least 8x8"),
        (15, 2, "noise: samples of 15x16 with shrink=2 are 7x8, but models need at least 8x8"),
    ],
)
def test_samples_that_are_too_small_are_refused(side: int, shrink: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        federation(data(side=side), shrink=shrink)


# Who is there.


@given(st.integers(1, 1200))
def test_names_sort_as_numbers_do(clients: int) -> None:
    names = [client_name(i, clients) for i in range(clients)]
    assert names == sorted(names)
    assert len(set(names)) == clients
    assert [int(name[1:]) for name in names] == list(range(clients))


def test_names_by_hand() -> None:
    assert client_name(0, 1) == "c0"
    assert client_name(9, 10) == "c9"
    assert client_name(9, 11) == "c09"
    assert client_name(7, 1000) == "c007"


def test_models_are_given_out_in_turn_with_the_channels_and_classes_of_the_data() -> None:
    specs = federation(clients=5).members.specs
    assert [spec.name for spec in specs.values()] == [
        "resnet18",
        "resnet18_half",
        "cnn6",
        "resnet18",
        "resnet18_half",
    ]
    assert {(s.channels, s.classes, s.width) for s in specs.values()} == {(1, 3, 0.05)}


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(UserError, match="unknown model 'cnn7': did you mean 'cnn6'"):
        federation(models=("cnn7",))


def test_active_clients_are_drawn_anew_each_round_sorted_and_the_same_for_all_methods() -> None:
    one, other = federation(method="calm"), federation(method="visit")
    rounds = [one.active(number) for number in range(1, 40)]
    assert [other.active(number) for number in range(1, 40)] == rounds
    for active in rounds:
        assert len(set(active)) == 4
        assert list(active) == sorted(active)
    assert {name for active in rounds for name in active} == set(one.members.names)
    assert len(set(rounds)) > 30
    elsewhere = federation(seed=1)
    assert [elsewhere.active(number) for number in range(1, 40)] != rounds


def test_initial_models_are_drawn_for_each_client_and_the_same_again() -> None:
    first, again = federation(models=("cnn6",)), federation(models=("cnn6",), method="local")
    states = [state_of(built.initial_model("c00")) for built in (first, again)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    other = state_of(first.initial_model("c01"))
    assert not torch.equal(states[0]["head.weight"], other["head.weight"])


# Who holds what.


def test_training_and_validation_parts_are_all_samples_each_once() -> None:
    members = federation().members
    parts = [*members.training.values(), *members.validation.values()]
    assert sorted(np.concatenate(parts).tolist()) == list(range(300))
    for name in members.names:
        held = len(members.training[name]) + len(members.validation[name])
        assert held >= 10
        assert len(members.validation[name]) == max(1, round(0.1 * held))


def test_the_same_configuration_has_the_same_partition_whatever_the_method() -> None:
    digest = federation().partition_digest()
    assert federation().partition_digest() == digest
    assert federation(method="visit", lr=1.0, rounds=2).partition_digest() == digest
    assert federation(seed=1).partition_digest() != digest
    assert federation(dirichlet_alpha=0.5).partition_digest() != digest
    assert federation(val_fraction=0.2).partition_digest() != digest


def test_the_evaluation_part_is_stratified_and_the_same_whatever_the_seed() -> None:
    parts = [federation(seed=seed).members.evaluation for seed in (0, 1, 2)]
    assert np.array_equal(parts[0], parts[1])
    assert np.array_equal(parts[0], parts[2])
    assert np.bincount(data().test_y[parts[0]]).tolist() == [10, 10, 10]
    assert len(federation(eval_samples=1000).members.evaluation) == 90


def test_fewer_training_samples_are_drawn_stratified_by_the_seed() -> None:
    arrays = [federation(train_samples=150, seed=seed).arrays for seed in (0, 0, 1)]
    assert np.bincount(arrays[0].train_y).tolist() == [50, 50, 50]
    assert np.array_equal(arrays[0].train_x, arrays[1].train_x)
    assert not np.array_equal(arrays[0].train_x, arrays[2].train_x)
    assert len(arrays[0].test_y) == 90


def test_too_few_samples_for_so_many_clients_are_refused() -> None:
    with pytest.raises(UserError, match=r"12 clients with at least 10 .* 120 .* there are 119"):
        federation(train_samples=119)


def test_all_clients_share_the_normalisation_of_the_training_samples() -> None:
    built = federation()
    normalisation = Normalisation.of(built.arrays.train_x)
    assert built.members.normalisation == normalisation
    for name in ("c00", "c07"):
        training, held = built.samples(name), built.members.training[name]
        assert torch.equal(training.x, normalisation(built.arrays.train_x[held]))
        assert training.y.tolist() == built.arrays.train_y[held].tolist()
        assert training.classes == 3
        validation = built.clients[name].validation
        assert (
            validation.y.tolist() == built.arrays.train_y[built.members.validation[name]].tolist()
        )


def test_a_client_knows_the_label_frequencies_of_its_training_samples() -> None:
    built = federation(adopt_tolerance=0.2)
    assert list(built.clients) == list(built.members.names)
    for name, client in built.clients.items():
        assert torch.equal(client.log_frequencies, built.samples(name).log_frequencies())
        assert client.spec == built.members.specs[name]
        assert client.tolerance == 0.2


def test_samples_are_the_same_when_other_processes_map_them(tmp_path: Path) -> None:
    arrays = federation().arrays
    arrays.save(tmp_path)
    mapped = Arrays.mapped(tmp_path)
    assert isinstance(mapped.train_x, np.memmap)
    assert mapped.digest() == arrays.digest()


def test_the_digest_is_of_every_sample_and_label() -> None:
    arrays = federation().arrays
    others = []
    for name in ("train_x", "train_y", "test_x", "test_y"):
        changed = getattr(arrays, name).copy()
        changed.flat[-1] ^= 1
        others.append(replace(arrays, **{name: changed}).digest())
    assert len({arrays.digest(), *others}) == 5

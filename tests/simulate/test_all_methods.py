"""Every method, whole: it learns, repeats, resumes, and worker processes change no number."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn

import calmfed
from calmfed.config import parse
from calmfed.data import Dataset, from_arrays
from calmfed.errors import UserError
from calmfed.methods import methods
from calmfed.simulate.federation import assemble
from small import SETTINGS, blobs

SMALL = {
    "feddf": "feddf,steps=3,server_batch=16",
    "fedgd": "fedgd,samples=30,steps=2,generator_batch=16",
    "fedproto": "fedproto,feature_size=16",
}
ONE_MODEL = ("fedavg", "fedprox")
BUILT_IN = [n for n, m in methods().items() if m.__module__.startswith("calmfed.")]
each_method = pytest.mark.parametrize("name", BUILT_IN)


@pytest.fixture(scope="module")
def data() -> Dataset:
    """The blobs, with forty public ones."""
    return from_arrays(*blobs(150, 0), *blobs(45, 1), public_x=blobs(40, 2)[0], name="blobs")


def settings(name: str, **changes: Any) -> dict[str, Any]:
    one = {"models": ("cnn6",)} if name in ONE_MODEL else {}
    return {**SETTINGS, **one, "method": SMALL.get(name, name), **changes}


def without_times(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != "times"}


class Stop(KeyboardInterrupt):
    """Somebody presses Ctrl-C."""


@each_method
def test_stopped_in_any_round_and_in_worker_processes_it_is_the_same(
    name: str, data: Dataset, tmp_path: Path
) -> None:
    """What a method remembers is as safe as the clients' models."""
    whole = calmfed.run(dataset=data, directory=tmp_path / "whole", **settings(name))
    told = []

    def stop(done: int, total: int, note: str) -> None:
        """In the second round, and after a start from the first one in the third."""
        told.append(done)
        if len(told) in (6, 12):
            raise Stop

    processes = 2 if name in ("fedmd", "fedproto", "fedgd") else 1  # handouts go to workers too
    for workers in (1, 1, processes):
        try:
            result = calmfed.run(
                dataset=data,
                directory=tmp_path / "stopped",
                on_progress=stop,
                workers=workers,
                **settings(name),
            )
        except calmfed.errors.Interrupted:
            continue
    assert [told[0], told[6], told[12]] == [0, 3, 6]  # where each start found the run
    assert without_times(result.told) == without_times(whole.told)
    events = [(tmp_path / kept / "events.jsonl").read_bytes() for kept in ("whole", "stopped")]
    assert events[0] == events[1]


@each_method
def test_it_learns(name: str) -> None:
    """Above chance on the digits, which is 10 %: a method that is wired wrongly is not."""
    few = {
        "clients": 4, "active": 3, "rounds": 4, "epochs": 3, "width": 0.125, "batch": 16,
        "models": ("cnn6", "resnet18_half"), "eval_samples": 20, "partition": "iid", "public": True,
        "train_samples": 400, "lr": 0.02,
    }  # fmt: skip
    one = {"models": ("cnn6",)} if name in ONE_MODEL else {}
    method = {"feddf": "feddf,steps=20,server_batch=32"}.get(name, SMALL.get(name, name))
    result = calmfed.run(parse({**few, **one, "data": "digits", "method": method}))
    assert result.last > 0.3
    for extra in result.told["also"].values():
        assert extra["accuracy"] > 0.3


def test_servers_peaks_and_prototypes_are_measured_beside_last_and_best(data: Dataset) -> None:
    told = {
        name: calmfed.run(dataset=data, **settings(name)).told["also"]
        for name in ("local", "fedavg", "feddf", "fedproto", "dfml")
    }
    assert {name: list(also) for name, also in told.items()} == {
        "local": [], "fedavg": ["server"], "feddf": ["server"], "fedproto": ["prototypes"],
        "dfml": ["peak"],
    }  # fmt: skip
    everybody = told["fedavg"]["server"]["clients"].values()
    assert len({client["accuracy"] for client in everybody}) == 1  # all have the one model


class TestPublicSamples:
    def test_only_who_reads_them_sets_them_aside(self, data: Dataset) -> None:
        assert not parse({"method": "local"}).wants_public()
        assert parse({"method": "fedmd"}).wants_public()
        assert parse({"method": "local", "public": True}).wants_public()
        with pytest.raises(UserError, match="'fedmd' reads public samples, but public is false"):
            assemble(parse({"method": "fedmd", "public": False}), data)

    def test_methods_of_a_study_that_sets_them_aside_share_a_partition(self) -> None:
        from calmfed import data

        held = data.load("digits", public=True)
        few = {"clients": 4, "active": 2, "public": True}
        a, b = (assemble(parse({**few, "method": m}), held) for m in ("local", "fedmd"))
        assert a.partition_digest() == b.partition_digest()
        assert len(a.public) == 300
        assert len(a.arrays.train_y) == 1397 - 300

    @pytest.mark.parametrize("part", ["train", "test"])
    def test_one_that_is_also_elsewhere_is_refused(self, part: str, data: Dataset) -> None:
        public = np.array(data.public_x)
        public[17] = data.part(part)[0][5]
        mixed = from_arrays(*blobs(150, 0), *blobs(45, 1), public_x=public[:, 0], name="mixed")
        with pytest.raises(UserError, match=f"public sample 17 is also sample 5 of the {part} set"):
            calmfed.run(dataset=mixed, **settings("fedmd"))

    def test_none_at_all_is_told(self) -> None:
        bare = from_arrays(*blobs(150, 0), *blobs(45, 1), name="bare")
        with pytest.raises(UserError, match="bare has no public samples"):
            calmfed.run(dataset=bare, **settings("fedmd"))


def test_one_architecture_is_asked_for_where_it_is_needed() -> None:
    with pytest.raises(UserError, match="needs one architecture for all clients, but models names"):
        parse({"method": "fedavg"})


class Aside(nn.Module):
    """Its last linear layer does not make its logits."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(64 * channels, classes)
        self.unused = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(x.flatten(1))
        return logits


def test_a_model_whose_last_linear_layer_is_not_its_classifier_has_no_prototypes(
    data: Dataset,
) -> None:
    calmfed.register_model("aside")(lambda channels, classes, width: Aside(channels, classes))
    with pytest.raises(UserError, match=r"model 'aside' cannot .*last linear layer"):
        calmfed.run(dataset=data, **settings("fedproto", models=("aside",)))
    assert calmfed.run(dataset=data, **settings("local", models=("aside",))).last > 0


def test_every_active_client_is_a_step(data: Dataset) -> None:
    """Also where they all train together in one place."""
    steps = []
    calmfed.run(dataset=data, on_progress=lambda d, t, n: steps.append(d), **settings("dfml"))
    assert set(range(10)) <= set(steps)


def test_a_model_without_a_linear_layer_has_no_prototypes(data: Dataset) -> None:
    calmfed.register_model("all_conv")(
        lambda channels, classes, width: nn.Sequential(
            nn.Conv2d(channels, classes, 8), nn.Flatten()
        )
    )
    with pytest.raises(UserError, match="without a linear layer"):
        calmfed.run(dataset=data, **settings("fedproto", models=("all_conv",)))

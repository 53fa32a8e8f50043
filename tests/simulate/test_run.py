"""A run from its settings to its result: what it promises about repeating and resuming."""

import json
import multiprocessing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import calmfed
from calmfed.config import parse
from calmfed.data import Dataset, from_arrays
from calmfed.errors import DataError, Interrupted, UserError
from calmfed.methods import Merge, Method, Plan, Round
from calmfed.simulate import Result, load_run
from calmfed.simulate.federation import assemble
from calmfed.workshop import predict
from small import SETTINGS, blobs, linear_model


def without_times(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != "times"}


def run(folder: Path, dataset: Dataset, settings: dict[str, Any], **how: Any) -> Result:
    return calmfed.run(dataset=dataset, directory=folder, **how, **settings)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, dataset: Dataset) -> Path:
    """A finished run, for tests that only read."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(folder, dataset, SETTINGS)
    return folder


METHODS = ["local", "calm", "visit:uniform", "hard,ce=prior", "calm,augment=crop_flip"]


@pytest.mark.parametrize("method", METHODS)
def test_same_settings_give_the_same_result(
    method: str, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    settings["method"] = method
    first = run(tmp_path / "a", dataset, settings)
    second = run(tmp_path / "b", dataset, settings)
    assert without_times(first.told) == without_times(second.told)
    for name in ("events.jsonl", "partition.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_another_seed_gives_another_result(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    first = run(tmp_path / "a", dataset, settings)
    second = run(tmp_path / "b", dataset, {**settings, "seed": 1})
    assert first.told["last"] != second.told["last"]


def test_worker_processes_change_no_number(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    settings["method"] = "visit:calm"
    alone = run(tmp_path / "a", dataset, settings)
    workers = run(tmp_path / "b", dataset, settings, workers=2)
    assert without_times(alone.told) == without_times(workers.told)
    trusts = [dict(np.load(tmp_path / d / "trust.npz")) for d in "ab"]
    assert all(np.array_equal(trusts[0][key], trusts[1][key]) for key in trusts[0])


@pytest.mark.parametrize("method", ["calm", "visit"])
@pytest.mark.parametrize("stop_at", [1, 4, 5, 9, 12])
def test_stopped_and_resumed_gives_the_same_result(
    method: str, stop_at: int, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    """Stopped in the middle of a round, between two, and in the final measurement."""
    settings["method"] = method

    def stop(done: int, total: int, note: str) -> None:
        if done == stop_at:
            raise KeyboardInterrupt

    whole = run(tmp_path / "whole", dataset, settings)
    with pytest.raises(Interrupted, match="goes on where it was"):
        run(tmp_path / "stopped", dataset, settings, on_progress=stop)
    assert not (tmp_path / "stopped" / "result.json").exists()
    resumed = run(tmp_path / "stopped", dataset, settings)
    assert without_times(resumed.told) == without_times(whole.told)
    names = ("events.jsonl", "trust.npz") if method == "calm" else ("events.jsonl",)
    for name in names:
        ours, theirs = (tmp_path / d / name for d in ("stopped", "whole"))
        assert ours.read_bytes() == theirs.read_bytes()


def test_a_finished_run_is_read_not_run_again(finished: Path, dataset: Dataset) -> None:
    def never(done: int, total: int, note: str) -> None:
        raise AssertionError("it was run again")

    again = run(finished, dataset, SETTINGS, on_progress=never)
    assert again.told == Result.read(finished).told


def test_progress_counts_up_to_its_total(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    steps: list[tuple[int, int]] = []
    run(tmp_path, dataset, settings, on_progress=lambda done, total, _: steps.append((done, total)))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    # 3 rounds of 3 lessons, then at most one prediction for each checkpoint of 4 clients
    assert steps[0] == (0, 17)
    assert steps[-1] == (17, 17)


def test_the_result_is_what_the_saved_models_do(finished: Path, dataset: Dataset) -> None:
    """Global accuracy is the unweighted mean over clients of their checkpoint on the test set."""
    opened = load_run(finished)
    federation = assemble(opened.config, dataset)
    x = federation.members.normalisation(dataset.test_x)
    y = torch.from_numpy(dataset.test_y)
    for which in ("last", "best"):
        told = opened.result.told[which]
        accuracies, probabilities = [], []
        for index, name in enumerate(federation.members.names):
            logits = predict(getattr(opened.client(index), which), x, 16)
            accuracies.append((logits.argmax(1) == y).double().mean().item())
            probabilities.append(logits.softmax(1))
            assert told["clients"][name]["accuracy"] == pytest.approx(accuracies[-1])
        ensemble = torch.stack(probabilities).mean(0).argmax(1)
        assert told["accuracy"] == pytest.approx(np.mean(accuracies))
        assert told["ensemble"] == pytest.approx((ensemble == y).double().mean().item())


def test_counters_by_hand(finished: Path) -> None:
    """Three rounds of three lessons, one epoch, judged by the two others."""
    told = Result.read(finished).told
    counters = told["counters"]
    assert counters["lessons"] == 9
    assert counters["teacher_passes"] == 2 * counters["samples_studied"]
    partition = json.loads((finished / "partition.json").read_text())
    federation_size = {n: len(c["training"]) for n, c in partition["clients"].items()}
    events = load_run(finished).events()
    active = [e.client for e in events if e.metric == "val_accuracy"]
    assert len(active) == 9
    assert counters["samples_studied"] == sum(federation_size[name] for name in active)
    assert counters["refusals"] == 0


def test_trust_is_kept_sample_by_sample_for_the_final_round(finished: Path) -> None:
    with np.load(finished / "trust.npz", allow_pickle=False) as saved:
        trust = dict(saved)
    events = load_run(finished).events()
    told = {e.client: e.value for e in events if e.metric == "trust" and e.round == 3}
    names = list(json.loads((finished / "partition.json").read_text())["clients"])
    assert {names[i] for i in np.unique(trust["client"])} == set(told)
    for name, mean in told.items():
        mine = trust["client"] == names.index(name)
        assert trust["trust"][mine].mean() == pytest.approx(mean, abs=1e-6)
    np.testing.assert_allclose(trust["trust"], trust["lambda_dis"] * trust["g"], atol=1e-6)
    np.testing.assert_allclose(trust["g"], np.sqrt(trust["mass"]), atol=1e-6)  # eta = 1/2


def test_local_keeps_no_trust(tmp_path: Path, dataset: Dataset, settings: dict[str, Any]) -> None:
    run(tmp_path, dataset, {**settings, "method": "local"})
    assert not (tmp_path / "trust.npz").exists()


def test_the_best_checkpoint_is_the_best_on_the_validation_split(finished: Path) -> None:
    opened = load_run(finished)
    told = opened.result.told
    scores: dict[str, dict[int, tuple[float, float]]] = {}
    values = {(e.client, e.round, e.metric): e.value for e in opened.events()}
    for (name, round_, metric), value in values.items():
        if metric == "val_accuracy":
            loss = values[name, round_, "val_loss"]
            scores.setdefault(name, {})[round_] = (value, -loss)
    for name, by_round in scores.items():
        best = told["best_round"][name]
        if best:
            assert by_round[best] == max(by_round.values())


def test_a_tolerance_of_zero_refuses_visits_that_cost_anything(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    settings |= {"method": "visit", "rounds": 4}
    strict = run(tmp_path / "a", dataset, {**settings, "adopt_tolerance": 0.0})
    lenient = run(tmp_path / "b", dataset, {**settings, "adopt_tolerance": 1.0})
    assert lenient.told["counters"]["refusals"] == 0
    events = load_run(tmp_path / "a").events()
    drops = [e.value for e in events if e.metric == "drop"]
    assert strict.told["counters"]["refusals"] == sum(drop > 0 for drop in drops) > 0


def test_one_s_own_model_and_arrays_without_a_directory(settings: dict[str, Any]) -> None:
    @calmfed.register_model("own_linear")
    def linear(channels: int, classes: int, width: float) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(channels * 64, classes))

    own = from_arrays(*blobs(150, 0), *blobs(45, 1))
    settings |= {"models": ("own_linear",), "method": "uniform", "rounds": 6}
    result = calmfed.run(dataset=own, **settings)
    assert result.directory is None
    assert result.last > 0.7  # chance is a third
    assert set(result.told["last"]["per_architecture"]) == {"own_linear"}
    with pytest.raises(UserError, match="define it at the top of a module, or run with workers=1"):
        calmfed.run(dataset=own, workers=2, **settings)


def test_a_result_is_the_same_object_with_and_without_a_directory(
    finished: Path, dataset: Dataset
) -> None:
    kept, bare = Result.read(finished), calmfed.run(dataset=dataset, **SETTINGS)
    assert without_times(kept.told) == without_times(bare.told)


def test_a_config_for_one_s_own_samples_records_their_name(dataset: Dataset) -> None:
    config = parse({**SETTINGS, "rounds": 1})
    assert calmfed.run(config, dataset=dataset).told["config"]["data"] == "blobs"


class Awkward(torch.nn.Module):
    """Something that cannot take part, in one of several ways."""

    def __init__(self, fault: str, classes: int) -> None:
        super().__init__()
        self.fault = fault
        size = classes + 1 if fault == "more" else classes
        self.head = torch.nn.Linear(64, size) if fault != "bare" else torch.nn.Flatten()

    def forward(self, x: torch.Tensor) -> Any:
        if self.fault == "late" and not hasattr(self, "layer"):
            self.layer = torch.nn.Linear(64, 64)
        if self.fault == "breaks":
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
        logits = self.head(x.flatten(1))
        if self.fault == "training" and self.training:
            logits = logits.detach()
        answers = {
            "nan": logits * float("nan"),
            "tuple": (logits, logits),
            "row": logits.mean(0),
            "whole": logits.long(),
        }
        return answers.get(self.fault, logits)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("more", r"two samples should give logits \[2, 3\], but give \[2, 4\]"),
        ("row", r"two samples should give logits \[2, 3\], but give \[3\]"),
        ("tuple", "answers with tuple, not with logits"),
        ("whole", "not with logits"),
        ("bare", "has no parameter to learn"),
        ("late", "makes layers only when it is used"),
        ("breaks", "mat1 and mat2 shapes cannot be multiplied"),
        ("nan", "new, it already answers with NaN or infinity"),
        ("training", "does not require grad"),
        ("module", "built as int, not a torch.nn.Module"),
    ],
)
def test_a_model_that_cannot_take_part_is_named_before_anything_is_written(
    fault: str, message: str, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    @calmfed.register_model(f"awkward_{fault}")
    def factory(channels: int, classes: int, width: float) -> Any:
        return 5 if fault == "module" else Awkward(fault, classes)

    settings["models"] = (f"awkward_{fault}",)
    with pytest.raises(UserError, match=f"model 'awkward_{fault}' cannot take part.*{message}"):
        run(tmp_path / "run", dataset, settings)
    assert not (tmp_path / "run").exists()


class Deep(torch.nn.Module):
    """Convolutions over a third axis, and half precision at the end."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(1, 2, (1, 3, 3))
        self.head = torch.nn.Linear(72, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.conv(x[:, :, None]).flatten(1))
        return out.bfloat16() if not self.training else out


def test_unusual_layers_and_precisions_are_welcome(
    dataset: Dataset, settings: dict[str, Any]
) -> None:
    calmfed.register_model("deep")(lambda channels, classes, width: Deep(classes))
    settings |= {"models": ("deep",), "method": "visit:calm"}
    assert calmfed.run(dataset=dataset, **settings).last > 0


@pytest.mark.parametrize("flaw", ["stranger", "unlike"])
def test_a_plan_that_cannot_be_carried_out_is_refused(
    flaw: str, dataset: Dataset, settings: dict[str, Any]
) -> None:
    @calmfed.register_method(f"flawed_{flaw}")
    @dataclass(frozen=True)
    class Flawed(Method):
        def plan(self, round_: Round) -> Plan:
            if flaw == "stranger":
                return Plan((round_.lesson(round_.active[0], "nobody"),))
            return Plan((), (Merge(round_.active[0], round_.active),))

    settings |= {"method": f"flawed_{flaw}", "active": 4}
    expected = {"stranger": "'nobody', who is not active", "unlike": "several architectures"}
    with pytest.raises(ValueError, match=expected[flaw]):
        calmfed.run(dataset=dataset, **settings)


def test_one_s_own_model_in_worker_processes(dataset: Dataset, settings: dict[str, Any]) -> None:
    calmfed.register_model("small_linear")(linear_model)
    settings["models"] = ("small_linear",)
    alone = calmfed.run(dataset=dataset, **settings)
    workers = calmfed.run(dataset=dataset, workers=2, **settings)
    assert without_times(alone.told) == without_times(workers.told)


class TestRefusals:
    """What cannot be gone on with is refused in one sentence, and nothing is changed."""

    def test_another_configuration(self, finished: Path, dataset: Dataset) -> None:
        with pytest.raises(UserError, match=r"another run: there epochs is 1, here 2"):
            run(finished, dataset, {**SETTINGS, "epochs": 2})

    def test_a_folder_of_something_else(
        self, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
    ) -> None:
        (tmp_path / "thesis.tex").write_text("important")
        with pytest.raises(UserError, match="holds no run"):
            run(tmp_path, dataset, settings)
        assert len(list(tmp_path.iterdir())) == 1
        assert (tmp_path / "thesis.tex").read_text() == "important"

    def test_a_wrong_method_leaves_no_folder(
        self, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
    ) -> None:
        with pytest.raises(UserError, match="did you mean 'calm'"):
            run(tmp_path / "new", dataset, {**settings, "method": "clam"})
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize(
        ("victim", "damage", "message"),
        [
            ("checkpoint/manifest.json", "cut", "manifest.json is damaged"),
            ("checkpoint/*.safetensors", "flip", "is damaged: its hash is wrong"),
            ("checkpoint/*.safetensors", "remove", "cannot be read"),
            ("events.jsonl", "cut", "shorter than the checkpoint says"),
            ("config.json", "cut", "config.json is damaged"),
            ("partition.json", "cut", "partition.json is damaged"),
            *(
                (name, content, f"{name} is damaged")
                for name in ("config.json", "partition.json", "checkpoint/manifest.json")
                for content in ("[]", "5", "null", "\udcff", '{"config": 5, "clients": []}', "{}")
            ),
            ("checkpoint/manifest.json", '"round": 99', "damaged: it is of another federation"),
        ],
    )
    def test_damage(
        self,
        victim: str,
        damage: str,
        message: str,
        tmp_path: Path,
        dataset: Dataset,
        settings: dict[str, Any],
    ) -> None:
        run(tmp_path, dataset, {**settings, "rounds": 1})
        (tmp_path / "result.json").unlink()
        path = sorted(tmp_path.glob(victim))[0]
        data = bytearray(path.read_bytes())
        if damage == "remove":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(data[: len(data) // 2])
        elif damage == "flip":
            data[-1] ^= 1
            path.write_bytes(data)
        elif damage.startswith('"round"'):
            path.write_bytes(data.replace(b'"round": 1', damage.encode()))
        else:
            path.write_bytes(damage.encode(errors="surrogateescape"))
        with pytest.raises(DataError, match=message) as caught:
            run(tmp_path, dataset, {**settings, "rounds": 1})
        assert path.name in str(caught.value) or "another federation" in message

    @pytest.mark.parametrize("content", ["[]", "{}", "5", '{"config": {}}', "\udcff"])
    def test_a_damaged_result_is_never_given_out(
        self, content: str, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
    ) -> None:
        run(tmp_path, dataset, {**settings, "rounds": 1})
        (tmp_path / "result.json").write_bytes(content.encode(errors="surrogateescape"))
        with pytest.raises(DataError, match="delete it, and the same command makes it anew"):
            run(tmp_path, dataset, {**settings, "rounds": 1})
        (tmp_path / "result.json").unlink()
        assert run(tmp_path, dataset, {**settings, "rounds": 1}).last > 0

    @pytest.mark.parametrize(
        ("key", "value", "named"),
        [
            ("last", {}, "last.accuracy"),
            ("best", 5, "best"),
            ("headline", "foo", "headline"),
            ("curve", [1], "curve.0"),
            ("counters", {}, "counters.samples_studied"),
            ("counters", {"samples_studied": "many"}, "counters.samples_studied"),
        ],
    )
    def test_damage_inside_a_result_is_named(
        self, key: str, value: object, named: str, tmp_path: Path, finished: Path
    ) -> None:
        told = json.loads((finished / "result.json").read_text())
        (tmp_path / "result.json").write_text(json.dumps({**told, key: value}))
        with pytest.raises(DataError, match=rf"result\.json is damaged: {named}.*makes it anew"):
            Result.read(tmp_path)

    def test_a_directory_in_place_of_a_file(
        self, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
    ) -> None:
        run(tmp_path, dataset, {**settings, "rounds": 1})
        (tmp_path / "result.json").unlink()
        (tmp_path / "result.json").mkdir()
        with pytest.raises(DataError, match=r"result\.json cannot be read"):
            run(tmp_path, dataset, {**settings, "rounds": 1})

    @pytest.mark.parametrize("finished", [True, False])
    def test_other_samples_than_it_was_begun_with(
        self, finished: bool, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
    ) -> None:
        """Of a finished run too: its figures are not those of the new samples."""
        run(tmp_path, dataset, settings)
        if not finished:
            (tmp_path / "result.json").unlink()
        other = from_arrays(*blobs(150, 7), *blobs(45, 1), name="blobs")
        with pytest.raises(UserError, match="begun with other samples"):
            run(tmp_path, other, settings)

    def test_a_file_of_samples_that_was_changed_or_deleted(
        self, tmp_path: Path, settings: dict[str, Any]
    ) -> None:
        path = tmp_path / "mine.npz"
        keys = ("train_x", "train_y", "test_x", "test_y")

        def write(seed: int) -> None:
            held = (*blobs(150, seed), *blobs(45, 1))
            np.savez(path, **dict(zip(keys, held, strict=True)))  # type: ignore[arg-type]  # numpy takes any name

        settings |= {"data": f"npz:{path}", "rounds": 1}
        write(0)
        calmfed.run(directory=tmp_path / "run", **settings)
        again = calmfed.run(directory=tmp_path / "run", **settings)
        assert again.told == Result.read(tmp_path / "run").told
        write(1)
        with pytest.raises(UserError, match="begun with other samples"):
            calmfed.run(directory=tmp_path / "run", **settings)
        path.unlink()
        with pytest.raises(DataError, match="is not there"):
            calmfed.run(directory=tmp_path / "run", **settings)

    def test_a_directory_in_use(
        self, tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
    ) -> None:
        spawn = multiprocessing.get_context("spawn")
        here, there = spawn.Pipe()
        holder = spawn.Process(target=_hold, args=(there, tmp_path), daemon=True)
        holder.start()
        try:
            assert here.recv() == "held"
            with pytest.raises(UserError, match="in use by another process"):
                run(tmp_path, dataset, settings)
        finally:
            holder.kill()
            holder.join()
        run(tmp_path, dataset, {**settings, "rounds": 1})  # its death lets go of the directory

    def test_both_config_and_settings(self) -> None:
        with pytest.raises(UserError, match="not both"):
            calmfed.run(parse({}), rounds=3)

    def test_both_a_dataset_and_another_one_s_name(self, dataset: Dataset) -> None:
        with pytest.raises(UserError, match="either a dataset or the name of one"):
            calmfed.run(dataset=dataset, data="cifar10")

    @pytest.mark.parametrize("wrong", ["lite", {"rounds": 3}])
    def test_something_else_as_config(self, wrong: Any) -> None:
        with pytest.raises(UserError, match=r"config must be a calmfed\.Config"):
            calmfed.run(wrong)

    def test_something_else_as_directory_or_workers(self) -> None:
        with pytest.raises(UserError, match="directory must be a path, got 3"):
            calmfed.run(directory=3)  # type: ignore[arg-type]  # that is the point
        with pytest.raises(UserError, match="workers must be a whole number, got '2'"):
            calmfed.run(workers="2")  # type: ignore[arg-type]  # that is the point
        with pytest.raises(UserError, match="directory must be a path, got 3"):
            load_run(3)  # type: ignore[arg-type]  # that is the point

    def test_more_clients_than_there_can_be(self, dataset: Dataset) -> None:
        """At once, and not after a name was made for each."""
        with pytest.raises(UserError, match="need 10000000000000 training samples, but there are"):
            calmfed.run(dataset=dataset, clients=10**12, active=1)

    def test_samples_of_one_class(self) -> None:
        x, _ = blobs(60, 0)
        alike = calmfed.from_arrays(x, np.full(60, 7), x, np.full(60, 7), name="sevens")
        with pytest.raises(UserError, match="sevens: all training labels are 7"):
            calmfed.run(dataset=alike, clients=2, active=1)

    def test_something_else_as_dataset(self) -> None:
        with pytest.raises(UserError, match=r"as calmfed\.from_arrays makes one, got tuple"):
            calmfed.run(dataset=blobs(9, 0))  # type: ignore[arg-type]  # that is the point


def _hold(link: Any, folder: Path) -> None:
    from calmfed.simulate.lock import locked

    with locked(folder):
        link.send("held")
        link.recv()

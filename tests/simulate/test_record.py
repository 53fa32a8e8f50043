"""What is on disk after a round, and what a kill may leave of it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calmfed
from calmfed.data import Dataset
from calmfed.simulate import checkpoint, load_run
from calmfed.simulate.record import Event, EventLog, read_events
from calmfed.simulate.store import StateRef, StateStore


def test_events_that_no_checkpoint_knows_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path, 0)
    known = log.append([Event(1, "c0", "trust", 0.5)])
    log.append([Event(2, "c0", "trust", 0.6)])
    log.close()
    again = EventLog(path, known)
    again.append([Event(2, "c1", "trust", 0.7)])
    again.close()
    assert [(event.round, event.client) for event in read_events(path)] == [(1, "c0"), (2, "c1")]


def test_a_run_keeps_the_states_it_names_and_no_others(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    calmfed.run(dataset=dataset, directory=tmp_path, **settings)
    manifest = json.loads((tmp_path / "checkpoint" / "manifest.json").read_text())
    named = {
        client[which]["sha256"][:32]
        for client in manifest["clients"].values()
        for which in ("last", "best")
    }
    assert {path.stem for path in (tmp_path / "checkpoint").glob("*.safetensors")} == named


def test_states_are_on_disk_before_a_manifest_names_them(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    sync, write = StateStore.sync, checkpoint.write_json

    def note(store: StateStore, refs: Iterable[StateRef]) -> None:
        listed = list(refs)
        sync(store, listed)
        synced.update(ref.sha256 for ref in listed)

    def check(path: Path, content: Any) -> None:
        for client in content["clients"].values():
            assert {client["last"]["sha256"], client["best"]["sha256"]} <= synced
        write(path, content)

    monkeypatch.setattr(StateStore, "sync", note)
    monkeypatch.setattr(checkpoint, "write_json", check)
    calmfed.run(dataset=dataset, directory=tmp_path, **settings)
    assert len(synced) > 4


def test_trust_is_told_of_the_host_whose_samples_were_judged(
    tmp_path: Path, dataset: Dataset, settings: dict[str, Any]
) -> None:
    calmfed.run(dataset=dataset, directory=tmp_path, **{**settings, "method": "visit:calm"})
    partition = load_run(tmp_path).partition["clients"]
    names = list(partition)
    with np.load(tmp_path / "trust.npz", allow_pickle=False) as told:
        label, client = told["label"], told["client"]
    assert len(np.unique(client)) == 3
    for index in np.unique(client):
        held = dataset.train_y[partition[names[index]]["training"]]
        mine = np.bincount(label[client == index], minlength=3)
        assert mine.tolist() == np.bincount(held, minlength=3).tolist()

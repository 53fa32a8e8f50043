"""States on disk under the name of their content."""

import hashlib
from pathlib import Path

import pytest
import torch

from calmfed.errors import DataError
from calmfed.simulate.store import StateRef, StateStore
from calmfed.snapshot import State, encode


def state(value: float, size: int = 4) -> State:
    return {"w": torch.full((size,), value), "seen": torch.tensor(1)}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_state_is_stored_under_the_hash_of_its_bytes(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "states")
    ref = store.put(state(1))
    data = encode(state(1))
    assert ref == StateRef(hashlib.sha256(data).hexdigest(), len(data))
    assert files(tmp_path / "states") == [ref.filename]
    assert (tmp_path / "states" / ref.filename).read_bytes() == data


def test_the_same_content_is_stored_once_and_written_once(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    ref = store.put(state(1))
    first = (tmp_path / ref.filename).stat()
    assert store.put(state(1)) == ref
    again = (tmp_path / ref.filename).stat()
    assert (again.st_ino, again.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    assert store.put(state(2)) != ref
    assert len(files(tmp_path)) == 2


def test_another_process_reads_what_was_put(tmp_path: Path) -> None:
    ref = StateStore(tmp_path).put(state(3))
    found = StateStore(tmp_path).get(ref)  # nothing in memory yet
    assert torch.equal(found["w"], state(3)["w"])
    assert found["seen"].item() == 1


def test_sweeping_leaves_what_is_to_be_kept_and_what_is_not_its_own(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    kept, other = store.put(state(1)), store.put(state(2))
    (tmp_path / "half.123.part").write_bytes(b"half written")
    (tmp_path / "manifest.json").write_text("{}")
    store.sweep([kept])
    assert files(tmp_path) == sorted([kept.filename, "manifest.json"])
    assert other.filename not in files(tmp_path)


def test_verify_finds_one_changed_byte(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    good, bad = store.put(state(1)), store.put(state(2))
    store.verify([good, bad])
    path = tmp_path / bad.filename
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    store.verify([good])
    with pytest.raises(DataError, match=f"{bad.filename} is damaged: its hash is wrong"):
        store.verify([good, bad])


def test_a_missing_state_is_named(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    ref = store.put(state(1))
    (tmp_path / ref.filename).unlink()
    for look in (lambda: store.verify([ref]), lambda: StateStore(tmp_path).get(ref)):
        with pytest.raises(DataError, match=rf"{ref.filename} cannot be read: No such file"):
            look()


def test_a_cut_off_state_is_a_data_error_that_names_its_file(tmp_path: Path) -> None:
    ref = StateStore(tmp_path).put(state(1))
    path = tmp_path / ref.filename
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match=ref.filename):
        StateStore(tmp_path).get(ref)


def test_recent_states_are_kept_in_memory_and_the_oldest_forgotten(tmp_path: Path) -> None:
    size = len(encode(state(0)))
    store = StateStore(tmp_path, cache_bytes=2 * size)
    refs = [store.put(state(value)) for value in (1, 2)]
    store.get(refs[0])  # now the second is the one not used for longest
    refs.append(store.put(state(3)))
    for path in tmp_path.iterdir():
        path.unlink()
    for remembered in (refs[0], refs[2]):
        store.get(remembered)
    with pytest.raises(DataError, match="cannot be read"):
        store.get(refs[1])


def test_a_state_larger_than_the_memory_allowed_is_read_from_disk(tmp_path: Path) -> None:
    store = StateStore(tmp_path, cache_bytes=len(encode(state(0))) - 1)
    ref = store.put(state(1))
    assert torch.equal(store.get(ref)["w"], state(1)["w"])
    (tmp_path / ref.filename).unlink()
    with pytest.raises(DataError, match="cannot be read"):
        store.get(ref)


def test_putting_a_state_again_and_again_does_not_use_up_the_memory(tmp_path: Path) -> None:
    store = StateStore(tmp_path, cache_bytes=3 * len(encode(state(0))))
    ref = store.put(state(1))
    for value in (2, 2, 2, 2, 3, 3, 3):
        store.put(state(value))
    (tmp_path / ref.filename).unlink()
    assert torch.equal(store.get(ref)["w"], state(1)["w"])


def test_syncing_needs_the_files(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    ref = store.put(state(1))
    store.sync([ref])
    (tmp_path / ref.filename).unlink()
    with pytest.raises(FileNotFoundError):
        store.sync([ref])

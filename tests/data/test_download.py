import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from calmfed.data import download
from calmfed.data.download import cache_folder, digest, ensure, replacing
from calmfed.data.source import File
from calmfed.errors import DataError

CONTENT = os.urandom(300_000)


class Publisher(BaseHTTPRequestHandler):
    """Serves ``/whole``; breaks off in the middle of ``/half``; has nothing else."""

    def do_GET(self) -> None:
        if self.path not in ("/whole", "/half"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT if self.path == "/whole" else CONTENT[:100_000])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def published(url: str, content: bytes = CONTENT, algorithm: str = "sha256") -> File:
    checksum = hashlib.new(algorithm, content).hexdigest()
    return File("set.bin", url, f"{algorithm}:{checksum}", len(content))


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_a_file_is_downloaded_once(tmp_path: Path, address: str, algorithm: str) -> None:
    folder = tmp_path / "not" / "there yet"
    path = ensure(published(f"{address}/whole", algorithm=algorithm), folder)
    assert path.read_bytes() == CONTENT
    assert [item.name for item in folder.iterdir()] == ["set.bin"]
    # Nothing answers at port 1: a second download would fail.
    assert ensure(published("http://127.0.0.1:1/", algorithm=algorithm), folder) == path


def test_progress_is_plain_lines_away_from_a_terminal(
    tmp_path: Path,
    address: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("calmfed.progress.PLAIN_SECONDS", 0.0)
    ensure(published(f"{address}/whole"), tmp_path)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[0] == "fetching set.bin"
    assert said.err.splitlines()[-1].startswith("fetching set.bin: 100%")


def test_progress_is_a_bar_on_a_terminal(
    tmp_path: Path,
    address: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    ensure(published(f"{address}/whole"), tmp_path)
    said = capsys.readouterr()
    assert said.out == ""
    assert "300.0/300.0 kB" in said.err


def test_a_download_with_another_checksum_is_not_kept(tmp_path: Path, address: str) -> None:
    file = published(f"{address}/whole", b"something else")
    with pytest.raises(DataError, match=r"set\.bin: expected sha256:.*, found sha256:") as caught:
        ensure(file, tmp_path)
    assert file.checksum in str(caught.value)
    assert hashlib.sha256(CONTENT).hexdigest() in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "reason"), [("/half", "the connection broke off"), ("/gone", "answered 404")]
)
def test_a_broken_download_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, address: str, path: str, reason: str
) -> None:
    file = published(f"{address}{path}")
    with pytest.raises(DataError, match=reason) as caught:
        ensure(file, tmp_path)
    assert list(tmp_path.iterdir()) == []
    for part in ("set.bin", file.url, str(tmp_path), file.checksum):
        assert part in str(caught.value)


def test_without_network_one_sentence_says_which_file_goes_where(tmp_path: Path) -> None:
    file = published("http://127.0.0.1:1/whole")
    with pytest.raises(DataError) as caught:
        ensure(file, tmp_path)
    assert str(caught.value) == (
        f"set.bin cannot be downloaded (no connection): get it from {file.url} "
        f"and put it into {tmp_path} (checksum {file.checksum})"
    )


def test_a_file_put_there_by_hand_is_checked(tmp_path: Path) -> None:
    file = published("http://127.0.0.1:1/whole")
    path = tmp_path / "set.bin"
    path.write_bytes(b"half of it")
    with pytest.raises(DataError, match="is not the published file") as caught:
        ensure(file, tmp_path)
    for part in (str(path), file.checksum, hashlib.sha256(b"half of it").hexdigest(), file.url):
        assert part in str(caught.value)
    path.write_bytes(CONTENT)
    assert ensure(file, tmp_path) == path
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        ensure(file, tmp_path)


def test_a_checksum_is_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "set.bin"
    path.write_bytes(CONTENT)
    first = digest(path, "md5")
    with monkeypatch.context() as patch:
        patch.setattr(download, "_hash", lambda *_: pytest.fail("hashed again"))
        assert digest(path, "md5") == first
    (memory,) = tmp_path.glob(".set.bin.md5.json")
    for nonsense in ("", "[]", "{}", "null", '{"size": 1}'):
        memory.write_text(nonsense)
        assert digest(path, "md5") == first
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(1, 1))
    assert digest(path, "md5") == hashlib.md5(CONTENT[::-1], usedforsecurity=False).hexdigest()


def test_interrupted_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "set.bin"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(path) as out:
            out.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, address: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"set\.bin cannot be written"):
        ensure(published(f"{address}/whole"), tmp_path / "file")


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALMFED_DATA", str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_folder(tmp_path / "other") == tmp_path / "other"
    monkeypatch.delenv("CALMFED_DATA")
    assert cache_folder().name == "calmfed"

"""Speech Commands v0.02: ten words as log-mel pictures, the 25 others as the public set."""

import io
import wave
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calmfed.data.dataset import Dataset
from calmfed.data.download import digest, replacing
from calmfed.data.mel import BINS, HOP, RATE, log_mel
from calmfed.data.reading import content, members, read_npz, reading
from calmfed.data.registry import register_dataset
from calmfed.data.source import File, Source, spread
from calmfed.errors import DataError
from calmfed.progress import Progress, note

ARCHIVE = File(
    "speech_commands_v0.02.tar.gz",
    "http://download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
    "sha256:af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
    2_429_000_000,
)
WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
PUBLIC_CLIPS = 200
FEATURES = 1
"""The version of what is computed below: count it up when that changes, or old files are used."""

_BATCH = 64  # clips transformed at a time; about 30 MB of frames


class Clips(NamedTuple):
    """Names of clips within the archive, as ``word/file.wav``, each list sorted."""

    train: list[str]
    test: list[str]
    public: list[str]


@register_dataset("speech_commands")
class SpeechCommands(Source):
    """One second of 16 kHz sound as 32 mel bins x 101 frames, standardised by the training set.

    Test clips are those of the publisher's testing list; training clips those in neither list.
    """

    summary = "Speech Commands v0.02: ten spoken words as log-mel pictures of 32x101"
    files = (ARCHIVE,)
    public = f"{PUBLIC_CLIPS} clips of each of the 25 other words"
    classes = 10
    shape = (1, BINS, 1 + RATE // HOP)

    def prepare(self, folder: Path) -> None:
        """Compute the features, if that was not done before."""
        features(folder / ARCHIVE.name, [])

    def load(self, folder: Path, public: bool) -> Dataset:
        """Read the features, after computing them once."""
        keys = ["train_x", "train_y", "test_x", "test_y", *(["public_x"] if public else [])]
        held = features(folder / ARCHIVE.name, keys)
        return Dataset(
            name=self.name,
            train_x=held["train_x"],
            train_y=held["train_y"],
            test_x=held["test_x"],
            test_y=held["test_y"],
            labels=WORDS,
            public_x=held.get("public_x"),
        )


def features(path: Path, keys: list[str]) -> dict[str, NDArray[Any]]:
    """The archive's features, kept beside it under its checksum and the features' version."""
    kept = path.with_name(f"speech_commands-{digest(path, 'sha256')[:16]}-f{FEATURES}.npz")
    if kept.exists():
        try:
            return read_npz(kept, keys)
        except DataError:
            pass  # whatever happened to it, it can be made again
    made: dict[str, Any] = compute(path)
    try:
        with replacing(kept) as out:
            np.savez(out, **made)
    except OSError as error:
        # Minutes of work are worth more than the file.
        note(f"{kept} cannot be written, so it is computed anew next time: {error.strerror}")
    return {key: made[key] for key in keys}


def compute(path: Path) -> dict[str, NDArray[Any]]:
    """All features and labels of the archive, standardised."""
    clips = choose(path)
    order = [*clips.train, *clips.test, *clips.public]
    x = pictures(path, order)
    # One mean and one deviation for all bins and frames, from the training clips alone.
    train = x[: len(clips.train)]
    mean = train.mean(dtype=np.float64)
    deviation = max(float(train.std(dtype=np.float64)), 1e-6)
    np.subtract(x, mean, out=x, casting="same_kind")
    np.divide(x, deviation, out=x, casting="same_kind")
    x_train, x_test, x_public = np.split(x, np.cumsum([len(clips.train), len(clips.test)]))
    return {
        "train_x": x_train,
        "train_y": spoken(clips.train),
        "test_x": x_test,
        "test_y": spoken(clips.test),
        "public_x": x_public,
        "scale": np.array([mean, deviation]),
    }


def spoken(clips: list[str]) -> NDArray[np.int64]:
    """The clips' words as labels."""
    return np.array([WORDS.index(clip.partition("/")[0]) for clip in clips], dtype=np.int64)


def choose(path: Path) -> Clips:
    """List the archive and decide which clip is for what.

    Public clips are taken from those in neither list, so that no voice of the test set is heard
    in the public set; of each word evenly spread over the order of names.
    """
    lists: dict[str, set[str]] = {"testing_list.txt": set(), "validation_list.txt": set()}
    seen = set()
    words: dict[str, list[str]] = defaultdict(list)
    with Progress(f"listing {path.name}", unit="bytes", total=path.stat().st_size) as progress:
        for name, archive, member in members(path, progress.reach):
            if name in lists:
                text = content(path, archive, member).decode("utf-8", errors="replace")
                lists[name] = set(text.split())
                seen.add(name)
            elif name.endswith(".wav") and not name.startswith("_"):
                words[name.partition("/")[0]].append(name)
    for name in sorted(lists.keys() - seen):
        raise DataError(f"{path} holds no {name}")
    absent = [word for word in WORDS if word not in words]
    if absent:
        raise DataError(f"{path} holds no clips of the word {absent[0]!r}")
    ours = {clip for word in WORDS for clip in words[word]}
    test, validation = lists["testing_list.txt"], lists["validation_list.txt"]
    lost = sorted(clip for clip in test - ours if clip.partition("/")[0] in WORDS)
    if lost:
        raise DataError(f"{path} holds no {lost[0]}, though its testing_list.txt names it")
    public: list[str] = []
    for word in sorted(words.keys() - set(WORDS)):
        free = sorted(set(words[word]) - test - validation)
        public += [free[i] for i in spread(len(free), PUBLIC_CLIPS)]
    return Clips(sorted(ours - test - validation), sorted(ours & test), public)


def pictures(path: Path, order: list[str]) -> NDArray[np.float32]:
    """The log-mel pictures of the named clips, in that order, in one pass through the archive.

    Returns:
        [n, 1, 32, 101], not yet standardised.
    """
    places = {name: place for place, name in enumerate(order)}
    x = np.zeros((len(order), 1, BINS, 1 + RATE // HOP), dtype=np.float32)
    batch: dict[int, NDArray[np.float32]] = {}
    with Progress(f"reading {path.name}", unit="clips", total=len(order)) as progress:

        def transform() -> None:
            if batch:
                x[list(batch), 0] = log_mel(np.stack(list(batch.values())))
                progress.update(len(batch))
                batch.clear()

        for name, archive, member in members(path):
            if name in places:
                batch[places[name]] = sound(content(path, archive, member), path, name)
                if len(batch) == _BATCH:
                    transform()
        transform()
    return x


def sound(data: bytes, path: Path, name: str) -> NDArray[np.float32]:
    """One wav file as exactly a second of sound in -1..1: cut, or silence added at its end."""
    where = path / name
    with reading(where):
        try:
            with wave.open(io.BytesIO(data)) as clip:
                form = clip.getnchannels(), clip.getsampwidth(), clip.getframerate()
                count, raw = clip.getnframes(), clip.readframes(clip.getnframes())
        except wave.Error as error:
            raise ValueError(str(error)) from error
    if form != (1, 2, RATE):
        raise DataError(
            f"{where} should be 16-bit mono at {RATE} Hz, but is {8 * form[1]}-bit with "
            f"{form[0]} channels at {form[2]} Hz"
        )
    if len(raw) != 2 * count or not count:
        raise DataError(f"{where} should hold {count} samples, but holds {len(raw) // 2}")
    second = np.zeros(RATE, dtype=np.float32)
    samples = np.frombuffer(raw, dtype="<i2")[:RATE]
    second[: len(samples)] = samples / np.float32(32_768)
    return second

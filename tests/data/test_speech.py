import io
import tarfile
import wave
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from calmfed import data
from calmfed.data.mel import RATE, log_mel
from calmfed.data.sources import speech
from calmfed.data.sources.speech import ARCHIVE, WORDS, sound
from calmfed.errors import DataError


def wav(samples: NDArray[np.int16], rate: int = RATE, channels: int = 1, width: int = 2) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as clip:
        clip.setnchannels(channels)
        clip.setsampwidth(width)
        clip.setframerate(rate)
        clip.writeframes(samples.tobytes())
    return out.getvalue()


def noise(seed: int, count: int = RATE) -> NDArray[np.int16]:
    return np.random.default_rng(seed).integers(-9_000, 9_000, count).astype(np.int16)


def publish(folder: Path, changed: dict[str, bytes | None] | None = None) -> Path:
    """An archive with the publisher's layout: three clips of each word, the lists in the middle."""
    files: dict[str, bytes | None] = {"./_background_noise_/white.wav": wav(noise(0, 40_000))}
    for seed, word in enumerate(WORDS):
        for speaker in ("c_train", "a_test", "b_valid"):
            files[f"./{word}/{speaker}_nohash_0.wav"] = wav(noise(3 * seed + len(speaker)))
    lines = {
        kind: "".join(f"{word}/{clip}_nohash_0.wav\n" for word in (*WORDS, "bed"))
        for kind, clip in (("testing", "a_test"), ("validation", "b_valid"))
    }
    files["./testing_list.txt"] = lines["testing"].encode()
    files["./validation_list.txt"] = lines["validation"].encode()
    files["./README.md"] = b"# Speech Commands"
    for clip in ("a_test", "b_valid", "z_free", "y_free"):
        files[f"./bed/{clip}_nohash_0.wav"] = wav(noise(len(clip)))
    files["./zero/only_nohash_0.wav"] = wav(noise(99))
    files.update(changed or {})
    path = folder / ARCHIVE.name
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            if content is not None:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def test_lists_decide_and_the_training_set_standardises(tmp_path: Path) -> None:
    publish(tmp_path)
    words = data.source("speech_commands").load(tmp_path, public=True)
    assert words.train_x.shape == (10, 1, 32, 101)
    assert words.train_x.dtype == np.float32
    assert words.labels == WORDS
    # Samples follow the names of the clips, so words come in alphabetical order.
    assert [words.labels[label] for label in words.train_y] == sorted(WORDS)
    assert sorted(words.test_y.tolist()) == list(range(10))
    assert abs(float(words.train_x.mean())) < 1e-4
    assert abs(float(words.train_x.std()) - 1) < 1e-4
    assert words.public_x is not None
    assert len(words.public_x) == 3  # neither list names bed's y and z, and zero's only one


def test_a_known_clip_becomes_the_picture_it_should(tmp_path: Path) -> None:
    publish(tmp_path)
    words = data.source("speech_commands").load(tmp_path, public=False)
    raw = [
        log_mel(noise(3 * WORDS.index(word) + len("c_train")) / 32_768) for word in sorted(WORDS)
    ]
    expected = (raw[2] - np.mean(raw, dtype=np.float64)) / np.std(raw, dtype=np.float64)
    np.testing.assert_allclose(words.train_x[2, 0], expected, atol=1e-4)


def test_features_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish(tmp_path)
    first = data.source("speech_commands").load(tmp_path, public=True)
    with monkeypatch.context() as patch:
        patch.setattr(speech, "compute", lambda _: pytest.fail("computed again"))
        second = data.source("speech_commands").load(tmp_path, public=True)
    for one, other in ((first.train_x, second.train_x), (first.public_x, second.public_x)):
        assert one is not None
        assert other is not None
        np.testing.assert_array_equal(one, other)
    (kept,) = tmp_path.glob("speech_commands-*-f1.npz")
    kept.write_bytes(kept.read_bytes()[:1000])
    third = data.source("speech_commands").load(tmp_path, public=False)
    np.testing.assert_array_equal(first.test_x, third.test_x)
    publish(tmp_path, {"./zero/only_nohash_0.wav": wav(noise(98))})
    assert path.exists()
    data.source("speech_commands").load(tmp_path, public=False)
    assert len(list(tmp_path.glob("speech_commands-*-f1.npz"))) == 2


def test_the_public_set_takes_no_more_than_so_many_of_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech, "PUBLIC_CLIPS", 1)
    chosen = speech.choose(publish(tmp_path))
    assert chosen.public == ["bed/y_free_nohash_0.wav", "zero/only_nohash_0.wav"]
    assert len(chosen.train) == len(chosen.test) == 10


def test_short_clips_get_silence_and_long_ones_are_cut() -> None:
    short = sound(wav(noise(1, 500)), Path("a"), "b.wav")
    assert short.shape == (RATE,)
    np.testing.assert_array_equal(short[:500] * 32_768, noise(1, 500))
    assert not short[500:].any()
    long = sound(wav(noise(1, RATE + 7)), Path("a"), "b.wav")
    np.testing.assert_array_equal(long * 32_768, noise(1, RATE + 7)[:RATE])


CLIP = "./yes/c_train_nohash_0.wav"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({CLIP: wav(noise(1), rate=8_000)}, "yes/c_train_nohash_0.wav should be 16-bit mono"),
        ({CLIP: wav(noise(1), channels=2)}, "16-bit with 2 channels at 16000 Hz"),
        ({CLIP: wav(noise(1), width=1)}, "but is 8-bit"),
        ({CLIP: wav(noise(1))[:-100]}, "c_train_nohash_0.wav should hold 16000 samples"),
        ({CLIP: wav(noise(1, 0))}, "c_train_nohash_0.wav should hold 0 samples"),
        ({CLIP: b"RIFF"}, "yes/c_train_nohash_0.wav cannot be read"),
        ({CLIP: b"<html>"}, "yes/c_train_nohash_0.wav cannot be read"),
        ({"./testing_list.txt": None}, "holds no testing_list.txt"),
        ({"./validation_list.txt": None}, "holds no validation_list.txt"),
        ({"./go/a_test_nohash_0.wav": None}, "holds no go/a_test_nohash_0.wav, though"),
        ({f"./go/{c}_nohash_0.wav": None for c in ("a_test", "b_valid", "c_train")}, "word 'go'"),
    ],
)
def test_what_is_wrong_inside_is_named(
    tmp_path: Path, changed: dict[str, bytes | None], message: str
) -> None:
    path = publish(tmp_path, changed)
    with pytest.raises(DataError, match=message) as caught:
        data.source("speech_commands").load(tmp_path, public=False)
    assert str(path) in str(caught.value)
    assert not list(tmp_path.glob("*.npz"))


def test_an_archive_cut_anywhere_names_itself(tmp_path: Path) -> None:
    path = publish(tmp_path)
    whole = path.read_bytes()
    for share in (0.0, 0.4, 0.8):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(DataError, match=ARCHIVE.name):
            data.source("speech_commands").load(tmp_path, public=False)

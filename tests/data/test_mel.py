import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

from calmfed.data.mel import BINS, FFT, HOP, RATE, filters, log_mel, mel_power

SECOND = np.arange(RATE) / RATE
NOISE = np.random.default_rng(3)

WAVES = {
    "noise": NOISE.uniform(-1, 1, RATE),
    "quiet noise": 1e-3 * NOISE.standard_normal(RATE),
    "tone": np.sin(2 * np.pi * 440 * SECOND),
    "high tone": 0.5 * np.sin(2 * np.pi * 7_900 * SECOND),
    "chirp": np.sin(2 * np.pi * 3_000 * SECOND**2),
    "silence": np.zeros(RATE),
    "click": np.eye(1, RATE, 8_000)[0],
    "click at the edge": np.eye(1, RATE, 0)[0],
    "short": NOISE.uniform(-1, 1, 1_234),
    "shorter than a frame": NOISE.uniform(-1, 1, 100),
}


def librosas(wave: NDArray[np.floating]) -> NDArray[np.float64]:
    import librosa

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # clips shorter than a frame are warned about
        power: NDArray[np.float64] = librosa.feature.melspectrogram(
            y=wave, sr=RATE, n_fft=FFT, hop_length=HOP, n_mels=BINS
        )
    return power


@pytest.mark.parametrize("name", WAVES)
def test_agrees_with_librosa_before_and_after_the_logarithm(name: str) -> None:
    wave = WAVES[name]
    theirs = librosas(wave)
    np.testing.assert_allclose(mel_power(wave), theirs, atol=1e-4, rtol=0)
    np.testing.assert_allclose(log_mel(wave), np.log(theirs + 1e-6), atol=1e-4, rtol=0)


def test_agrees_with_librosa_in_single_precision() -> None:
    wave = WAVES["noise"].astype(np.float32)
    theirs = librosas(wave)
    np.testing.assert_allclose(mel_power(wave), theirs, atol=1e-4, rtol=0)
    np.testing.assert_allclose(log_mel(wave), np.log(theirs + 1e-6), atol=1e-4, rtol=0)


def test_filters_agree_with_librosas() -> None:
    import librosa

    theirs = librosa.filters.mel(sr=RATE, n_fft=FFT, n_mels=BINS)
    np.testing.assert_allclose(filters(), theirs, atol=1e-8)


def test_a_second_becomes_32_by_101_and_batches_are_clip_by_clip() -> None:
    waves = np.stack([WAVES["noise"], WAVES["tone"]])
    together = log_mel(waves)
    assert together.shape == (2, 32, 101)
    assert together.dtype == np.float32
    np.testing.assert_array_equal(together[1], log_mel(WAVES["tone"]))


def test_silence_is_the_logarithm_of_the_offset() -> None:
    np.testing.assert_allclose(log_mel(np.zeros(RATE)), np.log(1e-6), rtol=1e-6)


def test_a_tone_is_loudest_where_it_belongs() -> None:
    centres = [3_000, 1_000, 250]
    loudest = [
        int(mel_power(np.sin(2 * np.pi * hertz * SECOND)).mean(axis=-1).argmax())
        for hertz in centres
    ]
    peaks = np.fft.rfftfreq(FFT, 1 / RATE)[filters()[loudest].argmax(axis=1)]
    assert (abs(peaks - centres) < 150).all()

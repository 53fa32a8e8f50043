"""Mel power spectrograms in NumPy, as librosa makes them by default."""

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
FFT = 512
HOP = 160
BINS = 32

_LINEAR = 200 / 3  # hertz a mel, up to 1,000 Hz
_CORNER = 1_000.0
_STEP = np.log(6.4) / 27  # above it, 27 mels for each factor of 6.4


def mel_power(wave: NDArray[np.floating]) -> NDArray[np.float64]:
    """The mel power spectrogram of 16 kHz sound.

    Frames are centred on every 160th sample, with silence before the first and after the last
    sample, under a periodic Hann window of 512.

    Args:
        wave: Samples in -1..1, [..., n].

    Returns:
        Power, [..., 32, 1 + n // 160].
    """
    edges = [(0, 0)] * (wave.ndim - 1) + [(FFT // 2, FFT // 2)]
    padded = np.pad(wave.astype(np.float64), edges)
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT, axis=-1)[..., ::HOP, :]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)
    spectrum = np.fft.rfft(frames * window, axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.swapaxes(power @ filters().T, -1, -2)


def log_mel(wave: NDArray[np.floating]) -> NDArray[np.float32]:
    """The logarithm of ``mel_power`` + 1e-6, shaped alike."""
    return np.log(mel_power(wave) + 1e-6).astype(np.float32)


def filters() -> NDArray[np.float64]:
    """Triangles between neighbouring mel frequencies, each of area one over hertz.

    Returns:
        Weights, [32, 257].
    """
    corners = _hertz(np.linspace(0, _mel(RATE / 2), BINS + 2))
    bins = np.fft.rfftfreq(FFT, 1 / RATE)
    low, peak, high = (corners[i : BINS + i, None] for i in range(3))
    rising = (bins - low) / (peak - low)
    falling = (high - bins) / (high - peak)
    return np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)


def _mel(hertz: float) -> float:
    """Slaney's scale: linear up to 1,000 Hz, logarithmic above."""
    if hertz < _CORNER:
        return hertz / _LINEAR
    return float(_CORNER / _LINEAR + np.log(hertz / _CORNER) / _STEP)


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    above = mel - _CORNER / _LINEAR
    return np.where(above < 0, mel * _LINEAR, _CORNER * np.exp(above * _STEP))

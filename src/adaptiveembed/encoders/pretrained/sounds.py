"""Sounds as the extractors of features want them: at one rate, cut by rule and never by chance."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import av
import numpy as np
import torch
from av.audio.resampler import AudioResampler
from torch.nn import functional

from adaptiveembed.data.media import Audio
from adaptiveembed.encoders.pretrained.checkpoint import imported

FUSED_CROPS = 3
"""Parts that a fused CLAP looks at closely, beside the whole."""


def at_rate(audio: Audio, rate: int) -> np.ndarray:
    """The samples at this rate, as many as the sound lasts and at least one."""
    if audio.rate == rate:
        return audio.samples
    resampler = AudioResampler(format="flt", layout="mono", rate=rate)
    frame = av.AudioFrame.from_ndarray(
        np.ascontiguousarray(audio.samples[None], dtype=np.float32), format="flt", layout="mono"
    )
    frame.sample_rate = audio.rate
    frames = [*resampler.resample(frame), *resampler.resample(None)]
    samples = np.concatenate([np.empty(0, np.float32), *(one.to_ndarray()[0] for one in frames)])
    length = max(1, round(len(audio.samples) * rate / audio.rate))
    return np.pad(samples[:length], (0, max(0, length - len(samples))))


@contextmanager
def narrow_bands() -> Iterator[None]:
    """Without the warning that the lowest bands of a filter bank are narrower than a frequency.

    The published models were trained on such banks.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "At least one mel filter has all zero values")
        yield


def clap_features(samples: np.ndarray, extractor: Any) -> np.ndarray:  # noqa: ANN401
    """What CLAP's own extractor gives for one sound, but for where a long sound is cut.

    There it draws places from a generator that all of numpy shares. Here they are fixed: the middle
    of the sound, or, for a fused model, the middle place of each third beside the whole.
    """
    most = extractor.nb_max_samples
    if extractor.truncation != "fusion":
        start = max(0, len(samples) - most) // 2
        cut = _filled(samples[start : start + most], most, extractor.padding)
        return _mels(cut, extractor, extractor.mel_filters_slaney)[None]
    mels = _mels(_filled(samples, most, extractor.padding), extractor, extractor.mel_filters)
    frames = most // extractor.hop_length + 1
    if len(mels) <= frames:
        return np.stack([mels] * (FUSED_CROPS + 1))
    return _fused(mels, frames)


def _fused(mels: np.ndarray, frames: int) -> np.ndarray:
    """The whole, shrunk to so many frames, and the middle place of each third of all places."""
    # a sound hardly longer than one crop has fewer places than thirds
    thirds = np.array_split(np.arange(len(mels) - frames + 1), FUSED_CROPS)
    starts = [int(third[len(third) // 2]) if len(third) else 0 for third in thirds]
    whole = functional.interpolate(
        torch.from_numpy(mels)[None, None], size=[frames, mels.shape[1]], mode="bilinear"
    )[0, 0].numpy()
    return np.stack([whole, *(mels[start : start + frames] for start in starts)])


def _filled(samples: np.ndarray, length: int, padding: str) -> np.ndarray:
    """The samples, filled up to a length: repeated, repeated and then silent, or silent."""
    times = length // len(samples)
    if padding == "repeat" and len(samples) < length:
        return np.tile(samples, times + 1)[:length]
    if padding == "repeatpad" and times:
        samples = np.tile(samples, times)
    return np.pad(samples, (0, max(0, length - len(samples))))


def _mels(samples: np.ndarray, extractor: Any, filters: np.ndarray) -> np.ndarray:  # noqa: ANN401
    """Decibels [frames, bands]."""
    audio_utils = imported("transformers.audio_utils")
    decibels: np.ndarray = audio_utils.spectrogram(
        samples.astype(np.float64),
        audio_utils.window_function(extractor.fft_window_size, "hann"),
        frame_length=extractor.fft_window_size,
        hop_length=extractor.hop_length,
        power=2.0,
        mel_filters=filters,
        log_mel="dB",
    )
    return np.ascontiguousarray(decibels.T)

"""Sounds, described by log-mel frames: how loud each band is over time, and how that changes."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch

from adaptiveembed.data.media import Audio
from adaptiveembed.encoders.training_free.places import middles, place_features
from adaptiveembed.encoders.training_free.projecting import Described, means_over_time, padded
from adaptiveembed.shapes import (
    Bands,
    ItemDescriptions,
    MelFilters,
    Places,
    SampleArray,
    Samples,
    Spectra,
)

BANDS = 64
"""Bands of the mel scale."""

LOWEST, HIGHEST = 50.0, 8000.0
"""Cycles per second between which the bands lie."""

WINDOW, HOP = 0.064, 0.016
"""Seconds that a frame looks at, and from one frame to the next."""

FLOOR, CEILING = -80.0, 0.0
"""Decibels between which loudness is measured; a full sine is a little below the ceiling."""

FRAMES_PER_STATE = 8
"""Frames of a state, unless the sound is so long that it would have too many states."""

MOST_STATES = 32
"""States of a long sound; each then covers more frames."""

PARTS = 8
"""Parts of time whose means are part of the global feature."""

COARSE = 4
"""Bands that are taken together where change is described."""

CHANGE_GAIN = 4.0
"""What makes the mean change from frame to frame a number near 1."""

LONGEST_TIME = 10.0
"""Seconds by which absolute time is measured, along with the place within the sound."""


def describe_audio(batch: Sequence[Audio]) -> Described:
    """Every stretch of time with its place, in order; a short sound has few."""
    bands = [log_mel(item.samples, item.rate) for item in batch]
    descriptions, mask = padded([_stretches(frames) for frames in bands])
    no_details = descriptions[:, :, :0]
    summaries = torch.stack([_parts(frames) for frames in bands])
    return Described(descriptions, no_details, mask, summaries)


def log_mel(samples: SampleArray, rate: int) -> Bands:
    """The loudness of every band in every frame, from -1 for silence to 1 [frames, bands]."""
    spectra = _power_spectra(torch.from_numpy(np.ascontiguousarray(samples)), rate)
    power = spectra @ _mel_filters(rate, spectra.shape[1])
    decibels = 10 * power.clamp_min(10 ** (FLOOR / 10)).log10()
    return 2 * (decibels.clamp_max(CEILING) - FLOOR) / (CEILING - FLOOR) - 1


def _power_spectra(samples: Samples, rate: int) -> Spectra:
    """The power at every frequency of every frame; 1 is the peak of a sine of full strength."""
    window, hop = round(WINDOW * rate), max(1, round(HOP * rate))
    missing = max(0, window - len(samples))
    frames = torch.nn.functional.pad(samples, (0, missing)).unfold(0, window, hop)
    weights = torch.hann_window(window)
    waves = torch.fft.rfft(frames * weights, n=_power_of_two(window))
    power: Spectra = (waves.real.square() + waves.imag.square()) / (weights.sum() / 2).square()
    return power


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


@cache
def _mel_filters(rate: int, num_frequencies: int) -> MelFilters:
    """Triangles of height 1, evenly spaced on the mel scale [frequencies, bands]."""
    frequencies = np.linspace(0, rate / 2, num_frequencies)
    corners = _hertz(np.linspace(_mel(LOWEST), _mel(HIGHEST), BANDS + 2))
    low, middle, high = corners[:-2], corners[1:-1], corners[2:]
    rising = (frequencies[:, None] - low) / (middle - low)
    falling = (high - frequencies[:, None]) / (high - middle)
    triangles = np.clip(np.minimum(rising, falling), 0, None)
    return torch.from_numpy(triangles.astype(np.float32))


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))


def _hertz(mel: np.ndarray) -> np.ndarray:
    return np.asarray(700 * (10 ** (mel / 2595) - 1))


def _stretches(frames: Bands) -> ItemDescriptions:
    """What is heard in every stretch of time, before and after it, and where it lies."""
    count = min(MOST_STATES, -(-len(frames) // FRAMES_PER_STATE))
    loudness = means_over_time(frames, count)
    change = torch.diff(frames, dim=0, append=frames[-1:])
    before, after = loudness[:1], loudness[-1:]
    parts = (
        loudness,
        _spectral_shape(loudness),
        CHANGE_GAIN * _coarse(means_over_time(change.clamp_min(0), count)),
        CHANGE_GAIN * _coarse(means_over_time((-change).clamp_min(0), count)),
        _coarse(torch.cat((before, loudness[:-1]))),
        _coarse(torch.cat((loudness[1:], after))),
        place_features(_places(len(frames), count)),
    )
    return torch.cat(parts, dim=1)


def _spectral_shape(loudness: Bands) -> ItemDescriptions:
    """The share of every band in the amplitude, where their middle lies, and how far they reach."""
    amplitude = 10 ** ((loudness - 1) * (CEILING - FLOOR) / 40)
    shares = amplitude / amplitude.sum(dim=1, keepdim=True)
    band = middles(BANDS)
    middle = (shares * band).sum(dim=1, keepdim=True)
    reach = (shares * (band - middle).square()).sum(dim=1, keepdim=True).sqrt()
    return torch.cat((shares.sqrt(), middle, reach), dim=1)


def _places(num_frames: int, count: int) -> Places:
    """Where every stretch lies within the sound, and how long after its start."""
    within = middles(count)
    seconds = within * (num_frames * HOP)
    return torch.stack((within, (seconds / LONGEST_TIME).clamp_max(1)), dim=1)


def _parts(frames: Bands) -> torch.Tensor:
    """The loudness of coarse bands in equal parts of the sound, one part after another."""
    return _coarse(means_over_time(frames, PARTS)).flatten()


def _coarse(bands: Bands) -> ItemDescriptions:
    return torch.nn.functional.avg_pool1d(bands, COARSE)

"""Sounds as an encoder takes them: one channel, at one rate, between -1 and 1."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import av
import numpy as np
import soundfile
from av.audio.resampler import AudioResampler

from adaptiveembed.data.limits import MediaLimits
from adaptiveembed.data.media import Audio
from adaptiveembed.data.videos import opened_container
from adaptiveembed.errors import MediaError

BLOCK = 1 << 16
"""Samples that are read at a time."""


def read_sound(path: Path, limits: MediaLimits) -> Audio:
    """The mean of all channels, resampled; also of a video, whose sound it is."""
    try:
        with soundfile.SoundFile(path) as file:
            samples = _joined(_resampled(_blocks(file, limits), limits.rate))
    except soundfile.LibsndfileError:  # not a kind of its own; FFmpeg knows more of them
        with opened_container(path) as container:
            if not container.streams.audio:
                raise MediaError(f"{path} has no sound; give one that has") from None
            frames = _until(container.decode(audio=0), limits.max_seconds)
            samples = _joined(_resampled(frames, limits.rate))
    if samples.size == 0:
        raise MediaError(f"{path} holds no sound; replace it or leave it out")
    if not np.isfinite(samples).all():
        raise MediaError(f"{path} holds NaN or infinity; replace it or leave it out")
    longest = max(1, int(limits.max_seconds * limits.rate))
    return Audio(samples[:longest].clip(-1, 1), limits.rate)


def _blocks(file: soundfile.SoundFile, limits: MediaLimits) -> Iterator[av.AudioFrame]:
    longest = max(1, int(limits.max_seconds * file.samplerate))
    for block in file.blocks(BLOCK, frames=longest, dtype="float32", always_2d=True):
        frame = av.AudioFrame.from_ndarray(block.mean(axis=1)[None], format="flt", layout="mono")
        frame.sample_rate = file.samplerate
        yield frame


def _until(frames: Iterable[av.AudioFrame], max_seconds: float) -> Iterator[av.AudioFrame]:
    """The frames of the first seconds."""
    seconds = 0.0
    for frame in frames:
        yield frame
        seconds += frame.samples / frame.sample_rate
        if seconds >= max_seconds:
            return


def _resampled(frames: Iterable[av.AudioFrame], rate: int) -> Iterator[np.ndarray]:
    resampler = AudioResampler(format="flt", layout="mono", rate=rate)
    for frame in frames:
        frame.pts = None  # gaps between frames are not filled
        yield from (part.to_ndarray()[0] for part in resampler.resample(frame))
    yield from (part.to_ndarray()[0] for part in resampler.resample(None))


def _joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.float32), *parts])

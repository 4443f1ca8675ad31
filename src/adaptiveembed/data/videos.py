"""Videos as an encoder takes them: some frames, spread over time, all of one size."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
from av.container import InputContainer

from adaptiveembed.data.limits import MediaLimits
from adaptiveembed.data.media import Video
from adaptiveembed.data.pictures import smaller_size
from adaptiveembed.errors import MediaError

OVERSAMPLING = 4
"""Times the frames that are wanted, from which they are chosen when the video has ended. How long a
video lasts is known only then: what its file says is often wrong."""

ROUNDING = 1e-6
"""Seconds by which a frame may come before it is due."""


class _Frame(NamedTuple):
    seconds: float
    pixels: np.ndarray


def read_video(path: Path, limits: MediaLimits) -> Video:
    """Frames at ``frames_per_second``, fewer a second where there would be too many."""
    with opened_container(path) as container:
        frames = _sampled(_frames(path, container, limits), limits)
    if not frames:
        raise MediaError(f"{path} has no frame that can be read; replace it or leave it out")
    count = min(len(frames), limits.max_frames)
    chosen = [frames[place] for place in np.linspace(0, len(frames) - 1, count).round().astype(int)]
    seconds = chosen[-1].seconds - chosen[0].seconds
    rate = (count - 1) / seconds if seconds > 0 else limits.frames_per_second
    return Video(np.stack([frame.pixels for frame in chosen]), rate)


def opened_container(path: Path) -> InputContainer:
    """The file, opened so that nothing in it leads to another place than this machine's files."""
    return av.open(f"file:{path}", options={"protocol_whitelist": "file"})


def _frames(
    path: Path, container: InputContainer, limits: MediaLimits
) -> Iterator[tuple[float, av.VideoFrame]]:
    """Each frame with its seconds from the first."""
    if not container.streams.video:
        raise MediaError(f"{path} has no moving pictures; give a video")
    stream = container.streams.video[0]
    if stream.width * stream.height > limits.max_source_pixels:
        raise MediaError(
            f"{path} has frames of {stream.width} × {stream.height} pixels and at most "
            f"{limits.max_source_pixels:,} are read; make it smaller or raise max_source_pixels"
        )
    stream.thread_type = "AUTO"
    usual = 1 / float(stream.average_rate or limits.frames_per_second)
    seconds, start = -usual, float("nan")
    for frame in container.decode(stream):
        seconds = seconds + usual if frame.pts is None else frame.time
        start = seconds if np.isnan(start) else start
        yield seconds - start, frame


def _sampled(frames: Iterator[tuple[float, av.VideoFrame]], limits: MediaLimits) -> list[_Frame]:
    """Frames at equal distances, which double whenever there are too many of them."""
    kept: list[_Frame] = []
    size: tuple[int, int] | None = None
    distance, due = 1 / limits.frames_per_second, 0.0
    for seconds, frame in frames:
        if seconds > limits.max_seconds:
            break
        if seconds < due - ROUNDING:
            continue
        size = size or smaller_size(frame.width, frame.height, limits.max_frame_pixels)
        kept.append(_Frame(seconds, _pixels(frame, size)))
        if len(kept) == OVERSAMPLING * limits.max_frames:
            kept, distance = kept[::2], 2 * distance
        due = distance * (np.floor((seconds + ROUNDING) / distance) + 1)
    return kept


def _pixels(frame: av.VideoFrame, size: tuple[int, int]) -> np.ndarray:
    width, height = size
    smaller = frame.reformat(width=width, height=height, format="rgb24", interpolation="AREA")
    # The angle is counterclockwise, as NumPy counts.
    return np.ascontiguousarray(np.rot90(smaller.to_ndarray(), round(frame.rotation / 90)))

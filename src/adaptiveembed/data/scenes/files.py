"""Media as files that lose nothing: PNG, lossless video and sound of 16 bits."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TextIO

import av
import PIL.Image
import soundfile

from adaptiveembed.data.media import Audio, Image, Media, Video
from adaptiveembed.errors import MediaError
from adaptiveembed.structure.direction import Modality

SUFFIXES = {Modality.IMAGE: ".png", Modality.VIDEO: ".mkv", Modality.AUDIO: ".wav"}


def write_media(media: Media, path: Path) -> None:
    """Write the media to a file, which appears whole or not at all."""
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    match media:
        case Image():
            _write_image(media, partial)
        case Video():
            _write_video(media, partial)
        case Audio():
            _write_audio(media, partial)
        case _:
            raise MediaError(f"{path} would hold {media.modality}; texts stand in the manifest")
    partial.replace(path)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """A text file to write, which appears when all is written, or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        yield file
    partial.replace(path)


def _write_image(media: Image, path: Path) -> None:
    PIL.Image.fromarray(media.pixels).save(path, format="PNG", compress_level=1)


def _write_video(media: Video, path: Path) -> None:
    """FFV1 in Matroska, red, green and blue as they are: what is read back is what was drawn."""
    height, width = media.frames.shape[1:3]
    with av.open(path, "w", format="matroska") as container:
        rate = Fraction(media.frames_per_second).limit_denominator(1000)
        stream = container.add_stream("ffv1", rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "bgr0"
        stream.thread_count = 1
        for frame in media.frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def _write_audio(media: Audio, path: Path) -> None:
    soundfile.write(path, media.samples, media.rate, subtype="PCM_16", format="WAV")

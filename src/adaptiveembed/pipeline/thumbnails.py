"""Media small enough for a page, which carries them in itself: pictures as data, texts as text."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO

import numpy as np
from PIL import Image as Pillow

from adaptiveembed.data.media import Audio, Image, Media, Text, Video

LONGEST_SIDE = 128
"""Pixels of the longer side of a picture, at most."""
LONGEST_TEXT = 420
JPEG_QUALITY = 82
WAVE_BARS = 64
NOTHING = '<div class="thumb nothing">not at hand</div>'


def thumbnail(media: Media | None, name: str) -> str:
    """A medium in HTML: a picture, the middle of a video, the shape of a sound, or a text.

    ``name`` says what it is to whoever cannot see it.
    """
    match media:
        case Text():
            return f'<div class="words">{escape(shortened(media.text))}</div>'
        case Image():
            return _picture(media.pixels, name)
        case Video():
            seconds = len(media.frames) / media.frames_per_second
            middle = _picture(media.frames[len(media.frames) // 2], f"{name}, its middle")
            return f'<div class="medium">{middle}<small>video, {seconds:.1f} s</small></div>'
        case Audio():
            return _wave(media, name)
        case _:
            return NOTHING


def shortened(text: str, length: int = LONGEST_TEXT) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def picture_data(pixels: np.ndarray) -> str:
    """A small picture as the address that holds it."""
    picture = Pillow.fromarray(np.ascontiguousarray(pixels, dtype=np.uint8))
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = BytesIO()
    picture.save(file, format="JPEG", quality=JPEG_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def _picture(pixels: np.ndarray, name: str) -> str:
    return f'<img class="thumb" src="{picture_data(pixels)}" alt="{escape(name)}">'


def _wave(sound: Audio, name: str) -> str:
    """How loud a sound is, from its beginning to its end."""
    seconds = len(sound.samples) / sound.rate
    bars = "".join(
        f'<rect x="{2 * place}" y="{20 - 19 * height:.1f}" width="1.4" height="{38 * height:.1f}"/>'
        for place, height in enumerate(loudness(sound.samples, WAVE_BARS))
    )
    wave = (
        f'<svg class="wave" role="img" viewBox="0 0 {2 * WAVE_BARS} 40" aria-label="{escape(name)}"'
        f">{bars}</svg>"
    )
    return f'<div class="medium">{wave}<small>sound, {seconds:.1f} s</small></div>'


def loudness(samples: np.ndarray, parts: int) -> list[float]:
    """The largest sample of each of so many parts, beside the largest of all; silence is thin."""
    heights = [
        float(np.abs(part).max()) if len(part) else 0.0 for part in np.array_split(samples, parts)
    ]
    loudest = max(heights)
    return [max(0.03, height / loudest) if loudest else 0.03 for height in heights]

"""Pictures as an encoder takes them: upright, red, green and blue, no larger than needed."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image as Pillow
from PIL import ImageOps, UnidentifiedImageError

from adaptiveembed.data.limits import MediaLimits
from adaptiveembed.data.media import Image
from adaptiveembed.errors import MediaError

FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""What is opened. Others are not tried: some of them run programs."""

WHITE = (255, 255, 255, 255)


def read_picture(path: Path, limits: MediaLimits) -> Image:
    """The picture as it should be looked at; of an animation, its first frame.

    What is transparent is seen on white.
    """
    with _without_warnings(), _opened(path) as picture:
        if picture.width * picture.height > limits.max_source_pixels:
            raise _too_large(path, f"{picture.width} × {picture.height} pixels", limits)
        scalable = _scalable(picture)
        scalable.thumbnail(smaller_size(scalable.width, scalable.height, limits.max_pixels))
        return Image(np.array(_opaque(ImageOps.exif_transpose(scalable))))


def smaller_size(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """The largest size of the same shape that has at most so many pixels."""
    scale = min(1.0, (max_pixels / (width * height)) ** 0.5)
    # A long strip cannot be thinner than one pixel.
    smaller = min(max(1, int(width * scale)), max_pixels)
    return smaller, max(1, min(int(height * scale), max_pixels // smaller))


def _opened(path: Path) -> Pillow.Image:
    try:
        return Pillow.open(path, formats=FORMATS)
    except UnidentifiedImageError:
        kinds = ", ".join(FORMATS)
        raise MediaError(
            f"{path} is no picture of a kind that is read ({kinds}); convert or replace it"
        ) from None
    except Pillow.DecompressionBombError:
        raise MediaError(f"{path} has more pixels than are safe to read; make it smaller") from None


def _scalable(picture: Pillow.Image) -> Pillow.Image:
    """The picture in a mode whose pixels can be averaged."""
    if picture.mode in {"P", "PA"}:
        upright = ImageOps.exif_transpose(picture)
        return upright.convert("RGBA" if picture.has_transparency_data else "RGB")
    if picture.mode == "1":
        return ImageOps.exif_transpose(picture).convert("L")
    if picture.mode == "I" or picture.mode.startswith("I;16"):
        # 16 bits of grey, which Pillow itself would cut off at 255
        grey = np.array(ImageOps.exif_transpose(picture)) / 257
        return Pillow.fromarray(grey.clip(0, 255).astype(np.uint8))
    if picture.mode == "F":
        raise ValueError("its pixels are fractions without a scale")
    return picture


def _opaque(picture: Pillow.Image) -> Pillow.Image:
    """The picture in red, green and blue, 8 bits each."""
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    seen = picture.convert("RGBA")
    return Pillow.alpha_composite(Pillow.new("RGBA", seen.size, WHITE), seen).convert("RGB")


def _too_large(path: Path, size: str, limits: MediaLimits) -> MediaError:
    return MediaError(
        f"{path} has {size} and at most {limits.max_source_pixels:,} pixels are read; make it "
        f"smaller or raise max_source_pixels"
    )


_readers = 0
_counting = threading.Lock()
_silence = warnings.catch_warnings()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Leave out what Pillow warns of, in all threads: we raise an error or can use the picture.

    Python keeps one list of filters for all threads, so the first reader changes it and the last
    one restores it.
    """
    global _readers, _silence  # noqa: PLW0603 - as global as what it guards
    with _counting:
        if _readers == 0:
            _silence = warnings.catch_warnings()
            _silence.__enter__()
            warnings.filterwarnings("ignore", module=r"PIL\.")
        _readers += 1
    try:
        yield
    finally:
        with _counting:
            _readers -= 1
            if _readers == 0:
                _silence.__exit__(None, None, None)

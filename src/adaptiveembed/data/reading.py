"""Media read from files, bounded in bytes, pixels and seconds; what is wrong is a MediaError."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from adaptiveembed.data.limits import MediaLimits
from adaptiveembed.data.media import Media, Text
from adaptiveembed.data.pictures import read_picture
from adaptiveembed.data.sounds import read_sound
from adaptiveembed.data.videos import read_video
from adaptiveembed.errors import AdaptiveEmbedError, MediaError
from adaptiveembed.structure.direction import Modality

__all__ = ["ENDINGS", "MediaLimits", "content_key", "modality_of", "read_media"]

ENDINGS: Mapping[Modality, frozenset[str]] = {
    Modality.TEXT: frozenset({".md", ".txt"}),
    Modality.IMAGE: frozenset(
        {".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
    ),
    Modality.VIDEO: frozenset(
        {".3gp", ".avi", ".flv", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ogv"}
        | {".ts", ".webm", ".wmv"}
    ),
    Modality.AUDIO: frozenset(
        {".aac", ".aif", ".aiff", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".wma"}
    ),
}
"""How the names of files end."""

KEY_BYTES = 16


def modality_of(path: str | Path) -> Modality:
    """The modality of a file, by how its name ends."""
    ending = Path(path).suffix.lower()
    for modality, endings in ENDINGS.items():
        if ending in endings:
            return modality
    known = ", ".join(sorted(frozenset[str]().union(*ENDINGS.values())))
    raise MediaError(
        f"{path} ends in {ending or 'nothing'}, which tells no modality; known are {known}"
    )


def read_media(path: str | Path, modality: Modality, limits: MediaLimits | None = None) -> Media:
    """The decoded file, cut down to the limits."""
    path, limits = Path(path), limits or MediaLimits()
    _require_file(path, limits)
    try:
        return _READERS[modality](path, limits)
    except AdaptiveEmbedError:
        raise
    except Exception as error:  # a decoder may raise anything when bytes are broken
        raise MediaError(
            f"{path} cannot be read as {modality} ({_reason(error)}); replace it or leave it out"
        ) from error


def content_key(source: str | Path, limits: MediaLimits | None = None) -> str:
    """A text that is equal for equal content: of a ``Path``, its bytes; of a ``str``, itself.

    With limits, it differs also where other limits would let other parts of a file be read.
    """
    bounds = b"" if limits is None else hashlib.blake2b(repr(limits).encode()).digest()
    digest = hashlib.blake2b(digest_size=KEY_BYTES, key=bounds)
    if isinstance(source, str):
        digest.update(source.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, lambda: digest).hexdigest()
    except OSError as error:
        raise MediaError(f"{source} cannot be read ({_reason(error)}); correct the path") from error


def _read_text(path: Path, limits: MediaLimits) -> Text:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise MediaError(
            f"{path} is not UTF-8 at byte {error.start + 1}; save it as UTF-8"
        ) from None
    if not text.strip():
        raise MediaError(f"{path} holds no text; replace it or leave it out")
    return Text(text)


_READERS: Mapping[Modality, Callable[[Path, MediaLimits], Media]] = {
    Modality.TEXT: _read_text,
    Modality.IMAGE: read_picture,
    Modality.VIDEO: read_video,
    Modality.AUDIO: read_sound,
}


def _require_file(path: Path, limits: MediaLimits) -> None:
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise MediaError(f"{path} cannot be read ({_reason(error)}); correct the path") from None
    if not path.is_file():
        raise MediaError(f"{path} is not a file; correct the path")
    if size == 0:
        raise MediaError(f"{path} is empty; replace it or leave it out")
    if size > limits.max_bytes:
        raise MediaError(
            f"{path} has {size:,} bytes and at most {limits.max_bytes:,} are read; make it smaller "
            f"or raise max_bytes"
        )


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)

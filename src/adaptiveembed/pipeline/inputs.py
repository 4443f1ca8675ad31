"""What people hand to a model, as media: a text is a ``str``, a file is a ``Path``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PillowImage

from adaptiveembed.data.limits import MediaLimits
from adaptiveembed.data.media import Audio, Image, Media, Text, Video
from adaptiveembed.data.reading import modality_of, read_media
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import DtypeError, EmptyBatchError, EncoderError, SettingError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.structure.views import stacked

MediaLike = str | Path | PillowImage.Image | Text | Image | Video | Audio
"""One item: a text, a file, a picture, or decoded media."""

FEATURES = "features"
"""The encoder's name where features were brought along, and nothing can be encoded."""


@dataclass(frozen=True)
class EncoderFacts:
    """Which encoder made the features of one modality."""

    name: str
    """``training-free``, ``module:object``, or ``features``."""
    fingerprint: str
    """What the features changed with."""
    space: str = ""
    """Where global features live."""
    matryoshka_widths: tuple[int, ...] = ()
    """Where global features may be cut."""

    def load(self, modality: Modality) -> Encoder:
        """The encoder, if it still is the one that the features were made by."""
        if self.name == FEATURES:
            raise EncoderError(
                f"the {modality} features of this model were brought along, and no encoder is "
                f"known; encode {modality} yourself, and give EncodedMedia or, to the command "
                f"search, --features {modality}=FILE"
            )
        encoder = load_encoder(self.name, modality)
        if encoder.fingerprint != self.fingerprint:
            raise EncoderError(
                f"{self.name} now has fingerprint {encoder.fingerprint}, and this model was "
                f"trained on features of {self.fingerprint}; bring that encoder back, or train "
                f"again"
            )
        return encoder


def as_items(given: object) -> list[Any]:
    """One item or many, as a list of at least one."""
    if isinstance(given, MediaLike):
        return [given]
    if not isinstance(given, Sequence):
        raise DtypeError(f"got {type(given).__name__}; {_WANTED}")
    items = list(given)
    if not items:
        raise EmptyBatchError("there is nothing to encode; give at least one item")
    return items


_WANTED = (
    "a text is a str, a file a Path; pictures, media and EncodedMedia are taken as they are, and "
    "several of one kind are a list"
)


def known_modality(name: str) -> Modality:
    """The modality of this name."""
    try:
        return Modality(name)
    except ValueError:
        raise SettingError(
            f"there is no modality {name!r}; choose one of {', '.join(Modality)}"
        ) from None


def common_modality(items: Sequence[object]) -> Modality:
    """The one modality of all items."""
    found = list(dict.fromkeys(map(_modality, items)))
    if len(found) > 1:
        raise SettingError(
            f"items of {found[0]} and of {found[1]} were given together; give one modality a call"
        )
    return found[0]


def as_media(item: MediaLike, limits: MediaLimits | None = None) -> Media:
    """The item, decoded."""
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, Path):
        return read_media(item, modality_of(item), limits)
    if isinstance(item, PillowImage.Image):
        return Image(np.asarray(item.convert("RGB")))
    return item


def encoded_in_batches(
    encoder: Encoder, items: Sequence[MediaLike], batch_size: int
) -> EncodedMedia:
    """All items encoded, a batch at a time, in their order."""
    starts = range(0, len(items), batch_size)
    parts = [
        encoder.encode([as_media(item) for item in items[start : start + batch_size]])
        for start in starts
    ]
    return stacked(parts)


def _modality(item: object) -> Modality:
    if isinstance(item, str):
        return Modality.TEXT
    if isinstance(item, Path):
        return modality_of(item)
    if isinstance(item, PillowImage.Image):
        return Modality.IMAGE
    if isinstance(item, Text | Image | Video | Audio):
        return item.modality
    raise DtypeError(f"got {type(item).__name__}; {_WANTED}")

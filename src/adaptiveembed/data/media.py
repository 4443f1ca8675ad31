"""Media as encoders take them: read, decoded and bounded."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from adaptiveembed.structure.direction import Modality


@dataclass(frozen=True)
class Text:
    """A piece of text."""

    text: str

    @property
    def modality(self) -> Modality:
        return Modality.TEXT


@dataclass(frozen=True, eq=False)
class Image:
    """A picture: red, green and blue from 0 to 255 [height, width, 3]."""

    pixels: np.ndarray

    @property
    def modality(self) -> Modality:
        return Modality.IMAGE


@dataclass(frozen=True, eq=False)
class Video:
    """Frames of one size [frames, height, width, 3], from 0 to 255, and how many a second has."""

    frames: np.ndarray
    frames_per_second: float

    @property
    def modality(self) -> Modality:
        return Modality.VIDEO


@dataclass(frozen=True, eq=False)
class Audio:
    """One channel of sound [samples], float32 from -1 to 1, and how many samples a second has."""

    samples: np.ndarray
    rate: int

    @property
    def modality(self) -> Modality:
        return Modality.AUDIO


Media: TypeAlias = Text | Image | Video | Audio
"""One decoded item."""

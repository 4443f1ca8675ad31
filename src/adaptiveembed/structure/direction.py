"""Modalities, and which of them searches in which."""

from dataclasses import dataclass
from enum import StrEnum


class Modality(StrEnum):
    """What kind of thing an item is."""

    TEXT = "text"
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"


@dataclass(frozen=True)
class Direction:
    """Queries of one modality search a gallery of another; prints as ``text→image``."""

    source: Modality
    target: Modality

    def __str__(self) -> str:
        return f"{self.source}→{self.target}"

    @property
    def reversed(self) -> "Direction":
        return Direction(source=self.target, target=self.source)

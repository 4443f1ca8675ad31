"""The built-in encoder: no weights to download, nothing learned, the same features everywhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaptiveembed.data.media import Media
from adaptiveembed.encoders.protocol import checked_batch
from adaptiveembed.encoders.training_free.audio import describe_audio
from adaptiveembed.encoders.training_free.image import describe_images
from adaptiveembed.encoders.training_free.projecting import Described, project
from adaptiveembed.encoders.training_free.text import encode_texts
from adaptiveembed.encoders.training_free.video import describe_videos
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia

VERSION = 2
"""Raised whenever anything in this package changes a feature, so that old features are not mixed
with new ones."""

DESCRIBERS: Mapping[Modality, Callable[[Sequence[Any]], Described]] = {
    Modality.IMAGE: describe_images,
    Modality.VIDEO: describe_videos,
    Modality.AUDIO: describe_audio,
}


@dataclass(frozen=True)
class TrainingFreeEncoder:
    """Encodes media of one modality by fixed statistics and seeded random projections.

    Every modality has a space of its own: what aligns two of them is learned on top.

    >>> from adaptiveembed.data.media import Text
    >>> TrainingFreeEncoder(Modality.TEXT).encode([Text("Two cats asleep."), Text("A dog.")])
    EncodedMedia(2 items, 3 states, width 512)
    """

    modality: Modality
    width: int = 512
    """Numbers of a global feature and of a hidden state; more hold more of what is measured."""
    seed: int = 0
    """Another seed gives other projections of the same measurements."""

    def __post_init__(self) -> None:
        if self.width < 8:
            raise SettingError(f"width is {self.width}; give at least 8")

    @property
    def name(self) -> str:
        return f"training-free {self.modality}"

    @property
    def fingerprint(self) -> str:
        return f"training-free-{self.modality}-v{VERSION}-width{self.width}-seed{self.seed}"

    @property
    def modalities(self) -> frozenset[Modality]:
        return frozenset({self.modality})

    @property
    def space(self) -> str:
        return self.fingerprint

    @property
    def matryoshka_widths(self) -> tuple[int, ...]:
        return ()

    def encode(self, batch: Sequence[Media]) -> EncodedMedia:
        """Global features of length 1, and hidden states of mean square 1."""
        items: Sequence[Any] = checked_batch(self, batch)
        if self.modality is Modality.TEXT:
            return encode_texts(items, self._key, self.width)
        return project(DESCRIBERS[self.modality](items), self._key, self.width)

    @property
    def _key(self) -> str:
        return f"{self.modality} {self.seed}"

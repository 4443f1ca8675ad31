"""Hidden states that are encoded whenever they are read, for data too large to keep them.

Global features are stored. What is read is rounded as the store rounds it, so that a training on
live states is that on stored ones, to the bit where the encoder gives equal bits in any batch.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.data.media import Media
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.shapes import GlobalFeatures
from adaptiveembed.structure.encoded import EncodedMedia, Features
from adaptiveembed.structure.views import stacked

BATCH_SIZE = 64
READERS = 2


@dataclass(frozen=True, eq=False)
class LiveFeatures:
    """Items whose media are read and encoded anew for every batch."""

    stored: Features
    """The global features, in the order of the items."""
    load_encoder: Callable[[], Encoder]
    """Called when something is encoded for the first time."""
    media_of: Callable[[int], Media]
    """Reads and decodes the item at a place."""

    def __len__(self) -> int:
        return len(self.stored)

    @property
    def width(self) -> int:
        return self.stored.width

    def global_features(self) -> GlobalFeatures:
        """The global features of all items, as they are stored."""
        return self.stored.global_features()

    def read(self, places: Sequence[int] | np.ndarray) -> EncodedMedia:
        """The items at these places, some of them encoded at a time."""
        chosen = [int(place) for place in places]
        starts = range(0, len(chosen), BATCH_SIZE)
        with ThreadPoolExecutor(READERS, "read-media") as pool:
            media = pool.map(self.media_of, chosen)
            batches = (
                [next(media) for _ in chosen[start : start + BATCH_SIZE]] for start in starts
            )
            return _as_stored(stacked([self._encode(batch) for batch in batches]))

    def _encode(self, batch: Sequence[Media]) -> EncodedMedia:
        # training and validation read from two threads, which no encoder has to bear
        with self._alone:
            return self._encoder.encode(batch)

    @cached_property
    def _alone(self) -> Lock:
        return Lock()

    @cached_property
    def _encoder(self) -> Encoder:
        return self.load_encoder()


def _as_stored(encoded: EncodedMedia) -> EncodedMedia:
    return EncodedMedia(
        _rounded(encoded.global_feature), _rounded(encoded.hidden_states), encoded.mask
    )


def _rounded(values: Tensor) -> Tensor:
    return values.detach().to("cpu", torch.float16).float()

"""What of an embedder is fitted before training: maps of global features, the scale of states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from adaptiveembed.representation.alignment import FeaturePairs, LinearMap, fitted_alignment
from adaptiveembed.representation.global_position import shared_narrowing
from adaptiveembed.representation.settings import EmbedderSettings, GlobalPosition
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia, Features

Places = Sequence[int] | np.ndarray
"""Places of items in their features."""

MEASURED_ITEMS = 2_048
"""Items whose states are measured in order to standardise states."""

ITEMS_AT_ONCE = 256
"""Items whose states are read at a time."""


@dataclass(frozen=True, eq=False)
class FittingData:
    """The features of both modalities, and at which places of both the training pairs stand."""

    source: Features
    target: Features
    modalities: tuple[Modality, Modality]
    training: Places
    validation: Places | None
    """Other pairs, to choose the regularisation on; without them some training pairs are held out
    for this choice."""
    matryoshka_widths: tuple[int, ...]
    """The widths to which the encoder says that features may be cut."""
    seed: int

    def global_pairs(self, places: Places) -> FeaturePairs:
        """The global features of the pairs at these places."""
        rows = torch.as_tensor(np.asarray(places, dtype=np.int64))
        return FeaturePairs(
            self.source.global_features()[rows],
            self.target.global_features()[rows],
            self.modalities,
        )

    def some_states(self) -> tuple[Iterator[EncodedMedia], Iterator[EncodedMedia]]:
        """States of randomly chosen training pairs, the source's and the target's."""
        return _sample(self.source, self), _sample(self.target, self)


def fitted_maps(settings: EmbedderSettings, data: FittingData) -> tuple[LinearMap, LinearMap]:
    """How the global features of both sides become position 0, in those modes that are fitted."""
    pairs = data.global_pairs(data.training)
    if settings.global_position is GlobalPosition.FROZEN:
        narrowed = shared_narrowing(pairs, settings.dim, data.matryoshka_widths)
        return narrowed, narrowed
    judges = None if data.validation is None else data.global_pairs(data.validation)
    found = fitted_alignment(pairs, settings.dim, judges, data.seed)
    return found.source, found.target


def _sample(features: Features, data: FittingData) -> Iterator[EncodedMedia]:
    places = np.asarray(data.training, dtype=np.int64)
    # ascending, because features are read fastest in the order in which they lie
    chosen = np.sort(np.random.default_rng(data.seed).permutation(places)[:MEASURED_ITEMS])
    starts = range(0, len(chosen), ITEMS_AT_ONCE)
    return (features.read(chosen[start : start + ITEMS_AT_ONCE]) for start in starts)

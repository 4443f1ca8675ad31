"""Encoded media that mean something: both modalities of an item are views of one hidden cause."""

import numpy as np
import torch

from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.settings import EmbedderSettings
from adaptiveembed.structure import Modality
from adaptiveembed.structure.encoded import EncodedMedia

TEXT, IMAGE = Modality.TEXT, Modality.IMAGE

SMALL = EmbedderSettings(dim=8, layout="2+2", width=8, layers=2, heads=2, feed_forward=16)
"""An embedder that is quick to compute with."""


def encoded_media(items, width, *, longest=5, seed=0, cause=None):
    """Items of 1 to ``longest`` states around a global feature, padded with zeros."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((items, width))
    if cause is not None:
        features = 0.3 * features + cause @ rng.standard_normal((cause.shape[1], width))
    lengths = rng.integers(1, longest + 1, size=items)
    mask = torch.from_numpy(np.arange(longest) < lengths[:, None])
    states = features[:, None] + rng.standard_normal((items, longest, width))
    return EncodedMedia(
        torch.from_numpy(features).float(),
        torch.from_numpy(states).float() * mask[..., None],
        mask,
    )


def pair_of_media(items, widths=(6, 5), *, longest=5, seed=0):
    """The encoded media of as many pairs, source and target."""
    cause = np.random.default_rng(seed + 1).standard_normal((items, 4))
    source, target = (
        encoded_media(items, width, longest=longest, seed=seed + 2 + side, cause=cause)
        for side, width in enumerate(widths)
    )
    return source, target


def fitted_embedder(settings=SMALL, items=30, widths=(6, 5), seed=0, kind=PairEmbedder):
    """A fitted embedder of texts and images, and what it was fitted on."""
    source, target = pair_of_media(items, widths)
    embedder = kind.fitted(settings, (TEXT, source), (IMAGE, target), range(items), seed)
    return embedder, source, target

"""From descriptions to hidden states and global features, through fixed random features."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt

import torch
from torch import Tensor

from adaptiveembed.encoders.training_free.chance import biases, projection
from adaptiveembed.shapes import (
    Descriptions,
    FeatureVectors,
    GlobalFeatures,
    ItemDescriptions,
    PartMeans,
    StateDetails,
    StateMask,
    StateVectors,
    Summaries,
)
from adaptiveembed.structure.encoded import EncodedMedia

BEND = 1.5
"""How far random features reach, as a multiple of the length of what they look at."""


@dataclass(frozen=True)
class Described:
    """What is measured of a batch of items, before any projection."""

    descriptions: Descriptions
    """What each state is, and where."""
    details: StateDetails
    """What more is said of each state, and too much for the global feature."""
    mask: StateMask
    """Which states are real."""
    summaries: Summaries
    """What is said of the whole item, beside what is pooled from its descriptions."""


def project(described: Described, key: str, width: int) -> EncodedMedia:
    """Hidden states of mean square 1 and global features of length 1."""
    full = torch.cat((described.descriptions, described.details), dim=2)
    states = root_mean_square_one(_states(full, key, width))
    features = length_one(_global_features(described, key, width))
    return EncodedMedia(
        features, states.masked_fill(~described.mask.unsqueeze(2), 0), described.mask
    )


def _states(descriptions: Descriptions, key: str, width: int) -> StateVectors:
    """Half a projection of descriptions, half random features of them.

    From the first every single number can be read linearly, from the second combinations of them.
    """
    half = width // 2
    plain = descriptions @ cached_projection(f"{key} plain", descriptions.shape[2], half)
    curved = random_features(descriptions, f"{key} curved", width - half)
    return torch.cat((plain, curved), dim=2)


def _global_features(described: Described, key: str, width: int) -> GlobalFeatures:
    """A projection of what the descriptions are on the whole, how they vary, and their extremes."""
    descriptions, mask = described.descriptions, described.mask
    curved = random_features(descriptions, f"{key} pooled", width // 2)
    mean, deviation = mean_and_deviation(curved, mask)
    parts = (
        *mean_and_deviation(descriptions, mask),
        maximum(descriptions, mask),
        mean,
        deviation,
        described.summaries,
    )
    joint = torch.cat(parts, dim=1)
    return joint @ cached_projection(f"{key} global", joint.shape[1], width)


def random_features(descriptions: Descriptions, key: str, count: int) -> StateVectors:
    """Random directions of the descriptions, what lies below a random threshold set to zero."""
    directions = cached_projection(f"{key} directions", descriptions.shape[2], count)
    # a projection keeps lengths; here each single number is to be as large as a description is long
    scale = BEND * (count / descriptions.shape[2]) ** 0.5
    thresholds = _cached_biases(f"{key} biases", count)
    return torch.relu(descriptions @ directions * scale + thresholds)


def mean_and_deviation(
    states: StateVectors, mask: StateMask
) -> tuple[GlobalFeatures, GlobalFeatures]:
    """The mean and the deviation of every number over the real states."""
    real = mask.unsqueeze(2)
    count = real.sum(dim=1)
    mean = states.masked_fill(~real, 0).sum(dim=1) / count
    apart = (states - mean.unsqueeze(1)).masked_fill(~real, 0)
    return mean, (apart.square().sum(dim=1) / count).sqrt()


def maximum(states: StateVectors, mask: StateMask) -> GlobalFeatures:
    """The maximum of every number over the real states."""
    return states.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(dim=1)


def padded(parts: Sequence[Tensor]) -> tuple[Descriptions, StateMask]:
    """Items of unequal numbers of states as one batch, filled with zeros."""
    counts = torch.tensor([len(part) for part in parts])
    mask = torch.arange(int(counts.max())) < counts.unsqueeze(1)
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True), mask


def means_over_time(rows: ItemDescriptions, parts: int) -> PartMeans:
    """The means of the rows over so many equal parts of time; a row on an edge counts for both."""
    return torch.nn.functional.adaptive_avg_pool1d(rows.T, parts).T


def length_one(features: FeatureVectors) -> FeatureVectors:
    """Every feature divided by its length."""
    return torch.nn.functional.normalize(features, dim=-1)


def root_mean_square_one(states: FeatureVectors) -> FeatureVectors:
    """Every state divided by the root of its mean square, as a network's last layer leaves them."""
    return length_one(states) * sqrt(states.shape[-1])


cached_projection = cache(projection)
_cached_biases = cache(biases)

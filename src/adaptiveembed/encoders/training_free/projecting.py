"""From descriptions to hidden states and global features, through fixed random features."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

from adaptiveembed.encoders.training_free.chance import biases, projection
from adaptiveembed.shapes import (
    Descriptions,
    FeatureVectors,
    GlobalFeatures,
    ItemDescriptions,
    StateMask,
    StateVectors,
    Summaries,
)
from adaptiveembed.structure.encoded import EncodedMedia

BEND = 1.5
"""How far random features reach, as a multiple of the length of what they look at."""


@dataclass(frozen=True)
class Described:
    """What is measured of a batch of items, before any projection.

    ``descriptions`` say what each state is and where; ``summaries`` what the whole item is, beside
    what can be pooled from the descriptions.
    """

    descriptions: Descriptions
    mask: StateMask
    summaries: Summaries


def project(described: Described, key: str, width: int) -> EncodedMedia:
    """Hidden states of mean square 1 and global features of length 1.

    The first half of a state is a projection of its description, from which every number of it
    reads off linearly. The second half are rectified random features, from which combinations do.
    The global feature projects the means, deviations and maxima of both, and the summaries.
    """
    descriptions, mask = described.descriptions, described.mask
    inputs, half = descriptions.shape[2], width // 2
    plain = descriptions @ cached_projection(f"{key} plain", inputs, half)
    curved = random_features(descriptions, f"{key} curved", width - half)
    states = root_mean_square_one(torch.cat((plain, curved), dim=2))
    pools = (*pooled(descriptions, mask), *pooled(curved, mask), described.summaries)
    return EncodedMedia(
        length_one(joint_projection(pools, f"{key} global", width)),
        states.masked_fill(~mask.unsqueeze(2), 0.0),
        mask,
    )


def random_features(descriptions: Descriptions, key: str, count: int) -> StateVectors:
    """Random directions of the descriptions, what lies below a random threshold set to zero."""
    directions = cached_projection(f"{key} directions", descriptions.shape[2], count)
    # a projection keeps lengths; here each single number is to be as large as a description is long
    scale = BEND * (count / descriptions.shape[2]) ** 0.5
    thresholds = _cached_biases(f"{key} biases", count)
    return torch.relu(descriptions @ directions * scale + thresholds)


def pooled(
    states: StateVectors, mask: StateMask
) -> tuple[GlobalFeatures, GlobalFeatures, GlobalFeatures]:
    """The mean, the deviation and the maximum of every number over the real states."""
    real = mask.unsqueeze(2)
    count = real.sum(dim=1)
    mean = states.masked_fill(~real, 0.0).sum(dim=1) / count
    apart = (states - mean.unsqueeze(1)).masked_fill(~real, 0.0)
    deviation = (apart.square().sum(dim=1) / count).sqrt()
    return mean, deviation, states.masked_fill(~real, -torch.inf).amax(dim=1)


def joint_projection(parts: Sequence[Summaries], key: str, width: int) -> GlobalFeatures:
    """The projection of all parts side by side."""
    joint = torch.cat(tuple(parts), dim=1)
    return joint @ cached_projection(key, joint.shape[1], width)


def padded(parts: Sequence[ItemDescriptions]) -> tuple[Descriptions, StateMask]:
    """Items of unequal numbers of states as one batch, filled with zeros."""
    counts = torch.tensor([len(part) for part in parts])
    mask = torch.arange(int(counts.max())) < counts.unsqueeze(1)
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True), mask


def means_over_time(rows: ItemDescriptions, parts: int) -> ItemDescriptions:
    """The means of the rows over so many equal parts of time; a row on an edge counts for both."""
    return torch.nn.functional.adaptive_avg_pool1d(rows.T, parts).T


def length_one(features: FeatureVectors) -> FeatureVectors:
    """Every feature divided by its length."""
    return torch.nn.functional.normalize(features, dim=-1)


def root_mean_square_one(states: FeatureVectors) -> FeatureVectors:
    """Every state divided by the root of its mean square, as a network's last layer leaves them."""
    return length_one(states) * states.shape[-1] ** 0.5


cached_projection = cache(projection)
_cached_biases = cache(biases)

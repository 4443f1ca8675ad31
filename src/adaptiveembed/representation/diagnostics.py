"""Whether the candidates of an item say different things, or have collapsed into one vector."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adaptiveembed.errors import EmptyBatchError
from adaptiveembed.shapes import CandidateVectors
from adaptiveembed.structure.candidates import CandidateSets

ITEMS_AT_ONCE = 4096
"""Items that are looked at in one go."""


@dataclass(frozen=True)
class Spread:
    """How far apart the candidates of an item are, mean over the items.

    With cosine 1 and effective rank 1 all positions hold the same vector, and there is nothing to
    allocate.
    """

    cosine: float
    """Mean cosine between two different positions."""
    group_cosines: tuple[float, ...]
    """The same within each group; 1 for a group of one position."""
    effective_rank: float
    """How many different directions the positions take, from 1 to their number."""
    item_cosines: tuple[float, ...]
    """For every position, the mean cosine between two different items: 1 if it ignores them."""


def spread(candidates: CandidateSets) -> Spread:
    """How far apart the candidates of these items are."""
    if len(candidates) < 2:
        raise EmptyBatchError("the spread of a single item cannot be told; give at least two items")
    layout, vectors = candidates.layout, candidates.vectors.detach()
    cosines = _mean_gram(vectors)
    ends = (*layout.starts[1:], layout.num_candidates)
    groups = [slice(start, end) for start, end in zip(layout.starts, ends, strict=True)]
    return Spread(
        mean_cosine(cosines),
        tuple(mean_cosine(cosines[group, group]) for group in groups),
        _effective_rank(vectors),
        tuple(_item_cosines(vectors).tolist()),
    )


def mean_cosine(gram: Tensor) -> float:
    """The mean off the diagonal of a matrix of cosines; 1 if there is nothing off it."""
    size = len(gram)
    if size == 1:
        return 1.0
    return float((gram.sum() - gram.trace()) / (size * (size - 1)))


def effective_ranks(vectors: CandidateVectors) -> Tensor:
    """The exponential of the entropy of each item's squared singular values (Roy & Vetterli 2007).

    They are taken as shares of their sum.
    """
    exact = vectors.double()
    shares = torch.linalg.eigvalsh(exact @ exact.mT).clamp(min=0)
    shares = shares / shares.sum(dim=-1, keepdim=True)
    ranks: Tensor = torch.special.entr(shares).sum(dim=-1).exp()
    return ranks


def _effective_rank(vectors: Tensor) -> float:
    return float(
        torch.cat([effective_ranks(part) for part in torch.split(vectors, ITEMS_AT_ONCE)]).mean()
    )


def _mean_gram(vectors: Tensor) -> Tensor:
    """The mean over the items of all cosines between their positions."""
    parts = torch.split(vectors, ITEMS_AT_ONCE)
    total = sum((part.double() @ part.double().mT).sum(dim=0) for part in parts)
    return torch.as_tensor(total) / len(vectors)


def _item_cosines(vectors: Tensor) -> Tensor:
    """The mean cosine between two different items at every position.

    The squared length of a sum of unit vectors counts every pair twice and every vector once.
    """
    sums = sum(part.double().sum(dim=0) for part in torch.split(vectors, ITEMS_AT_ONCE))
    count = len(vectors)
    return (torch.as_tensor(sums).square().sum(dim=-1) - count) / (count * (count - 1))

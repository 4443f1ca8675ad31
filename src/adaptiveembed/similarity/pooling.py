"""Hierarchical pooling: many vectors of an item become a few, the means of Ward's clusters.

A rival of learned sets that needs no training: clusters of an item's vectors are merged, nearest
first, until a fixed number is left. Ward's cost of merging A and B is by how much their merging
adds to the squared distances from the mean,

    |A| |B| / (|A| + |B|) · ‖mean A - mean B‖²,

which for two unit vectors is 1 - cos: this is clustering by cosine.
"""

from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from adaptiveembed.errors import NotFiniteError, NotNormalizedError, SettingError
from adaptiveembed.similarity.ragged import RaggedSets
from adaptiveembed.similarity.tiling import MEMORY_BUDGET

SHORTEST_SUM = 1e-6
"""A sum of unit vectors that is shorter has no direction but that of rounding."""


def pooled(sets: RaggedSets, count: int, memory_budget: int = MEMORY_BUDGET) -> RaggedSets:
    """At most ``count`` unit vectors for each item: the mean directions of its clusters.

    They stand in the order of each cluster's first vector. An item of no more than ``count``
    vectors keeps them all, made unit. No item depends on the others or on its padding.
    """
    if count < 1:
        raise SettingError(f"pooling leaves at least 1 vector, got {count}")
    items = max(1, memory_budget // (4 * 8 * sets.mask.shape[1] ** 2))
    parts = [
        _pooled(sets[start : start + items], count, start) for start in range(0, len(sets), items)
    ]
    return RaggedSets(
        torch.cat([part.vectors for part in parts]), torch.cat([part.mask for part in parts])
    )


@torch.no_grad()
def _pooled(sets: RaggedSets, count: int, start: int) -> RaggedSets:
    unit = _unit(sets, start)
    first = cut(ward_tree(unit, sets.mask), sets.mask, count)
    is_first = sets.mask & (first == _places(sets.mask))
    column = (is_first.cumsum(dim=1) - 1).clamp_(min=0).gather(1, first)
    sums = unit.new_zeros(len(unit), count, unit.shape[2])
    sums.scatter_add_(1, column.unsqueeze(-1).expand_as(unit), unit)
    mask = torch.arange(count, device=unit.device) < is_first.sum(dim=1, keepdim=True)
    return RaggedSets(_directions(sums, mask, start).to(sets.vectors.dtype), mask)


class WardTree(NamedTuple):
    """How clusters merge until one is left, as an edge for every vector but the first.

    A cluster is called by its first vector. ``parents`` is the cluster into which the one called by
    this vector is merged, at the cost ``heights``; a cluster that stays has infinite height.
    """

    parents: Tensor  # [items, size]
    heights: Tensor  # [items, size]


def ward_tree(unit: Tensor, mask: Tensor) -> WardTree:
    """Ward's trees of all items at once; what is not in the mask is zero.

    Clusters that are each other's nearest can be merged at once, in any order: by Ward's cost, no
    merging brings another cluster nearer than both of its parts were.
    """
    tree = WardTree(
        _places(mask).clone(), torch.full(mask.shape, inf, dtype=unit.dtype, device=unit.device)
    )
    clusters = _Clusters(unit.clone(), mask.to(unit.dtype), tree.parents.clone())
    while clusters.sizes.shape[1] > 1:
        clusters = _merged(clusters, tree)
    return tree


def cut(tree: WardTree, mask: Tensor, count: int) -> Tensor:
    """For each vector the first one of its cluster, when no more than ``count`` are left."""
    order = tree.heights.argsort(dim=1, stable=True).argsort(dim=1)
    merged = order < (mask.sum(dim=1, keepdim=True) - count)
    first = torch.where(merged, tree.parents, _places(mask))
    for _ in range(mask.shape[1].bit_length()):
        first = first.gather(1, first)
    return first


class _Clusters(NamedTuple):
    """What is left to merge [items, clusters]; a cluster of size 0 is none."""

    sums: Tensor
    sizes: Tensor
    names: Tensor


def _merged(clusters: _Clusters, tree: WardTree) -> _Clusters:
    """The clusters after every two that are each other's nearest were merged."""
    heights, nearest = _costs(clusters).min(dim=-1)
    places = _places(nearest)
    mutual = (nearest.gather(1, nearest) == places) & heights.isfinite()
    items, later = (mutual & (nearest < places)).nonzero(as_tuple=True)
    earlier = nearest[items, later]
    sums, sizes, names = clusters
    absorbed = items, names[items, later]
    tree.parents[absorbed] = names[items, earlier]
    tree.heights[absorbed] = heights[items, later]
    sums[items, earlier] += sums[items, later]
    sizes[items, earlier] += sizes[items, later]
    sizes[items, later] = 0
    return _without_gaps(clusters)


def _costs(clusters: _Clusters) -> Tensor:
    """Ward's cost of every merging [items, clusters, clusters]; infinite where there is none."""
    gone = clusters.sizes == 0
    means = clusters.sums / clusters.sizes.masked_fill(gone, 1).unsqueeze(-1)
    squares = means.square().sum(dim=-1).masked_fill(gone, inf)
    apart = squares.unsqueeze(1) + squares.unsqueeze(2)
    apart.baddbmm_(means, means.mT, alpha=-2).clamp_(min=0)
    shares = clusters.sizes.masked_fill(gone, 1).reciprocal()
    costs = apart.div_(shares.unsqueeze(1) + shares.unsqueeze(2))
    costs.diagonal(dim1=1, dim2=2).fill_(inf)
    # Both halves must agree to the bit, or no two clusters might be each other's nearest.
    return torch.minimum(costs, costs.mT)


def _without_gaps(clusters: _Clusters) -> _Clusters:
    """The same clusters in the same order, as closely as the item with the most allows."""
    gone = clusters.sizes == 0
    left = int((~gone).sum(dim=1).max())
    order = gone.to(torch.uint8).argsort(dim=1, stable=True)[:, :left]
    rows = order.unsqueeze(-1).expand(-1, -1, clusters.sums.shape[2])
    return _Clusters(
        clusters.sums.gather(1, rows),
        clusters.sizes.gather(1, order),
        clusters.names.gather(1, order),
    )


def _places(like: Tensor) -> Tensor:
    return torch.arange(like.shape[1], device=like.device).expand(like.shape)


def _unit(sets: RaggedSets, start: int) -> Tensor:
    """The real vectors in double precision and made unit, zeros elsewhere."""
    vectors = sets.vectors.double().masked_fill(~sets.mask.unsqueeze(-1), 0)
    wrong = ~vectors.isfinite().flatten(1).all(dim=1)
    if wrong.any():
        raise NotFiniteError(
            f"a vector of item {start + int(wrong.nonzero()[0])} holds NaN or infinity; look for "
            f"the cause in what made it, or leave the item out"
        )
    lengths = torch.linalg.vector_norm(vectors, dim=-1)
    _require_lengths(lengths, sets.mask, 0.0, start)
    return _divided(vectors, lengths, sets.mask)


def _directions(sums: Tensor, mask: Tensor, start: int) -> Tensor:
    lengths = torch.linalg.vector_norm(sums, dim=-1)
    _require_lengths(lengths, mask, SHORTEST_SUM, start)
    return _divided(sums, lengths, mask)


def _divided(vectors: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    unit: Tensor = vectors / lengths.masked_fill(~mask, 1).unsqueeze(-1)
    return unit


def _require_lengths(lengths: Tensor, mask: Tensor, shortest: float, start: int) -> None:
    wrong = (lengths <= shortest) & mask
    if wrong.any():
        item, place = wrong.nonzero()[0].tolist()
        raise NotNormalizedError(
            f"vector {place} of item {start + item} has length {float(lengths[item, place]):.3g} "
            f"and no direction; leave the item out, or pool it to more vectors"
        )

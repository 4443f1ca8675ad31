"""MaxSim scores, and the responses of single vectors that the policy reads (App. A.4)."""

import torch
from torch import Tensor

from adaptiveembed.errors import ShapeError
from adaptiveembed.shapes import (
    GalleryPairs,
    GallerySets,
    PairScores,
    QueryPairs,
    QuerySets,
    Responses,
    ScoreMatrix,
)
from adaptiveembed.similarity.setsim import (
    bounded,
    matrix_cosines,
    needs_gradient,
    pair_cosines,
    require_same_space,
)
from adaptiveembed.similarity.tiling import accumulation_type, assembled, score_tiles


def maxsim_matrix(queries: QuerySets, gallery: GallerySets) -> ScoreMatrix:
    """The sum over a query's vectors of each one's greatest cosine, for all pairs.

    Sets may differ in size.
    """
    require_same_space(queries, gallery)
    if needs_gradient(queries, gallery):
        return _sum_of_maxima(queries, gallery)
    return assembled(_sum_of_maxima, queries, gallery)


def mean_maxsim_matrix(queries: QuerySets, gallery: GallerySets) -> ScoreMatrix:
    """MaxSim divided by the number of query vectors: a mean cosine, in [-1, 1]."""
    return bounded(maxsim_matrix(queries, gallery) / queries.shape[1])


def maxsim_pairs(queries: QueryPairs, gallery: GalleryPairs) -> PairScores:
    """MaxSim of query set i with gallery set i."""
    require_same_space(queries, gallery)
    if len(queries) != len(gallery):
        raise ShapeError(
            f"pairs need as many query sets as gallery sets, got {len(queries)} and {len(gallery)}"
            f"; use maxsim_matrix for all pairs"
        )
    return pair_cosines(queries, gallery).amax(-1).sum(-1)


def responses(queries: QuerySets, bank: GallerySets) -> Responses:
    """A_{i,n}: the greatest cosine of each query vector with the vectors of each bank item."""
    require_same_space(queries, bank)
    if needs_gradient(queries, bank):
        return _maxima(queries, bank)
    shape, kind = (*queries.shape[:2], len(bank)), accumulation_type(queries, bank)
    found = torch.empty(shape, dtype=kind, device=queries.device)
    for tile in score_tiles(_maxima, queries, bank):
        found[tile.queries, :, tile.gallery] = tile.scores
    return found


def _maxima(queries: Tensor, gallery: Tensor) -> Tensor:
    return matrix_cosines(queries, gallery).amax(-1)


def _sum_of_maxima(queries: Tensor, gallery: Tensor) -> Tensor:
    return _maxima(queries, gallery).sum(1)

"""SetSim: the mean cosine of the best one-to-one assignment of two equal-sized sets (Eq. 2)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.errors import DtypeError, ShapeError, UnequalCapacityError
from adaptiveembed.shapes import (
    Assignments,
    GalleryPairs,
    GallerySets,
    PairScores,
    QueryPairs,
    QuerySets,
    ScoreMatrix,
)
from adaptiveembed.similarity.assignment import (
    assignment_columns,
    best_total,
    require_supported_capacity,
)
from adaptiveembed.similarity.gradient import differentiable_scores
from adaptiveembed.similarity.kernels.calls import score_matrix
from adaptiveembed.similarity.kernels.panels import Scope, StoredVectors
from adaptiveembed.similarity.tiling import accumulation_type, assembled


def setsim_matrix(queries: QuerySets, gallery: GallerySets) -> ScoreMatrix:
    """SetSim of every query set with every gallery set of unit vectors, in [-1, 1].

    Lengths are neither measured nor mended here: candidate sets are checked when they are made,
    and `retrieval` reads half-precision vectors as unit vectors. On the CPU, sets
    that ask for no gradient get the canonical score: its bits depend on the two sets alone.
    """
    require_comparable(queries, gallery)
    if needs_gradient(queries, gallery):
        (scores,) = setsim_matrices(queries, gallery, (tuple(range(queries.shape[1])),))
        return scores
    if queries.device.type != "cpu" or accumulation_type(queries, gallery) != torch.float32:
        return assembled(_general_matrix, queries, gallery)
    if queries.dtype == gallery.dtype == torch.float32:
        return _canonical_matrix(queries, gallery)
    return assembled(_canonical_matrix, queries, gallery)


def setsim_matrices(
    queries: QuerySets, gallery: GallerySets, position_sets: Sequence[tuple[int, ...]]
) -> tuple[ScoreMatrix, ...]:
    """SetSim of every query with every gallery item, for each of these sets of their positions.

    Each is `setsim_matrix` of the vectors at the positions, to the bit on the CPU in single
    precision, with its gradient. All prefixes of a group cost little more than the longest.
    """
    require_same_space(queries, gallery)
    for positions in position_sets:
        _require_positions(positions, min(queries.shape[1], gallery.shape[1]))
    return differentiable_scores(*accumulated(queries, gallery), position_sets)


def setsim_pairs(queries: QueryPairs, gallery: GalleryPairs) -> PairScores:
    """SetSim of query set i with gallery set i."""
    return bounded(best_total(_pair_cosines(queries, gallery)) / queries.shape[1])


def setsim_assignment(queries: QueryPairs, gallery: GalleryPairs) -> Assignments:
    """Which vector of gallery set i each vector of query set i is matched with."""
    return assignment_columns(_pair_cosines(queries, gallery))


def needs_gradient(*sets: Tensor) -> bool:
    """Whether autograd will ask for what is computed from these."""
    return torch.is_grad_enabled() and any(each.requires_grad for each in sets)


def matrix_cosines(queries: Tensor, gallery: Tensor) -> Tensor:
    """All cosines of all pairs [queries, query vectors, gallery, gallery vectors]."""
    return _products("qid,gjd->qigj", queries, gallery)


def pair_cosines(queries: Tensor, gallery: Tensor) -> Tensor:
    """All cosines of aligned pairs [pairs, query vectors, gallery vectors]."""
    return _products("pid,pjd->pij", queries, gallery)


def _products(equation: str, queries: Tensor, gallery: Tensor) -> Tensor:
    """Half kinds are summed in float32, under autocast as well."""
    with torch.autocast(queries.device.type, enabled=False):
        return torch.einsum(equation, *accumulated(queries, gallery))


def accumulated(queries: Tensor, gallery: Tensor) -> tuple[Tensor, Tensor]:
    """Both batches in the type that their scores have: half kinds become float32."""
    kind = accumulation_type(queries, gallery)
    return queries.to(kind), gallery.to(kind)


def bounded(scores: Tensor) -> Tensor:
    """Scores held in [-1, 1], which rounding may leave; the gradient passes unchanged."""
    return scores - (scores - scores.clamp(-1, 1)).detach()


def require_comparable(queries: Tensor, gallery: Tensor) -> None:
    """Refuse sets that have no SetSim."""
    require_same_space(queries, gallery)
    if queries.shape[1] != gallery.shape[1]:
        raise UnequalCapacityError(
            f"SetSim compares sets of equal capacity, got {queries.shape[1]} query vectors and "
            f"{gallery.shape[1]} gallery vectors; activate the query's positions on both sides"
        )
    require_supported_capacity(queries.shape[1])


def require_same_space(queries: Tensor, gallery: Tensor) -> None:
    """Refuse sets whose vectors cannot be compared at all."""
    _require_sets("query", queries)
    _require_sets("gallery", gallery)
    if queries.shape[2] != gallery.shape[2]:
        raise ShapeError(
            f"query vectors have {queries.shape[2]} dimensions and gallery vectors "
            f"{gallery.shape[2]}; embed both with one model"
        )
    if queries.device != gallery.device:
        raise ShapeError(
            f"queries are on {queries.device} and the gallery on {gallery.device}; move one of them"
        )


def _require_sets(side: str, sets: object) -> None:
    if not isinstance(sets, Tensor):
        raise DtypeError(
            f"{side} sets are a tensor, got {type(sets).__name__}; use the .vectors of candidate "
            f"sets, activate(candidates, selection), or torch.from_numpy(array)"
        )
    if sets.dim() != 3:
        raise ShapeError(
            f"{side} sets are [items, capacity, dim], got shape {tuple(sets.shape)}; "
            f"add the missing axis with .unsqueeze(0)"
        )
    if 0 in sets.shape[1:]:
        raise ShapeError(
            f"{side} sets of shape {tuple(sets.shape)} hold no numbers; give at least one vector"
        )
    if not sets.is_floating_point():
        raise DtypeError(f"{side} sets hold {sets.dtype}; convert them with .float()")


def _require_positions(positions: tuple[int, ...], count: int) -> None:
    require_supported_capacity(len(positions))
    if len(set(positions)) < len(positions) or not set(positions) <= set(range(count)):
        raise ShapeError(
            f"positions {positions} are not those of {len(positions)} vectors of a set of {count}; "
            f"name each once, from 0 to {count - 1}"
        )


def _canonical_matrix(queries: Tensor, gallery: Tensor) -> Tensor:
    sets, stored = (each.detach().contiguous() for each in accumulated(queries, gallery))
    scope = Scope(
        StoredVectors(stored.transpose(0, 1).numpy()),
        range(stored.shape[1]),
        np.arange(len(stored)),
        torch.get_num_threads(),
    )
    return torch.from_numpy(score_matrix(sets.numpy(), scope))


def _general_matrix(queries: Tensor, gallery: Tensor) -> Tensor:
    cosines = matrix_cosines(queries, gallery).permute(0, 2, 1, 3)
    return bounded(best_total(cosines) / queries.shape[1])


def _pair_cosines(queries: Tensor, gallery: Tensor) -> Tensor:
    require_comparable(queries, gallery)
    if len(queries) != len(gallery):
        raise ShapeError(
            f"pairs need as many query sets as gallery sets, got {len(queries)} and {len(gallery)}"
            f"; use setsim_matrix for all pairs"
        )
    return pair_cosines(queries, gallery)

"""Search: bucket queries by selection, compare the same positions of every item, keep the best (R6)."""

import numpy as np
import torch

from adaptiveembed.errors import LayoutMismatchError, SettingError, ShapeError
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.ranking import Rankings
from adaptiveembed.retrieval.rows import query_sets
from adaptiveembed.retrieval.top_k import SearchedVectors, top_k
from adaptiveembed.shapes import ScoreArray32
from adaptiveembed.similarity.assignment import require_supported_capacity
from adaptiveembed.similarity.kernels.calls import score_matrix
from adaptiveembed.structure.candidates import CAES, CandidateSets
from adaptiveembed.structure.selection import Selection


def search(gallery: Gallery, queries: CAES, k: int) -> Rankings:
    """The k items most similar to each query, exactly: ids, order and scores are those of scoring every pair.

    Equal scores are listed in gallery order, and no score depends on the other queries, on the other items or on the
    number of threads.
    """
    if k < 1:
        raise SettingError(f"k is {k}; ask for at least one item")
    require_comparable_queries(gallery, queries.candidates)
    indices = np.full((len(queries), k), -1, np.int64)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    for selection, members in queries.buckets().items():
        rows = members.numpy()
        searched = _searched(gallery, selection)
        sets = query_sets(queries.candidates[members], list(selection.positions))
        indices[rows], scores[rows] = top_k(sets, searched, k)
    return Rankings(indices, scores, gallery.ids, queries.capacities.numpy())


def score_gallery(gallery: Gallery, queries: CAES) -> ScoreArray32:
    """The canonical score of every query with every item: what search agrees with, held in memory whole."""
    require_comparable_queries(gallery, queries.candidates)
    scores = np.empty((len(queries), len(gallery)), np.float32)
    for selection, members in queries.buckets().items():
        searched = _searched(gallery, selection)
        sets = query_sets(queries.candidates[members], list(selection.positions))
        scores[members.numpy()] = score_matrix(
            sets, searched.stored, searched.positions, searched.items, searched.num_threads
        )
    return scores


def require_comparable_queries(gallery: Gallery, queries: CandidateSets) -> None:
    """Refuse queries that were embedded for another gallery."""
    if queries.layout != gallery.layout:
        raise LayoutMismatchError(
            f"queries have layout {queries.layout} and the gallery {gallery.layout}; "
            f"embed both with one model"
        )
    if queries.dim != gallery.dim:
        raise ShapeError(
            f"query vectors have {queries.dim} dimensions and the gallery's {gallery.dim}; "
            f"embed both with one model"
        )


def _searched(gallery: Gallery, selection: Selection) -> SearchedVectors:
    require_supported_capacity(selection.capacity)
    return SearchedVectors(
        gallery.stored,
        gallery.screen,
        selection.positions,
        np.arange(len(gallery)),
        torch.get_num_threads(),
    )

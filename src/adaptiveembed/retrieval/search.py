"""Search: bucket queries by selection, compare the same positions of every item (R6)."""

import numpy as np
import torch

from adaptiveembed.errors import DtypeError, LayoutMismatchError, SettingError, ShapeError
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.ranking import Rankings
from adaptiveembed.retrieval.rows import query_sets
from adaptiveembed.retrieval.top_k import top_k
from adaptiveembed.shapes import ScoreArray32
from adaptiveembed.similarity.assignment import require_supported_capacity
from adaptiveembed.similarity.kernels.calls import score_matrix
from adaptiveembed.similarity.kernels.panels import Scope
from adaptiveembed.structure.candidates import CAES, CandidateSets
from adaptiveembed.structure.selection import Selection


def search(gallery: Gallery, queries: CAES, k: int | np.integer) -> Rankings:
    """The k items most similar to each query: ids, order and scores as if every pair were scored.

    There are fewer than k where the gallery has fewer. Equal scores are listed in gallery order. No
    score depends on the other queries, on the other items or on the number of threads.
    """
    _require_caes(queries)
    require_comparable_queries(gallery, queries.candidates)
    k = min(_required_count(k), len(gallery))
    indices = np.full((len(queries), k), -1, np.int64)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    for selection, members in queries.buckets().items():
        rows = members.numpy()
        sets = query_sets(queries.candidates[members], selection.positions)
        indices[rows], scores[rows] = top_k(sets, _scope(gallery, selection), gallery.screen, k)
    return Rankings(indices, scores, gallery.ids, queries.capacities.numpy())


def score_gallery(gallery: Gallery, queries: CAES) -> ScoreArray32:
    """The canonical score of every query with every item, which search agrees with."""
    _require_caes(queries)
    require_comparable_queries(gallery, queries.candidates)
    scores = np.empty((len(queries), len(gallery)), np.float32)
    for selection, members in queries.buckets().items():
        sets = query_sets(queries.candidates[members], selection.positions)
        scores[members.numpy()] = score_matrix(sets, _scope(gallery, selection))
    return scores


def require_comparable_queries(gallery: Gallery, queries: CandidateSets) -> None:
    """Refuse queries that were embedded for another gallery."""
    _require_kinds(gallery, queries)
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


def _required_count(k: object) -> int:
    # numpy's whole numbers are not Python's, and Python's truths are.
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise SettingError(f"k is {k!r}; ask for a whole number of items, at least one")
    return int(k)


def _require_kinds(gallery: object, queries: object) -> None:
    if not isinstance(gallery, Gallery):
        raise DtypeError(
            f"what is searched is a Gallery, got {type(gallery).__name__}; "
            f"use Gallery.from_candidates(ids, candidates)"
        )
    if not isinstance(queries, CandidateSets):
        raise DtypeError(
            f"queries are CandidateSets here, got {type(queries).__name__}; give the .candidates "
            f"of a CAES, or CandidateSets.normalized(tensor, layout)"
        )


def _require_caes(queries: object) -> None:
    if not isinstance(queries, CAES):
        raise DtypeError(
            f"search needs a CAES, got {type(queries).__name__}; let an allocator choose the "
            f"selections, for example FixedAllocator(selection).allocate(candidates)"
        )


def _scope(gallery: Gallery, selection: Selection) -> Scope:
    """The whole gallery at the selection's positions."""
    require_supported_capacity(selection.capacity)
    items = np.arange(len(gallery))
    return Scope(gallery.stored, selection.positions, items, torch.get_num_threads())

"""The ranks of each query's positives under many selections, in one pass over the gallery.

This is what utilities and the oracle read (App. A.3). No score matrix is held: items are counted
as they are scored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from adaptiveembed.errors import (
    DuplicateIdError,
    EmptyBatchError,
    LayoutMismatchError,
    ShapeError,
    UnknownSelectionError,
)
from adaptiveembed.metrics.ranks import checked_positives, ranks_from_counts
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.rows import query_sets
from adaptiveembed.retrieval.search import require_comparable_queries
from adaptiveembed.shapes import GalleryIndices, Positives, RankTable
from adaptiveembed.similarity.assignment import require_supported_capacity
from adaptiveembed.similarity.kernels.calls import count_reached, score_matrix
from adaptiveembed.similarity.kernels.panels import Floats, Scope
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.selection import Selection, require_selection

QUERIES_AT_ONCE = 64
"""The scores of so many queries with all of their positives are held at a time."""


def rank_table(
    gallery: Gallery,
    queries: CandidateSets,
    positives: np.ndarray,  # not a named shape: the errors below say what to do
    selections: Iterable[Selection],
    *,
    among: np.ndarray | None = None,
) -> RankTable:
    """Pessimistic ranks [selections, queries, positives], ascending, filled with 0 (R7).

    A query takes as long as it has positives: each is counted by itself.

    Args:
        gallery: The items.
        queries: The candidate sets of the queries.
        positives: Places in the gallery of each query's positives, filled with -1.
        selections: What each query is ranked under.
        among: Places of the items to count; all if not given. A positive may lie outside of them.
    """
    require_comparable_queries(gallery, queries)
    positives = _required_positives(gallery, queries, positives)
    selections = _required_selections(gallery, selections)
    counted = np.arange(len(gallery)) if among is None else _required_places(gallery, among)
    scope = Scope(gallery.stored, (), counted, torch.get_num_threads())
    starts = range(0, len(queries), QUERIES_AT_ONCE)
    parts = [slice(start, start + QUERIES_AT_ONCE) for start in starts]
    tables = [_part(scope, queries[part], positives[part], selections) for part in parts]
    return np.concatenate(tables, axis=1)


def _part(
    scope: Scope, queries: CandidateSets, positives: Positives, selections: Sequence[Selection]
) -> RankTable:
    active = sorted({position for each in selections for position in each.positions})
    targets = tuple(tuple(map(active.index, each.positions)) for each in selections)
    sets = query_sets(queries, active)
    valid = positives >= 0
    scores = _positive_scores(scope, queries, positives, selections)
    # One lane for every positive: queries with several positives stand in several lanes.
    lanes, columns = np.nonzero(valid)
    probes = np.ascontiguousarray(scores[:, lanes, columns])
    counts = np.zeros(scores.shape, np.int64)
    counts[:, lanes, columns] = count_reached(
        sets[lanes], replace(scope, positions=active), targets, probes
    )
    counts += _outside(scores, valid & ~np.isin(positives, scope.items))
    return ranks_from_counts(counts, scores, np.broadcast_to(valid, scores.shape))


def _positive_scores(
    scope: Scope, queries: CandidateSets, positives: Positives, selections: Sequence[Selection]
) -> Floats:
    """Canonical scores of the positives [selections, queries, positives]; -inf where none is."""
    valid = positives >= 0
    items, columns = np.unique(positives[valid], return_inverse=True)
    rows = np.nonzero(valid)[0]
    scores = np.full((len(selections), *positives.shape), -np.inf, np.float32)
    for number, selection in enumerate(selections):
        sets = query_sets(queries, selection.positions)
        matrix = score_matrix(sets, replace(scope, items=items, positions=selection.positions))
        scores[number][valid] = matrix[rows, columns]
    return scores


def _outside(scores: Floats, outside: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each positive, how many positives that are not counted score at least as much.

    Ranks are made from counts that include all positives.
    """
    counts = np.zeros(scores.shape, np.int64)
    for other in range(scores.shape[-1]):
        counts += (scores[..., other, None] >= scores) & outside[:, other, None]
    return counts


def _required_places(gallery: Gallery, among: np.ndarray) -> GalleryIndices:
    places = gallery.require_places(among)
    found, counts = np.unique(places, return_counts=True)
    if len(found) < len(places):
        raise DuplicateIdError(
            f"item {found[counts > 1][0]} is to be counted twice; use np.unique(among)"
        )
    return places


def _required_positives(gallery: Gallery, queries: CandidateSets, given: object) -> Positives:
    """The positives as 64-bit numbers: a row per query, with at least one place in each."""
    positives = checked_positives(given, len(gallery))
    if len(positives) != len(queries):
        raise ShapeError(
            f"got positives of {len(positives)} queries and {len(queries)} queries; "
            f"give one row of positives per query"
        )
    missing = np.flatnonzero(~(positives >= 0).any(axis=1))
    if missing.size:
        raise EmptyBatchError(f"query {missing[0]} has no positive; leave it out or name one")
    return positives


def _required_selections(gallery: Gallery, given: Iterable[Selection]) -> tuple[Selection, ...]:
    if isinstance(given, Selection):
        raise UnknownSelectionError(
            f"a rank table takes a list of selections, got selection {given}; put it in a list"
        )
    selections = tuple(given)
    if not selections:
        raise EmptyBatchError("a rank table needs at least one selection")
    for each in selections:
        require_selection(each)
        if each.layout != gallery.layout:
            raise LayoutMismatchError(
                f"selection {each} has layout {each.layout} and the gallery {gallery.layout}; "
                f"make selections with the gallery's layout"
            )
        require_supported_capacity(each.capacity)
    return selections

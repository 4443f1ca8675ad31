"""Exact top-k without scoring every pair: screen, prune, finish the survivors canonically (R5)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from adaptiveembed.similarity.kernels.calls import score_lists, score_matrix, screen
from adaptiveembed.similarity.kernels.codes import ByteGallery, BytePanel, byte_panel
from adaptiveembed.similarity.kernels.compiler import lanes
from adaptiveembed.similarity.kernels.panels import (
    Floats,
    Integers,
    Panel,
    Scope,
    one_query_panels,
    queries_at_once,
)

FIRST_RANGE = 1024
"""Items that are scored for every query, to have a first threshold."""

GROWTH = 4
"""After each range of items, so many times as many have been seen: thresholds rise in time."""

LARGEST_RANGE = 1 << 22
"""Pairs of one range, which bounds the memory that its survivors can take."""


@dataclass(frozen=True)
class Pairs:
    """Queries with items of theirs, and canonical scores."""

    queries: Integers
    items: Integers
    scores: Floats

    def joined(self, other: "Pairs") -> "Pairs":
        """The pairs of both."""
        return Pairs(
            np.concatenate([self.queries, other.queries]),
            np.concatenate([self.items, other.items]),
            np.concatenate([self.scores, other.scores]),
        )

    def leaders(self, k: int) -> "Pairs":
        """Each query's k best, best first, equal scores in order of items; queries in order."""
        order = np.lexsort((self.items, -self.scores, self.queries))
        queries = self.queries[order]
        kept = order[_places(queries) < k]
        return Pairs(self.queries[kept], self.items[kept], self.scores[kept])

    def thresholds(self, num_queries: int, k: int) -> Floats:
        """The score of each query's k-th leader; minus infinity as long as it has fewer."""
        limits = np.full(num_queries, -np.inf, np.float32)
        last = _places(self.queries) == k - 1
        limits[self.queries[last]] = self.scores[last]
        return limits


@dataclass(frozen=True)
class _Panels:
    """The queries as the screen reads them, and as the scores of what it lets through do."""

    coded: BytePanel
    exact: Panel


def top_k(
    sets: Floats, scope: Scope, screen: ByteGallery | None, k: int
) -> tuple[Integers, Floats]:
    """The k best items of every query and their scores [queries, k], best first.

    They are what scoring every pair would give; ties go to the earlier item, and the scope's items
    are ascending. Rows end in -1 and minus infinity where there are fewer than k items. Without a
    screen every pair is scored.
    """
    items = np.full((len(sets), k), -1, np.int64)
    scores = np.full((len(sets), k), -np.inf, np.float32)
    step = queries_at_once(*sets.shape[:2])
    for start in range(0, len(sets), step):
        found = _leaders_of_panel(sets[start : start + step], scope, screen, k)
        places = _places(found.queries)
        items[start + found.queries, places] = found.items
        scores[start + found.queries, places] = found.scores
    return items, scores


def _leaders_of_panel(sets: Floats, scope: Scope, screen: ByteGallery | None, k: int) -> Pairs:
    panels = _Panels(byte_panel(sets, screen.longest), one_query_panels(sets)) if screen else None
    leaders = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    for part in _ranges(len(scope.items), len(sets), k):
        thresholds = leaders.thresholds(len(sets), k)
        ahead = replace(scope, items=scope.items[part])
        if screen is None or panels is None or part.start == 0:
            rivals = _scored_pairs(sets, ahead, thresholds, k)
        else:
            rivals = _screened_pairs(panels, ahead, screen, thresholds)
        leaders = leaders.joined(rivals).leaders(k)
    return leaders


def _ranges(num_items: int, num_queries: int, k: int) -> Iterator[slice]:
    largest = max(lanes(), LARGEST_RANGE // num_queries)
    start, size = 0, max(FIRST_RANGE, 2 * k)
    while start < num_items:
        stop = min(start + min(size, largest), num_items)
        yield slice(start, stop)
        start, size = stop, (GROWTH - 1) * stop


def _scored_pairs(sets: Floats, scope: Scope, thresholds: Floats, k: int) -> Pairs:
    """The pairs that may lead, found by scoring every pair."""
    scores = score_matrix(sets, scope)
    last = len(scope.items) - k
    if last > 0:
        kth = np.partition(scores, last, axis=1)[:, last]
        thresholds = np.maximum(thresholds, kth)
    queries, places = np.nonzero(scores >= thresholds[:, None])
    return Pairs(queries, scope.items[places], scores[queries, places])


def _screened_pairs(
    panels: _Panels, scope: Scope, gallery: ByteGallery, thresholds: Floats
) -> Pairs:
    """The pairs that may lead, found by scoring those that bytes cannot rule out."""
    queries, places = screen(panels.coded, gallery, scope, thresholds)
    survivors = replace(scope, items=scope.items[places])
    bounds = np.searchsorted(queries, np.arange(len(thresholds) + 1))
    scores = score_lists(panels.exact, survivors, bounds)
    leading = scores >= thresholds[queries]
    return Pairs(queries[leading], survivors.items[leading], scores[leading])


def _places(queries: Integers) -> Integers:
    """The place of every entry among those of its query, for ascending queries."""
    starts = np.searchsorted(queries, queries)
    return np.arange(len(queries)) - starts

"""Exact top-k without scoring every pair: screen, prune, finish the survivors canonically (R5)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.similarity.kernels.calls import (
    StoredVectors,
    score_lists,
    score_matrix,
    screen,
)
from adaptiveembed.similarity.kernels.codes import ByteGallery, BytePanel, byte_panel
from adaptiveembed.similarity.kernels.compiler import lanes
from adaptiveembed.similarity.kernels.panels import PANEL_LANES

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

FIRST_RANGE = 1024  # items that are scored for every query, to have a first threshold
GROWTH = 4  # each range of items is this much longer than the one before: thresholds rise in time
LARGEST_RANGE = 1 << 22  # pairs of one range, which bounds what its survivors can take


@dataclass(frozen=True)
class SearchedVectors:
    """Where the vectors of the items to be searched are, and which positions of them."""

    stored: StoredVectors
    screen: ByteGallery | None
    positions: tuple[int, ...]
    items: Integers  # ascending: ties go to the earlier item
    num_threads: int


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


def top_k(sets: Floats, searched: SearchedVectors, k: int) -> tuple[Integers, Floats]:
    """Items and scores [queries, k] of the k best items of every query, exactly as if every pair had been scored.

    Rows end in -1 and minus infinity where there are fewer than k items.
    """
    items = np.full((len(sets), k), -1, np.int64)
    scores = np.full((len(sets), k), -np.inf, np.float32)
    chunk = max(1, PANEL_LANES // (sets.shape[1] * lanes())) * lanes()
    for start in range(0, len(sets), chunk):
        found = _leaders_of_panel(sets[start : start + chunk], searched, k)
        places = _places(found.queries)
        items[start + found.queries, places] = found.items
        scores[start + found.queries, places] = found.scores
    return items, scores


def _leaders_of_panel(sets: Floats, searched: SearchedVectors, k: int) -> Pairs:
    panel = byte_panel(sets, searched.screen.longest) if searched.screen else None
    leaders = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    for part in _ranges(len(searched.items), len(sets), k):
        thresholds = leaders.thresholds(len(sets), k)
        if panel is None or part.start == 0:
            rivals = _scored_pairs(sets, searched, searched.items[part], thresholds, k)
        else:
            rivals = _screened_pairs(sets, panel, searched, searched.items[part], thresholds)
        leaders = leaders.joined(rivals).leaders(k)
    return leaders


def _ranges(num_items: int, num_queries: int, k: int) -> Iterator[slice]:
    largest = max(lanes(), LARGEST_RANGE // num_queries)
    start, size = 0, max(FIRST_RANGE, 2 * k)
    while start < num_items:
        stop = min(start + min(size, largest), num_items)
        yield slice(start, stop)
        start, size = stop, (GROWTH - 1) * stop


def _scored_pairs(
    sets: Floats, searched: SearchedVectors, items: Integers, thresholds: Floats, k: int
) -> Pairs:
    """The pairs of a range that may lead, found by scoring every pair of it."""
    scores = score_matrix(sets, searched.stored, searched.positions, items, searched.num_threads)
    if len(items) > k:
        kth = np.partition(scores, len(items) - k, axis=1)[:, len(items) - k]
        thresholds = np.maximum(thresholds, kth)
    queries, places = np.nonzero(scores >= thresholds[:, None])
    return Pairs(queries, items[places], scores[queries, places])


def _screened_pairs(
    sets: Floats,
    panel: BytePanel,
    searched: SearchedVectors,
    items: Integers,
    thresholds: Floats,
) -> Pairs:
    """The pairs of a range that may lead: those that bytes cannot rule out, scored canonically."""
    assert searched.screen is not None
    threads = searched.num_threads
    queries, places = screen(panel, searched.screen, searched.positions, thresholds, items, threads)
    survivors = items[places]
    bounds = np.searchsorted(queries, np.arange(len(sets) + 1))
    scores = score_lists(sets, searched.stored, searched.positions, survivors, bounds, threads)
    return Pairs(queries, survivors, scores)


def _places(queries: Integers) -> Integers:
    """The place of every entry among those of its query, for ascending queries."""
    starts = np.searchsorted(queries, queries)
    return np.arange(len(queries)) - starts

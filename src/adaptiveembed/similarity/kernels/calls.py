"""The kernels as functions of arrays, whose arguments the layers above have checked."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.similarity.kernels.codes import ByteGallery, BytePanel, padded_queries
from adaptiveembed.similarity.kernels.compiler import Kernel, lanes
from adaptiveembed.similarity.kernels.counting import counting_kernel
from adaptiveembed.similarity.kernels.learning import (
    cosine_gradient_kernel,
    matching_scores_kernel,
)
from adaptiveembed.similarity.kernels.matching import columns_kernel, totals_kernel
from adaptiveembed.similarity.kernels.panels import (
    Floats,
    Integers,
    Panel,
    Scope,
    StoredVectors,
    aligned_empty,
    many_queries_panel,
    one_query_panels,
    queries_at_once,
    whole_lanes,
)
from adaptiveembed.similarity.kernels.plan import Numbers
from adaptiveembed.similarity.kernels.scoring import many_queries_kernel, one_query_kernel
from adaptiveembed.similarity.kernels.screening import (
    one_query_screening_kernel,
    screening_kernel,
)
from adaptiveembed.similarity.kernels.threads import even_parts, in_parallel

Words: TypeAlias = NDArray[np.int32]

SMALLEST_PART = 4096
"""Products of one query that are worth a call: less costs more to start than to make."""


def best_totals(cosines: Floats, num_threads: int) -> Floats:
    """The greatest one-to-one totals of cosines [queries, gallery, rows, columns].

    Only the last axis needs to lie in order: the product of two batches of sets lies by rows.
    """
    queries, gallery, size, _ = cosines.shape
    totals = np.empty((queries, gallery), np.float32)
    _solve(totals_kernel(size), cosines, (totals, np.empty((queries, 0, size))), num_threads)
    return totals


def best_assignments(cosines: Floats, num_threads: int) -> tuple[Floats, Integers]:
    """The greatest totals, and the column that each row takes [queries, gallery, rows]."""
    queries, gallery, size, _ = cosines.shape
    totals = np.empty((queries, gallery), np.float32)
    columns = np.empty((queries, gallery, size), np.int64)
    _solve(columns_kernel(size), cosines, (totals, columns), num_threads)
    return totals, columns


def score_matrix(sets: Floats, scope: Scope) -> Floats:
    """Canonical scores of sets [queries, capacity, dim] with every item of the scope."""
    scores = np.empty((len(sets), len(scope.items)), np.float32)
    step = queries_at_once(*sets.shape[:2])
    for start in range(0, len(sets), step):
        part = slice(start, start + step)
        if step == 1:
            bounds = np.array([0, len(scope.items)])
            scores[part] = score_lists(one_query_panels(sets[part]), scope, bounds)
        else:
            _score_many(many_queries_panel(sets[part]), scope, scores[part])
    return scores


def score_lists(panels: Panel, scope: Scope, bounds: Integers) -> Floats:
    """Canonical scores of query i with the scope's items from bounds[i] to bounds[i + 1]."""
    scores = np.empty(len(scope.items), np.float32)
    kernel = one_query_kernel(scope.vectors.kind, panels.capacity)

    def score(part: slice) -> None:
        # A list that reaches beyond the part is cut; one that lies outside of it is empty.
        lists = np.clip(bounds, part.start, part.stop)
        _Call(panels, scope, lists).run(kernel, scores.ctypes.data)

    in_parallel(score, _parts(scope), scope.num_threads)
    return scores


def screen(
    queries: BytePanel, gallery: ByteGallery, scope: Scope, thresholds: Floats
) -> tuple[Integers, Integers]:
    """Pairs (query, place in the scope) that may reach the query's threshold, by query.

    No pair that does reach it is missing.
    """
    make = one_query_screening_kernel if queries.panel.is_one_query else screening_kernel
    kernel = make(queries.panel.capacity)
    # Scores are held at -1, bounds are not: what may fall below -1 reaches a threshold of -1.
    open_limits = np.where(thresholds <= -1, np.float32(-np.inf), thresholds)
    limits = padded_queries(open_limits, queries.panel, np.inf)
    stored = replace(scope, vectors=StoredVectors(gallery.words))
    arrays = (queries.corrections, queries.scales, limits, queries.bands)
    addresses = [array.ctypes.data for array in (*arrays, gallery.scales, gallery.bands)]

    def find(part: slice) -> NDArray[np.int32]:
        call = _pass_over(queries.panel, stored, part)
        pairs = np.empty(((part.stop - part.start) * len(limits), 2), np.int32)
        count = call.run(kernel, *addresses, pairs.ctypes.data, len(limits))
        return pairs[:count]

    parts = _parts(scope)
    pairs = np.concatenate(in_parallel(find, parts, scope.num_threads))
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)


def count_reached(
    sets: Floats, scope: Scope, targets: tuple[Numbers, ...], probes: Floats
) -> Integers:
    """How many items score at least a query's probe [targets, queries], for every target.

    `sets` hold the queries' vectors at the scope's positions; a target is a choice among these.
    """
    counts = np.empty(probes.shape, np.int64)
    step = queries_at_once(lanes(), sets.shape[1])
    for start in range(0, len(sets), step):
        part = slice(start, start + step)
        panel = many_queries_panel(sets[part])
        counts[:, part] = _count(panel, scope, targets, probes[:, part])
    return counts


def matching_scores(sets: Floats, scope: Scope, lengths: Numbers) -> tuple[Floats, Words]:
    """Canonical scores under prefixes of the scope's positions [prefix, item, query].

    Beside them, alike, the words of the assignments. Queries are filled up to whole vectors of
    lanes.
    """
    shape = (len(lengths), len(scope.items), whole_lanes(len(sets)))
    scores, words = aligned_empty(shape, np.float32), aligned_empty(shape, np.int32)
    kernel = matching_scores_kernel(lengths)
    step = queries_at_once(lanes(), sets.shape[1])
    strides = [scores.strides[axis] // scores.itemsize for axis in (0, 1)]
    for start in range(0, len(sets), step):
        panel = many_queries_panel(sets[start : start + step])
        out = (scores[..., start:].ctypes.data, words[..., start:].ctypes.data, *strides)

        def match(part: slice, panel: Panel = panel, out: tuple[int, ...] = out) -> None:
            _pass_over(panel, scope, part).run(kernel, *out, panel.num_lanes)

        in_parallel(match, _parts(scope), scope.num_threads)
    return scores, words


def cosine_gradients(
    gradients: Floats, words: Words, lengths: Numbers, out: Floats, num_threads: int
) -> None:
    """Fill out [item, column, row, query] from the gradients of scores [prefix, item, query]."""
    kernel = cosine_gradient_kernel(lengths)
    _, num_items, num_queries = gradients.shape
    stride = gradients.strides[0] // gradients.itemsize

    def spread(part: slice) -> None:
        given = (gradients[:, part].ctypes.data, words[:, part].ctypes.data, stride)
        kernel(*given, part.stop - part.start, num_queries, out[part].ctypes.data)

    in_parallel(spread, even_parts(num_items, num_threads, 1), num_threads)


@dataclass(frozen=True)
class _Call:
    """One pass over lists of the scope's items, one list for each panel."""

    panel: Panel
    scope: Scope
    bounds: Integers

    def run(self, kernel: Kernel, *more: int) -> int:
        """Call a kernel with what every kernel takes, and its further arguments."""
        vectors = self.scope.vectors
        offsets, scratch = vectors.offsets(self.scope.positions), self.panel.scratch()
        return kernel(
            self.panel.words.ctypes.data,
            self.panel.words.shape[2],
            self.panel.width,
            vectors.rows.ctypes.data,
            vectors.norms_address,
            offsets.ctypes.data,
            vectors.item_stride,
            self.scope.items.ctypes.data,
            self.bounds.ctypes.data,
            len(self.bounds) - 1,
            self.panel.tile,
            scratch.ctypes.data,
            *more,
        )


def _parts(scope: Scope) -> list[slice]:
    """Parts of the scope's items that are worth a call each."""
    grain = max(lanes(), SMALLEST_PART // len(scope.positions) ** 2)
    return even_parts(len(scope.items), scope.num_threads, -(-grain // lanes()) * lanes())


def _pass_over(panel: Panel, scope: Scope, part: slice) -> _Call:
    """A call on one part of the scope's items."""
    return _Call(panel, scope, np.array([part.start, part.stop]))


def _score_many(panel: Panel, scope: Scope, out: Floats) -> None:
    kernel = many_queries_kernel(scope.vectors.kind, panel.capacity)
    stride = out.strides[0] // int(out.itemsize)

    def score(part: slice) -> None:
        call = _pass_over(panel, scope, part)
        call.run(kernel, out.ctypes.data, stride, panel.num_queries)

    in_parallel(score, _parts(scope), scope.num_threads)


def _count(panel: Panel, scope: Scope, targets: tuple[Numbers, ...], probes: Floats) -> Integers:
    kernel = counting_kernel(scope.vectors.kind, panel.capacity, targets)
    padded = np.full((len(targets), panel.num_lanes), np.inf, np.float32)
    padded[:, : panel.num_queries] = probes

    def count(part: slice) -> NDArray[np.int32]:
        found = np.zeros(padded.shape, np.int32)
        call = _pass_over(panel, scope, part)
        call.run(kernel, padded.ctypes.data, found.ctypes.data, panel.num_lanes)
        return found

    parts = _parts(scope)
    total = np.zeros(padded.shape, np.int64)
    for found in in_parallel(count, parts, scope.num_threads):
        total += found
    return total[:, : panel.num_queries]


def _solve(
    kernel: Kernel, cosines: Floats, out: tuple[NDArray[Any], ...], num_threads: int
) -> None:
    """Fill the totals and columns of every matrix."""
    queries, gallery = cosines.shape[:2]
    strides = [stride // cosines.itemsize for stride in cosines.strides[1:3]]

    def solve(task: tuple[int, slice]) -> None:
        query, part = task
        addresses = [array[query, part].ctypes.data for array in out]
        first = cosines[query, part].ctypes.data
        kernel(first, *strides, part.stop - part.start, *addresses)

    parts = even_parts(gallery, -(-num_threads // max(1, queries)), lanes())
    in_parallel(solve, [(query, part) for query in range(queries) for part in parts], num_threads)

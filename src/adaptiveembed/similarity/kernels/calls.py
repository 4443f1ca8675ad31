"""The kernels as functions of arrays: every argument checked by the layers above, every result exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.similarity.kernels.assign import PATH_BITS
from adaptiveembed.similarity.kernels.codes import BytePanel, ByteGallery, pad_queries
from adaptiveembed.similarity.kernels.compiler import Kernel, lanes
from adaptiveembed.similarity.kernels.counting import counting_kernel
from adaptiveembed.similarity.kernels.matching import matching_kernel
from adaptiveembed.similarity.kernels.panels import (
    PANEL_LANES,
    Panel,
    StoredVectors,
    aligned_empty,
    many_queries_panel,
    one_query_panels,
)
from adaptiveembed.similarity.kernels.screening import screening_kernel
from adaptiveembed.similarity.kernels.scoring import many_queries_kernel, one_query_kernel
from adaptiveembed.similarity.kernels.threads import even_parts, in_parallel

PARTS_PER_THREAD = 4  # a core that is busy with something else takes fewer of them

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


def best_totals(cosines: Floats, num_threads: int) -> Floats:
    """The greatest one-to-one total of every pair's matrix, for cosines [queries, rows, gallery, columns]."""
    return _match(cosines, num_threads, with_assignment=False)[0]


def best_columns(cosines: Floats, num_threads: int) -> Integers:
    """The column that each row takes in the best assignment [queries, gallery, rows]."""
    packed = _match(cosines, num_threads, with_assignment=True)[1]
    shifts = PATH_BITS * np.arange(cosines.shape[-1], dtype=np.int32)
    return ((packed[..., None] >> shifts) & (2**PATH_BITS - 1)).astype(np.int64)


def score_matrix(
    sets: Floats,
    gallery: StoredVectors,
    positions: Sequence[int],
    items: Integers,
    num_threads: int,
) -> Floats:
    """Canonical scores of query sets [queries, capacity, dim] with the same positions of the items named."""
    scores = np.empty((len(sets), len(items)), np.float32)
    few = len(sets) < min(sets.shape[1], lanes())
    chunk = max(1, PANEL_LANES // (sets.shape[1] * lanes())) * lanes()
    for start in range(0, len(sets), chunk):
        part, out = sets[start : start + chunk], scores[start : start + chunk]
        if few:
            for panel, row in zip(one_query_panels(part), out, strict=True):
                _score_one(panel, gallery, positions, items, row, num_threads)
        else:
            _score_many(many_queries_panel(part), gallery, positions, items, out, num_threads)
    return scores


def score_lists(
    sets: Floats,
    gallery: StoredVectors,
    positions: Sequence[int],
    items: Integers,
    bounds: Integers,
    num_threads: int,
) -> Floats:
    """Canonical scores of query i with items[bounds[i] : bounds[i + 1]], one after the other."""
    scores = np.empty(len(items), np.float32)
    filled = np.flatnonzero(np.diff(bounds))
    panels = one_query_panels(sets[filled])

    def score(number: int) -> None:
        part = slice(bounds[filled[number]], bounds[filled[number] + 1])
        _score_one(panels[number], gallery, positions, items[part], scores[part], 1)

    in_parallel(score, range(len(filled)), num_threads)
    return scores


def count_reached(
    sets: Floats,
    gallery: StoredVectors,
    positions: Sequence[int],
    targets: tuple[tuple[int, ...], ...],
    probes: Floats,
    items: Integers,
    num_threads: int,
) -> Integers:
    """For every target and query: how many items score at least the probe [targets, queries].

    `sets` hold the query's vectors at the positions given; a target is a subset of their places.
    """
    counts = np.empty(probes.shape, np.int64)
    chunk = max(1, PANEL_LANES // (sets.shape[1] * lanes())) * lanes()
    for start in range(0, len(sets), chunk):
        part = slice(start, start + chunk)
        panel = many_queries_panel(sets[part])
        counts[:, part] = _count(
            panel, gallery, positions, targets, probes[:, part], items, num_threads
        )
    return counts


def screen(
    queries: BytePanel,
    gallery: ByteGallery,
    positions: Sequence[int],
    thresholds: Floats,
    items: Integers,
    num_threads: int,
) -> tuple[Integers, Integers]:
    """Pairs (query, place among the items) that may reach the query's threshold; no pair that does is missing."""
    panel = queries.panel
    kernel = screening_kernel(panel.capacity)
    stored = StoredVectors(gallery.words)
    limits = pad_queries(thresholds, np.inf)

    def find(part: slice) -> NDArray[np.int32]:
        call = _Call(panel, stored, positions, items[part])
        pairs = np.empty((len(call.items) * len(limits), 2), np.int32)
        count = call.run(
            kernel,
            queries.corrections.ctypes.data,
            queries.scales.ctypes.data,
            limits.ctypes.data,
            queries.bands.ctypes.data,
            gallery.scales.ctypes.data,
            gallery.errors.ctypes.data,
            pairs.ctypes.data,
            len(limits),
        )
        return pairs[:count] + np.array([0, part.start], np.int32)

    parts = even_parts(len(items), PARTS_PER_THREAD * num_threads, lanes())
    found = in_parallel(find, parts, num_threads)
    pairs = np.concatenate(found) if found else np.empty((0, 2), np.int32)
    order = np.argsort(pairs[:, 0], kind="stable")
    return pairs[order, 0].astype(np.int64), pairs[order, 1].astype(np.int64)


@dataclass(frozen=True)
class _Call:
    """One pass of a kernel over items, but for the kernel's own arguments."""

    panel: Panel
    gallery: StoredVectors
    positions: Sequence[int]
    items: Integers

    def run(self, kernel: Kernel, *more: int) -> int:
        offsets, scratch = self.gallery.offsets(self.positions), self.panel.scratch()
        return kernel(
            self.panel.words.ctypes.data,
            self.panel.words.shape[1],
            self.panel.width,
            self.gallery.rows.ctypes.data,
            self.gallery.norms_address,
            offsets.ctypes.data,
            self.gallery.item_stride,
            self.items.ctypes.data,
            len(self.items),
            self.panel.tile,
            scratch.ctypes.data,
            *more,
        )


def _score_many(
    panel: Panel,
    gallery: StoredVectors,
    positions: Sequence[int],
    items: Integers,
    out: Floats,
    num_threads: int,
) -> None:
    kernel = many_queries_kernel(gallery.kind, panel.capacity)
    stride = out.strides[0] // out.itemsize

    def score(part: slice) -> None:
        call = _Call(panel, gallery, positions, items[part])
        start = out.ctypes.data + part.start * out.itemsize
        call.run(kernel, start, stride, panel.num_queries)

    parts = even_parts(len(items), PARTS_PER_THREAD * num_threads, lanes())
    in_parallel(score, parts, num_threads)


def _score_one(
    panel: Panel,
    gallery: StoredVectors,
    positions: Sequence[int],
    items: Integers,
    out: Floats,
    num_threads: int,
) -> None:
    kernel = one_query_kernel(gallery.kind, panel.capacity)

    def score(part: slice) -> None:
        call = _Call(panel, gallery, positions, items[part])
        call.run(kernel, out.ctypes.data + part.start * out.itemsize)

    parts = even_parts(len(items), PARTS_PER_THREAD * num_threads, lanes())
    in_parallel(score, parts, num_threads)


def _count(
    panel: Panel,
    gallery: StoredVectors,
    positions: Sequence[int],
    targets: tuple[tuple[int, ...], ...],
    probes: Floats,
    items: Integers,
    num_threads: int,
) -> Integers:
    kernel = counting_kernel(gallery.kind, panel.capacity, targets)
    num_lanes = panel.width // panel.capacity
    padded = np.full((len(targets), num_lanes), np.inf, np.float32)
    padded[:, : panel.num_queries] = probes

    def count(part: slice) -> NDArray[np.int32]:
        found = np.zeros(padded.shape, np.int32)
        call = _Call(panel, gallery, positions, items[part])
        call.run(kernel, padded.ctypes.data, found.ctypes.data, num_lanes)
        return found

    parts = even_parts(len(items), PARTS_PER_THREAD * num_threads, lanes())
    total = sum(in_parallel(count, parts, num_threads), np.zeros(padded.shape, np.int64))
    return total[:, : panel.num_queries]


def _match(
    cosines: Floats, num_threads: int, *, with_assignment: bool
) -> tuple[Floats, NDArray[np.int32]]:
    queries, size, gallery, _ = cosines.shape
    kernel = matching_kernel(size, with_assignment=with_assignment)
    totals, packed = (
        np.empty((queries, gallery), np.float32),
        np.empty((queries, gallery), np.int32),
    )

    def match(task: tuple[int, slice]) -> None:
        query, part = task
        first = cosines[query, :, part]
        found, paths = totals[query, part], packed[query, part]
        count = part.stop - part.start
        kernel(first.ctypes.data, size, size * gallery, count, found.ctypes.data, paths.ctypes.data)

    parts = even_parts(gallery, -(-PARTS_PER_THREAD * num_threads // queries), lanes())
    in_parallel(match, [(query, part) for query in range(queries) for part in parts], num_threads)
    return totals, packed


__all__ = [
    "StoredVectors",
    "aligned_empty",
    "best_columns",
    "best_totals",
    "count_reached",
    "score_lists",
    "score_matrix",
    "screen",
]

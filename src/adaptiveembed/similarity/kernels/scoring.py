"""Kernels that return canonical scores: product, exact assignment, mean (Eq. 2, R5)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import emit_score, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel
from adaptiveembed.similarity.kernels.gallery import Tile, gallery_kernel
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.product import Rows
from adaptiveembed.similarity.kernels.vocabulary import F32, Emitter, index


@lru_cache(maxsize=64)
def many_queries_kernel(rows: Rows, capacity: int) -> Kernel:
    """Scores of many queries, one in each lane. More arguments: out, its row stride, number of queries."""

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        out, out_stride, num_queries = more
        scores = e.stack(e.floats, e.lanes)
        with e.loop(tile.count, step=e.lanes) as group, e.loop(num_queries, step=e.lanes) as query:
            with e.loop(e.lanes) as lane:
                cells = query_cells(e, tile, capacity, e.add(group, lane), query)
                _store_score(e, capacity, cells, e.at(scores, lane, e.floats))
            vectors = [
                e.load(e.at(scores, lane, e.floats), e.floats, 64) for lane in range(e.lanes)
            ]
            for lane, vector in enumerate(e.transpose(vectors)):
                e.store(vector, e.at(scores, lane, e.floats), 64)
            left = e.least(e.lanes, e.builder.sub(num_queries, query))
            with e.loop(left) as lane:
                start = e.add(e.mul(e.add(query, lane), out_stride), tile.first, group)
                count = e.builder.sub(tile.count, group)
                _emit_row(e, e.at(scores, lane, e.floats), e.at(out, start), count)

    return gallery_kernel(rows, capacity, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64), finish)


@lru_cache(maxsize=64)
def one_query_kernel(rows: Rows, capacity: int) -> Kernel:
    """Scores of one query, whose vectors lie in the lanes of a panel of one vector. One more argument: out."""

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        (out,) = more
        cells = e.stack(e.floats, capacity * capacity)
        scores = e.stack(e.floats)
        with e.loop(tile.count, step=e.lanes) as group:
            for column in range(capacity):
                rows = [
                    e.load(
                        e.at(tile.products, _row_start(e, capacity, group, lane, column)), e.floats
                    )
                    for lane in range(e.lanes)
                ]
                for row, vector in enumerate(e.transpose(rows)[:capacity]):
                    e.store(vector, e.at(cells, row * capacity + column, e.floats), 64)
            places = [e.at(cells, cell, e.floats) for cell in range(capacity * capacity)]
            _store_score(e, capacity, places, scores)
            count = e.builder.sub(tile.count, group)
            _emit_row(e, scores, e.at(out, e.add(tile.first, group)), count)

    return gallery_kernel(rows, capacity, (ctypes.c_void_p,), finish)


def query_cells(
    e: Emitter, tile: Tile, capacity: int, item: ir.Value, query: ir.Value
) -> list[ir.Value]:
    """Addresses of the cosines of an item with one vector of queries, row by row.

    The panel holds, for each vector of queries, its `capacity` rows one after the other.
    """
    start = e.mul(query, capacity)
    columns = [
        e.at(tile.products, e.add(e.mul(e.add(e.mul(item, capacity), column), tile.width), start))
        for column in range(capacity)
    ]
    return [e.at(column, row * e.lanes) for row in range(capacity) for column in columns]


def _row_start(e: Emitter, capacity: int, group: ir.Value, lane: int, column: int) -> ir.Value:
    return e.mul(e.add(e.mul(group, capacity), lane * capacity + column), e.lanes)


def _store_score(e: Emitter, capacity: int, cells: Sequence[ir.Value], place: ir.Value) -> None:
    def cell(row: int, column: int) -> ir.Value:
        return e.load(cells[row * capacity + column], e.floats)

    (total,) = emit_totals(e, single_plan(capacity), cell)
    e.store(emit_score(e, total, capacity), place, 64)


def _emit_row(e: Emitter, vector: ir.Value, target: ir.Value, count: ir.Value) -> None:
    """Copy the first `count` lanes of a stored vector, or all of them if it has fewer."""
    whole = e.builder.icmp_signed(">=", count, index(e.lanes))
    with e.either(whole) as (then, otherwise):
        with then:
            e.store(e.load(vector, e.floats, 64), target)
        with otherwise, e.loop(count) as lane:
            e.store(e.load(e.at(vector, lane), F32), e.at(target, lane))

"""The kernel that rules pairs out: products of bytes, bounds, and a band that holds the canonical score (R5)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache, reduce

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel
from adaptiveembed.similarity.kernels.gallery import Tile, gallery_kernel
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.product import Rows
from adaptiveembed.similarity.kernels.scoring import query_cells
from adaptiveembed.similarity.kernels.vocabulary import F32, I1, I32, I64, Emitter, index


@lru_cache(maxsize=32)
def screening_kernel(capacity: int) -> Kernel:
    """Lists the pairs whose score may reach the query's threshold, and returns how many.

    A pair is first held against the smaller of the two mean maxima, which bounds its score from above; only where one
    of a vector's pairs gets past that is the assignment solved. More arguments: query corrections (32-bit) and scales,
    lane by lane of the panel; thresholds and bands of the queries; scales and bands of the gallery's vectors, to be
    found like its inverse norms; out, pairs of 32-bit numbers (query, place of the item); number of query lanes.
    """

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        corrections, scales, thresholds, bands, item_scales, item_bands, out, num_lanes = more
        cosines = e.stack(e.floats, capacity * capacity)
        with e.loop(tile.count) as item:
            columns, band = _item_scales(e, tile, capacity, item, item_scales, item_bands)
            with e.loop(num_lanes, step=e.lanes) as query:
                cells = query_cells(e, tile, capacity, item, query)
                start = e.mul(query, capacity)
                _store_cosines(e, capacity, cells, columns, start, corrections, scales, cosines)
                limit = e.builder.fsub(
                    e.load(e.at(thresholds, query), e.floats),
                    e.builder.fadd(e.load(e.at(bands, query), e.floats), band),
                )
                limit = e.builder.fmul(limit, e.constant(float(capacity)))
                open_lanes = _at_least(e, _upper_total(e, capacity, cosines), limit)
                with e.when(_any(e, open_lanes)):
                    if capacity > 1:
                        (total,) = emit_totals(
                            e, single_plan(capacity), _reader(e, capacity, cosines)
                        )
                        open_lanes = _at_least(e, total, limit)
                    place = e.add(tile.first, item)
                    _emit_pairs(e, open_lanes, query, place, out, tile.result)

    pointers = (ctypes.c_void_p,) * 7
    return gallery_kernel(Rows.BYTES, capacity, (*pointers, ctypes.c_int64), finish)


def _item_scales(
    e: Emitter,
    tile: Tile,
    capacity: int,
    item: ir.Value,
    scales: ir.Value,
    bands: ir.Value,
) -> tuple[list[ir.Value], ir.Value]:
    """The scale of each of an item's active vectors, and the mean of their bands, in every lane."""
    number = e.load(e.at(tile.source.items, e.add(tile.first, item), I64), I64, 8)
    found: list[ir.Value] = []
    total = ir.Constant(F32, 0.0)
    for position in range(capacity):
        before = e.load(e.at(tile.source.offsets, 2 * position + 1, I64), I64, 8)
        place = e.add(before, number)
        found.append(e.broadcast(e.load(e.at(scales, place), F32), e.floats))
        total = e.builder.fadd(total, e.load(e.at(bands, place), F32))
    mean = e.builder.fdiv(total, ir.Constant(F32, float(capacity)))
    return found, e.broadcast(mean, e.floats)


def _store_cosines(
    e: Emitter,
    capacity: int,
    cells: Sequence[ir.Value],
    columns: Sequence[ir.Value],
    start: ir.Value,
    corrections: ir.Value,
    scales: ir.Value,
    cosines: ir.Value,
) -> None:
    """Approximate cosines: the integer products without the codes' offset, times the scales of both vectors."""
    b = e.builder
    for row in range(capacity):
        lane = e.add(start, row * e.lanes)
        correction = e.load(e.at(corrections, lane), e.integers)
        scale = e.load(e.at(scales, lane), e.floats)
        for column in range(capacity):
            cell = row * capacity + column
            product = b.add(e.load(cells[cell], e.integers), correction)
            cosine = b.fmul(b.fmul(b.sitofp(product, e.floats), scale), columns[column])
            e.store(cosine, e.at(cosines, cell, e.floats), 64)


def _upper_total(e: Emitter, capacity: int, cosines: ir.Value) -> ir.Value:
    """No assignment totals more than the rows' maxima, nor more than the columns'."""
    cell, places = _reader(e, capacity, cosines), range(capacity)
    rows = (reduce(e.greater, [cell(row, column) for column in places]) for row in places)
    columns = (reduce(e.greater, [cell(row, column) for row in places]) for column in places)
    return e.smaller(reduce(e.builder.fadd, rows), reduce(e.builder.fadd, columns))


def _reader(e: Emitter, capacity: int, cosines: ir.Value):  # noqa: ANN202
    def cell(row: int, column: int) -> ir.Value:
        return e.load(e.at(cosines, row * capacity + column, e.floats), e.floats, 64)

    return cell


def _at_least(e: Emitter, values: ir.Value, limits: ir.Value) -> ir.Value:
    return e.builder.fcmp_ordered(">=", values, limits)


def _any(e: Emitter, mask: ir.Value) -> ir.Value:
    return e.builder.icmp_unsigned("!=", e.bits(mask), ir.Constant(ir.IntType(e.lanes), 0))


def _emit_pairs(
    e: Emitter, mask: ir.Value, query: ir.Value, place: ir.Value, out: ir.Value, result: ir.Value
) -> None:
    b = e.builder
    bits = e.bits(mask)
    with e.loop(e.lanes) as lane:
        bit = b.trunc(b.lshr(bits, b.trunc(lane, bits.type)), I1)
        with e.when(bit):
            count = e.load(result, I64, 8)
            target = e.at(out, e.mul(count, 2), I32)
            e.store(b.trunc(e.add(query, lane), I32), target)
            e.store(b.trunc(place, I32), e.at(target, 1, I32))
            e.store(b.add(count, index(1)), result, 8)

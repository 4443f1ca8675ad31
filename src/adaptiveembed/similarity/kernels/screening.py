"""The kernel that rules pairs out: products of bytes, bounds, and a band for what bytes lose."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import Cell, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel
from adaptiveembed.similarity.kernels.frame import ADDRESS, NUMBER, gallery_kernel
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.product import Rows, Tile
from adaptiveembed.similarity.kernels.scoring import query_cells, stored_cells
from adaptiveembed.similarity.kernels.vocabulary import F32, I1, I32, I64, Emitter, index


@dataclass(frozen=True)
class _Arguments:
    """The kernel's further arguments."""

    corrections: ir.Value  # what undoes the offset of the gallery's codes, lane by lane
    scales: ir.Value  # of the query vectors, lane by lane
    thresholds: ir.Value  # of the queries
    bands: ir.Value  # how much bytes may take from a score on the queries' side
    item_scales: ir.Value  # of the gallery's vectors, to be found like inverse norms
    item_bands: ir.Value  # likewise
    out: ir.Value  # pairs of 32-bit numbers: query, place of the item
    num_lanes: ir.Value  # lanes of all queries


@lru_cache(maxsize=32)
def screening_kernel(capacity: int) -> Kernel:
    """Lists the pairs whose score may reach the query's threshold, and returns how many.

    A pair is first held against the smaller of the two mean maxima, which bounds its score from
    above; the assignment is solved only where one of a vector's pairs gets past that. The further
    arguments are `_Arguments`.
    """

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        given = _Arguments(*more)
        cosines = e.stack(e.floats, capacity * capacity)
        cell = stored_cells(e, capacity, cosines)
        with e.loop(tile.count) as item:
            columns, band = _emit_item(e, tile, given, item)
            with e.loop(given.num_lanes, step=e.lanes) as query:
                products = query_cells(e, tile, item, query, e.integers)
                scaled = _scaled_cells(e, tile, given, products, query)
                _emit_cosines(e, columns, scaled, cosines)
                limit = _emit_limit(e, tile, given, query, band)
                possible = _at_least(e, _upper_total(e, capacity, cell), limit)
                with e.when(_any(e, possible)):
                    if capacity > 1:
                        (total,) = emit_totals(e, single_plan(capacity), cell)
                        possible = _at_least(e, total, limit)
                    _emit_pairs(e, possible, (query, e.add(tile.first, item)), given, tile)

    return gallery_kernel(Rows.BYTES, capacity, (*(ADDRESS,) * 7, NUMBER), finish)


def _emit_item(
    e: Emitter, tile: Tile, given: _Arguments, item: ir.Value
) -> tuple[list[ir.Value], ir.Value]:
    """The scale of each of an item's active vectors, and the mean of their bands, in all lanes."""
    number = e.load(e.at(tile.source.items, e.add(tile.first, item), I64), I64, 8)
    entries = [2 * position + 1 for position in range(tile.capacity)]
    befores = [e.load(e.at(tile.source.offsets, entry, I64), I64, 8) for entry in entries]
    places = [e.add(before, number) for before in befores]
    scales = [e.broadcast(e.load(e.at(given.item_scales, at), F32), e.floats) for at in places]
    total = reduce(e.builder.fadd, [e.load(e.at(given.item_bands, at), F32) for at in places])
    mean = e.builder.fdiv(total, ir.Constant(F32, float(tile.capacity)))
    return scales, e.broadcast(mean, e.floats)


def _scaled_cells(
    e: Emitter, tile: Tile, given: _Arguments, products: Cell, query: ir.Value
) -> Cell:
    """Integer products without the codes' offset, times the scale of the query's vector."""
    start = e.mul(query, tile.capacity)
    lanes = [e.add(start, row * e.lanes) for row in range(tile.capacity)]
    corrections = [e.load(e.at(given.corrections, lane), e.integers) for lane in lanes]
    scales = [e.load(e.at(given.scales, lane), e.floats) for lane in lanes]

    def cell(row: int, column: int) -> ir.Value:
        product = e.builder.add(products(row, column), corrections[row])
        return e.builder.fmul(e.builder.sitofp(product, e.floats), scales[row])

    return cell


def _emit_cosines(e: Emitter, columns: Sequence[ir.Value], scaled: Cell, cosines: ir.Value) -> None:
    """Approximate cosines onto the stack, row by row."""
    for row in range(len(columns)):
        for column, scale in enumerate(columns):
            cosine = e.builder.fmul(scaled(row, column), scale)
            e.store(cosine, e.at(cosines, row * len(columns) + column, e.floats), 64)


def _emit_limit(
    e: Emitter, tile: Tile, given: _Arguments, query: ir.Value, band: ir.Value
) -> ir.Value:
    """The total that a pair must reach to be possible: the threshold less both bands."""
    bands = e.builder.fadd(e.load(e.at(given.bands, query), e.floats), band)
    mean = e.builder.fsub(e.load(e.at(given.thresholds, query), e.floats), bands)
    return e.builder.fmul(mean, e.constant(float(tile.capacity)))


def _upper_total(e: Emitter, capacity: int, cell: Cell) -> ir.Value:
    """No assignment totals more than the rows' maxima, nor more than the columns'."""
    places = range(capacity)
    rows = (reduce(e.greater, [cell(row, column) for column in places]) for row in places)
    columns = (reduce(e.greater, [cell(row, column) for row in places]) for column in places)
    return e.smaller(reduce(e.builder.fadd, rows), reduce(e.builder.fadd, columns))


def _at_least(e: Emitter, values: ir.Value, limits: ir.Value) -> ir.Value:
    return e.builder.fcmp_ordered(">=", values, limits)


def _any(e: Emitter, mask: ir.Value) -> ir.Value:
    return e.builder.icmp_unsigned("!=", e.bits(mask), ir.Constant(ir.IntType(e.lanes), 0))


def _emit_pairs(
    e: Emitter,
    mask: ir.Value,
    pair: tuple[ir.Value, ir.Value],
    given: _Arguments,
    tile: Tile,
) -> None:
    """List the item with every query whose lane is set."""
    b, bits = e.builder, e.bits(mask)
    query, item = pair
    with e.loop(e.lanes) as lane, e.when(b.trunc(b.lshr(bits, b.trunc(lane, bits.type)), I1)):
        count = e.load(tile.result, I64, 8)
        target = e.at(given.out, e.mul(count, 2), I32)
        e.store(b.trunc(e.add(query, lane), I32), target)
        e.store(b.trunc(item, I32), e.at(target, 1, I32))
        e.store(b.add(count, index(1)), tile.result, 8)

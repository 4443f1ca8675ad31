"""The kernel that rules pairs out: products of bytes, bounds, and a band for what bytes lose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import Cell, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel
from adaptiveembed.similarity.kernels.frame import ADDRESS, NUMBER, gallery_kernel
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.product import Rows, Tile
from adaptiveembed.similarity.kernels.scoring import query_cells, stored_cells, turned_column
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
            scales, band = _emit_item(e, tile, given, item)
            columns = [e.broadcast(scale, e.floats) for scale in scales]
            band = e.broadcast(band, e.floats)
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
                    place = e.add(tile.first, item)
                    _emit_pairs(e, possible, lambda lane: (e.add(query, lane), place), given, tile)

    return gallery_kernel(Rows.BYTES, capacity, (*(ADDRESS,) * 7, NUMBER), finish)


@lru_cache(maxsize=32)
def one_query_screening_kernel(capacity: int) -> Kernel:
    """The same for one query, whose vectors lie in the lanes of a panel of one vector.

    Corrections and scales are one for each of the query's vectors.
    """

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        given = _Arguments(*more)
        cosines = e.stack(e.floats, capacity * capacity)
        item_scales, item_bands = e.stack(e.floats, capacity), e.stack(e.floats)
        cell = stored_cells(e, capacity, cosines)
        with e.loop(tile.count, step=e.lanes) as group:
            _emit_group(e, tile, given, group, (item_scales, item_bands))
            for column in range(capacity):
                scale = e.load(e.at(item_scales, column, e.floats), e.floats, 64)
                _emit_cosine_column(e, tile, given, (group, column), (scale, cosines))
            limit = _emit_limit_of_items(e, tile, given, item_bands)
            present = _present(e, e.builder.sub(tile.count, group))
            possible = _at_least(e, _upper_total(e, capacity, cell), limit)
            with e.when(_any(e, e.builder.and_(possible, present))):
                (total,) = emit_totals(e, single_plan(capacity), cell)
                possible = e.builder.and_(_at_least(e, total, limit), present)
                place = e.add(tile.first, group)
                _emit_pairs(e, possible, lambda lane: (index(0), e.add(place, lane)), given, tile)

    return gallery_kernel(Rows.BYTES, capacity, (*(ADDRESS,) * 7, NUMBER), finish)


def _emit_group(
    e: Emitter,
    tile: Tile,
    given: _Arguments,
    group: ir.Value,
    out: tuple[ir.Value, ir.Value],
) -> None:
    """The scales of a group of items, position by position, and their mean bands, item to lane."""
    scales, bands = out
    last = e.builder.sub(tile.count, index(1))
    with e.loop(e.lanes) as lane:
        item = e.least(e.add(group, lane), last)
        found, band = _emit_item(e, tile, given, item)
        for position, scale in enumerate(found):
            e.store(scale, e.at(e.at(scales, position, e.floats), lane))
        e.store(band, e.at(bands, lane))


def _emit_cosine_column(
    e: Emitter,
    tile: Tile,
    given: _Arguments,
    place: tuple[ir.Value, int],
    out: tuple[ir.Value, ir.Value],
) -> None:
    """One column of the approximate cosines of a group of items, an item to a lane."""
    (group, column), (item_scale, cosines) = place, out
    for row, product in enumerate(turned_column(e, tile, group, column, e.integers)):
        correction = e.broadcast(e.load(e.at(given.corrections, row), I32), e.integers)
        scale = e.broadcast(e.load(e.at(given.scales, row), F32), e.floats)
        dot = e.builder.sitofp(e.builder.add(product, correction), e.floats)
        cosine = e.builder.fmul(e.builder.fmul(dot, scale), item_scale)
        e.store(cosine, e.at(cosines, row * tile.capacity + column, e.floats), 64)


def _emit_limit_of_items(
    e: Emitter, tile: Tile, given: _Arguments, item_bands: ir.Value
) -> ir.Value:
    """The one query's threshold less its band and that of each item."""
    threshold, band = (e.load(place, F32) for place in (given.thresholds, given.bands))
    bands = e.builder.fadd(e.broadcast(band, e.floats), e.load(item_bands, e.floats, 64))
    mean = e.builder.fsub(e.broadcast(threshold, e.floats), bands)
    return e.builder.fmul(mean, e.constant(float(tile.capacity)))


def _present(e: Emitter, left: ir.Value) -> ir.Value:
    """The lanes of a group that hold an item."""
    count = e.broadcast(e.builder.trunc(e.least(left, e.lanes), I32), e.integers)
    return e.builder.icmp_signed("<", ir.Constant(e.integers, list(range(e.lanes))), count)


def _emit_item(
    e: Emitter, tile: Tile, given: _Arguments, item: ir.Value
) -> tuple[list[ir.Value], ir.Value]:
    """The scale of each of an item's active vectors, and the mean of their bands."""
    number = e.load(e.at(tile.source.items, e.add(tile.first, item), I64), I64, 8)
    entries = [2 * position + 1 for position in range(tile.capacity)]
    starts = [e.load(e.at(tile.source.offsets, entry, I64), I64, 8) for entry in entries]
    places = [e.add(start, number) for start in starts]
    scales = [e.load(e.at(given.item_scales, at), F32) for at in places]
    total = reduce(e.builder.fadd, [e.load(e.at(given.item_bands, at), F32) for at in places])
    return scales, e.builder.fdiv(total, ir.Constant(F32, float(tile.capacity)))


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
    pair: Callable[[ir.Value], tuple[ir.Value, ir.Value]],
    given: _Arguments,
    tile: Tile,
) -> None:
    """List the query and the item of every lane that is set."""
    b, bits = e.builder, e.bits(mask)
    with e.loop(e.lanes) as lane, e.when(b.trunc(b.lshr(bits, b.trunc(lane, bits.type)), I1)):
        count = e.load(tile.result, I64, 8)
        for number, value in enumerate(pair(lane)):
            place = e.add(e.mul(count, 2), number)
            e.store(b.trunc(value, I32), e.at(given.out, place, I32))
        e.store(b.add(count, index(1)), tile.result, 8)

"""Kernels that return canonical scores: product, exact assignment, mean (Eq. 2, R5)."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import Cell, emit_score, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel
from adaptiveembed.similarity.kernels.frame import ADDRESS, NUMBER, gallery_kernel
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.product import Rows, Tile
from adaptiveembed.similarity.kernels.vocabulary import F32, Emitter, index


@lru_cache(maxsize=64)
def many_queries_kernel(rows: Rows, capacity: int) -> Kernel:
    """Scores of many queries, one to a lane.

    More arguments: scores [query, item], words from a query's to the next, number of queries.
    """

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        out, out_stride, num_queries = more
        square = e.stack(e.floats, e.lanes)
        with e.loop(tile.count, step=e.lanes) as group, e.loop(num_queries, step=e.lanes) as query:
            with e.loop(e.lanes) as lane:
                cell = query_cells(e, tile, e.add(group, lane), query)
                e.store(_emit_best(e, capacity, cell), e.at(square, lane, e.floats), 64)
            _emit_transposed(e, square)
            with e.loop(e.least(e.lanes, e.builder.sub(num_queries, query))) as lane:
                start = e.add(e.mul(e.add(query, lane), out_stride), tile.first, group)
                left = e.builder.sub(tile.count, group)
                _emit_row(e, e.at(square, lane, e.floats), e.at(out, start), left)

    return gallery_kernel(rows, capacity, (ADDRESS, NUMBER, NUMBER), finish)


@lru_cache(maxsize=64)
def one_query_kernel(rows: Rows, capacity: int) -> Kernel:
    """Scores of one query, whose vectors lie in the lanes of a panel of one vector.

    One more argument: scores [item].
    """

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        (out,) = more
        cells, scores = e.stack(e.floats, capacity * capacity), e.stack(e.floats)
        with e.loop(tile.count, step=e.lanes) as group:
            for column in range(capacity):
                for row, vector in enumerate(turned_column(e, tile, group, column, e.floats)):
                    e.store(vector, e.at(cells, row * capacity + column, e.floats), 64)
            e.store(_emit_best(e, capacity, stored_cells(e, capacity, cells)), scores, 64)
            left = e.builder.sub(tile.count, group)
            _emit_row(e, scores, e.at(out, e.add(tile.first, group)), left)

    return gallery_kernel(rows, capacity, (ADDRESS,), finish)


def query_cells(
    e: Emitter, tile: Tile, item: ir.Value, query: ir.Value, kind: ir.Type | None = None
) -> Cell:
    """The products of an item of the tile with one vector of queries.

    The panel keeps the `capacity` rows of one vector of queries together.
    """
    start = e.mul(query, tile.capacity)
    columns = [
        e.add(e.mul(e.add(e.mul(item, tile.capacity), column), tile.width), start)
        for column in range(tile.capacity)
    ]
    places = [e.at(tile.products, column) for column in columns]

    def cell(row: int, column: int) -> ir.Value:
        return e.load(e.at(places[column], row * e.lanes), kind or e.floats)

    return cell


def turned_column(
    e: Emitter, tile: Tile, group: ir.Value, column: int, kind: ir.Type
) -> list[ir.Value]:
    """One column of the products of a group of items with one query: row by row, item to lane."""
    capacity = tile.capacity
    places = (
        e.mul(e.add(e.mul(group, capacity), lane * capacity + column), e.lanes)
        for lane in range(e.lanes)
    )
    vectors = [e.load(e.at(tile.products, place), kind) for place in places]
    return e.transpose(vectors)[:capacity]


def stored_cells(e: Emitter, capacity: int, cells: ir.Value) -> Cell:
    """Cells kept row by row on the stack."""

    def cell(row: int, column: int) -> ir.Value:
        return e.load(e.at(cells, row * capacity + column, e.floats), e.floats, 64)

    return cell


def _emit_best(e: Emitter, capacity: int, cell: Callable[[int, int], ir.Value]) -> ir.Value:
    (total,) = emit_totals(e, single_plan(capacity), cell)
    return emit_score(e, total, capacity)


def _emit_transposed(e: Emitter, square: ir.Value) -> None:
    places = [e.at(square, lane, e.floats) for lane in range(e.lanes)]
    turned = e.transpose([e.load(place, e.floats, 64) for place in places])
    for vector, place in zip(turned, places, strict=True):
        e.store(vector, place, 64)


def _emit_row(e: Emitter, vector: ir.Value, target: ir.Value, left: ir.Value) -> None:
    """Copy the first lanes of a stored vector: as many as are left, at most all of them."""
    whole = e.builder.icmp_signed(">=", left, index(e.lanes))
    with e.either(whole) as (then, otherwise):
        with then:
            e.store(e.load(vector, e.floats, 64), target)
        with otherwise, e.loop(left) as lane:
            e.store(e.load(e.at(vector, lane), F32), e.at(target, lane))

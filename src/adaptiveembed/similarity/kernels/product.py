"""The one product under every score: a dot product is summed in one order, wherever it stands.

Query vectors lie in lanes and gallery vectors are broadcast, so every dot product has an
accumulator of its own: blocks of `BLOCK` words by fused multiply-add in ascending order, then the
blocks' sums in ascending order. The bits of a cosine are therefore a function of its two vectors
alone (R5), and the gallery needs no packing.

A word is one float32, or four bytes of the screen, whose sums are integers without an order.
"""

from dataclasses import dataclass
from enum import Enum

from llvmlite import ir

from adaptiveembed.similarity.kernels.vocabulary import (
    F16,
    F32,
    I1,
    I32,
    I64,
    POINTER,
    Emitter,
    index,
)

BLOCK = 256
"""Words summed before the sum joins the total: bounds the rounding error and fits the cache."""

ROWS = 12
"""Gallery vectors of a micro-tile: times two vectors of queries, 24 of 32 registers."""


class Rows(Enum):
    """How gallery vectors are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"  # read as float32 times the vector's inverse norm
    BYTES = "bytes"  # four unsigned codes a word


@dataclass(frozen=True)
class Source:
    """Where a kernel finds its gallery vectors, as values of the function being written."""

    base: ir.Value  # first word of the gallery
    inverse_norms: ir.Value  # of every vector; read for float16 only
    offsets: ir.Value  # per active position: words before it, then vectors before it
    item_stride: ir.Value  # words from an item to the next
    items: ir.Value  # item numbers


@dataclass(frozen=True)
class Tile:
    """A run of items and its product with all queries, as values of the function being written.

    The product has room for ROWS - 1 rows beyond the last item's, which may be written.
    """

    rows: Rows
    capacity: int
    source: Source
    panel: ir.Value  # queries [vector of lanes, word, lane]
    words: ir.Value  # words of one vector
    width: ir.Value  # lanes of the panel
    first: ir.Value  # place of the first item in the list of items
    count: ir.Value  # how many items
    products: ir.Value  # [item, position, lane of the panel]
    result: ir.Value  # address of the integer that the kernel returns

    @property
    def exact(self) -> bool:
        """Whether words are floats."""
        return self.rows is not Rows.BYTES

    @property
    def stored(self) -> ir.Type:
        """What a vector in memory consists of."""
        return F16 if self.rows is Rows.FLOAT16 else F32


@dataclass(frozen=True)
class _Block:
    """A block of words of a vector."""

    start: ir.Value
    length: ir.Value


def emit_tile_product(e: Emitter, tile: Tile) -> None:
    """Fill the products of a tile."""
    multiply = {vectors: _emit_multiply(e, tile, vectors) for vectors in (1, 2)}
    buffer = e.stack(F32, ROWS * BLOCK)
    num_rows = e.mul(tile.count, tile.capacity)
    with e.loop(tile.words, step=BLOCK) as start:
        block = _Block(start, e.least(BLOCK, e.builder.sub(tile.words, start)))
        with e.loop(num_rows, step=ROWS) as first_row:
            _emit_rows(e, tile, block, first_row, buffer)
            _emit_panel(e, tile, block, multiply, (buffer, first_row))


def _emit_panel(
    e: Emitter,
    tile: Tile,
    block: _Block,
    multiply: dict[int, ir.Function],
    rows: tuple[ir.Value, ir.Value],
) -> None:
    """The product of the rows in the buffer with the whole panel, two of its vectors at a time."""
    buffer, first_row = rows
    num_vectors = e.builder.sdiv(tile.width, index(e.lanes))
    even = e.round_down(num_vectors, 2)
    stride = e.mul(tile.words, e.lanes)
    more = e.builder.icmp_signed(">", block.start, index(0))
    for vectors, start, stop in ((2, index(0), even), (1, even, num_vectors)):
        with e.loop(stop, start=start, step=vectors) as vector:
            panel = e.at(tile.panel, e.add(e.mul(vector, stride), e.mul(block.start, e.lanes)))
            place = e.add(e.mul(first_row, tile.width), e.mul(vector, e.lanes))
            products = [e.at(tile.products, place), tile.width, more]
            e.builder.call(multiply[vectors], [panel, stride, buffer, block.length, *products])


def _emit_multiply(e: Emitter, tile: Tile, vectors: int) -> ir.Function:
    """A function: products = (or +=) `vectors` vectors of queries x ROWS rows, over one block."""
    kinds = [POINTER, I64, POINTER, I64, POINTER, I64, I1]
    signature = ir.FunctionType(ir.VoidType(), kinds)
    function = ir.Function(e.builder.module, signature, f"multiply_{vectors}")
    function.linkage = "internal"
    function.attributes.add("noinline")
    panel, panel_stride, buffer, length, products, width, more = function.args
    e = Emitter(function, e.lanes)
    kind = e.floats if tile.exact else e.integers
    sums = [[e.at(e.stack(kind, vectors), v, kind) for v in range(vectors)] for _ in range(ROWS)]
    for place in (place for row in sums for place in row):
        e.store(ir.Constant(kind, None), place, 64)
    with e.loop(length) as word:
        starts = (e.add(e.mul(panel_stride, v), e.mul(word, e.lanes)) for v in range(vectors))
        queries = [e.load(e.at(panel, start), kind) for start in starts]
        for number, row in enumerate(sums):
            scalar = e.load(e.at(buffer, e.add(word, number * BLOCK)), F32 if tile.exact else I32)
            _emit_step(e, tile, e.broadcast(scalar, kind), queries, row)
    for number, row in enumerate(sums):
        for v, place in enumerate(row):
            target = e.at(products, e.add(e.mul(width, number), v * e.lanes))
            _emit_join(e, tile, e.load(place, kind, 64), target, more)
    e.finish()
    return function


def _emit_step(
    e: Emitter, tile: Tile, gallery: ir.Value, queries: list[ir.Value], sums: list[ir.Value]
) -> None:
    step = e.fused_multiply_add if tile.exact else e.byte_multiply_add
    for query, place in zip(queries, sums, strict=True):
        e.store(step(gallery, query, e.load(place, gallery.type, 64)), place, 64)


def _emit_join(e: Emitter, tile: Tile, total: ir.Value, target: ir.Value, more: ir.Value) -> None:
    """Write a block's sum, or add it to those of the blocks before."""
    add = e.builder.fadd if tile.exact else e.builder.add
    joined = add(e.load(target, total.type), total)
    e.store(e.builder.select(more, joined, total), target)


def _emit_rows(
    e: Emitter, tile: Tile, block: _Block, first_row: ir.Value, buffer: ir.Value
) -> None:
    """Copy one block of the next ROWS gallery vectors into the buffer, as words to broadcast.

    The vectors whose turn comes after these are fetched meanwhile: the products in between hide
    the memory's delay.
    """
    num_rows = e.mul(tile.count, tile.capacity)
    last_row = e.builder.sub(num_rows, index(1))
    with e.loop(e.least(ROWS, e.builder.sub(num_rows, first_row))) as number:
        row = e.add(first_row, number)
        here, norm = _emit_origin(e, tile, block, row)
        ahead, _ = _emit_origin(e, tile, block, e.least(e.add(row, ROWS), last_row))
        scale = e.load(norm, F32) if tile.rows is Rows.FLOAT16 else None
        target = e.at(buffer, e.mul(number, BLOCK))
        whole = e.round_down(block.length, e.lanes)
        with e.loop(whole, step=e.lanes) as word:
            place = e.at(here, word, tile.stored)
            e.store(_emit_read(e, place, e.floats, scale), e.at(target, word))
            e.prefetch(e.at(ahead, word, tile.stored))
        with e.loop(block.length, start=whole) as word:
            place = e.at(here, word, tile.stored)
            e.store(_emit_read(e, place, F32, scale), e.at(target, word))


def _emit_origin(e: Emitter, tile: Tile, block: _Block, row: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Where a block of a gallery vector begins, and where its inverse norm lies."""
    source, capacity = tile.source, index(tile.capacity)
    place = e.add(tile.first, e.builder.sdiv(row, capacity))
    entry = e.mul(e.builder.srem(row, capacity), 2)
    item = e.load(e.at(source.items, place, I64), I64, 8)
    words_before = e.load(e.at(source.offsets, entry, I64), I64, 8)
    vectors_before = e.load(e.at(source.offsets, e.add(entry, 1), I64), I64, 8)
    start = e.add(words_before, e.mul(item, source.item_stride), block.start)
    norm = e.at(source.inverse_norms, e.add(vectors_before, item))
    return e.at(source.base, start, tile.stored), norm


def _emit_read(e: Emitter, place: ir.Value, kind: ir.Type, scale: ir.Value | None) -> ir.Value:
    """One or many words; halves are scaled to unit length."""
    if scale is None:
        return e.load(place, kind)
    many = kind != F32
    halves = e.load(place, ir.VectorType(F16, e.lanes) if many else F16, 2)
    factor = e.broadcast(scale, kind) if many else scale
    return e.builder.fmul(e.builder.fpext(halves, kind), factor)

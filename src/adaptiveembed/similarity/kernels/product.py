"""The one product under every score: each dot product is summed in the same order, wherever it stands.

Query vectors lie in lanes and gallery vectors are broadcast, so every dot product has an accumulator of its own:
blocks of `BLOCK` words by fused multiply-add in ascending order, then the blocks' sums in ascending order. The bits of
a cosine are therefore a function of its two vectors alone (R5), and the gallery needs no packing.

A word is one float32, or four bytes of the int8 screen, whose sums are integers and have no order to mind.
"""

from __future__ import annotations

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

BLOCK = 256  # words summed before the sum joins the total: bounds the rounding error and fits the first cache
ROWS = 12  # gallery vectors per micro-tile: with two vectors of queries, 24 accumulators of 32 registers


class Rows(Enum):
    """How gallery vectors are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"  # read as float32 times the vector's inverse norm
    BYTES = "bytes"  # four unsigned codes a word


@dataclass(frozen=True)
class Source:
    """Where a kernel finds its gallery vectors, as values of the function being written."""

    base: ir.Value  # first word of position 0 of item 0
    inverse_norms: ir.Value  # of every vector, read for float16 only
    offsets: ir.Value  # per active position: words before it, then vectors before it
    item_stride: ir.Value  # words from an item to the next
    items: ir.Value  # item numbers, 64-bit


def emit_multiply(module: ir.Module, lanes: int, vectors: int, rows_kind: Rows) -> ir.Function:
    """scratch = (or +=) `vectors` panels x ROWS buffered rows, over the words of one block."""
    signature = ir.FunctionType(ir.VoidType(), [POINTER, I64, POINTER, I64, POINTER, I64, I1])
    function = ir.Function(module, signature, f"multiply_{vectors}")
    function.linkage = "internal"
    function.attributes.add("noinline")
    panel, panel_stride, buffer, length, scratch, scratch_stride, more = function.args
    e = Emitter(function, lanes)
    exact = rows_kind is not Rows.BYTES
    zero = ir.Constant(e.floats if exact else e.integers, None)
    sums = [e.stack(zero.type, vectors) for _ in range(ROWS)]
    places = [[e.at(row, v, zero.type) for v in range(vectors)] for row in sums]
    for place in (place for row in places for place in row):
        e.store(zero, place, 64)
    with e.loop(length) as word:
        depth = e.mul(word, lanes)
        queries = [
            e.load(e.at(panel, e.add(e.mul(panel_stride, v), depth)), zero.type)
            for v in range(vectors)
        ]
        for r in range(ROWS):
            scalar = e.load(e.at(buffer, e.add(word, r * BLOCK)), F32 if exact else I32)
            wide = e.broadcast(scalar, zero.type)
            for v in range(vectors):
                total = e.load(places[r][v], zero.type, 64)
                step = e.fused_multiply_add if exact else e.byte_multiply_add
                e.store(step(wide, queries[v], total), places[r][v], 64)
    for r in range(ROWS):
        for v in range(vectors):
            target = e.at(scratch, e.add(e.mul(scratch_stride, r), v * lanes))
            total = e.load(places[r][v], zero.type, 64)
            join = e.builder.fadd if exact else e.builder.add
            joined = join(e.load(target, zero.type), total)
            e.store(e.builder.select(more, joined, total), target)
    e.finish()
    return function


def emit_tile_product(
    e: Emitter,
    rows_kind: Rows,
    capacity: int,
    source: Source,
    panel: ir.Value,
    words: ir.Value,
    width: ir.Value,
    first_item: ir.Value,
    num_items: ir.Value,
    scratch: ir.Value,
) -> None:
    """scratch[item * capacity + position, lane] = dot products of a run of items with all lanes of the panel.

    `width` counts the panel's lanes, a multiple of the vector's. Rows are read ROWS at a time, and the last run writes
    up to ROWS - 1 rows beyond the last item's: scratch must have room for them.
    """
    module = e.builder.module
    one, two = (emit_multiply(module, e.lanes, vectors, rows_kind) for vectors in (1, 2))
    buffer = e.stack(F32, ROWS * BLOCK)
    num_rows = e.mul(num_items, capacity)
    last_row = e.builder.sub(num_rows, index(1))
    num_vectors = e.builder.sdiv(width, index(e.lanes))
    even = e.mul(e.builder.sdiv(num_vectors, index(2)), 2)
    panel_stride = e.mul(words, e.lanes)

    def origin(row: ir.Value, block: ir.Value) -> tuple[ir.Value, ir.Value]:
        return _emit_origin(e, rows_kind, capacity, source, first_item, row, block)

    with e.loop(words, step=BLOCK) as block:
        length = e.least(BLOCK, e.builder.sub(words, block))
        more = e.builder.icmp_signed(">", block, index(0))
        panel_block = e.at(panel, e.mul(block, e.lanes))
        with e.loop(num_rows, step=ROWS) as first_row:
            run = e.least(ROWS, e.builder.sub(num_rows, first_row))
            with e.loop(run) as r:
                row = e.add(first_row, r)
                here, norm = origin(row, block)
                ahead, _ = origin(e.least(e.add(row, ROWS), last_row), block)
                _emit_copy(e, rows_kind, here, norm, length, e.at(buffer, e.mul(r, BLOCK)), ahead)
            target = e.at(scratch, e.mul(first_row, width))
            with e.loop(even, step=2) as v:
                place = [e.at(panel_block, e.mul(v, panel_stride)), panel_stride, buffer, length]
                e.builder.call(two, [*place, e.at(target, e.mul(v, e.lanes)), width, more])
            with e.loop(num_vectors, start=even) as v:
                place = [e.at(panel_block, e.mul(v, panel_stride)), panel_stride, buffer, length]
                e.builder.call(one, [*place, e.at(target, e.mul(v, e.lanes)), width, more])


def _emit_origin(
    e: Emitter,
    rows_kind: Rows,
    capacity: int,
    source: Source,
    first_item: ir.Value,
    row: ir.Value,
    block: ir.Value,
) -> tuple[ir.Value, ir.Value]:
    """Where a block of a gallery vector begins, and where its inverse norm lies."""
    b = e.builder
    place = e.add(first_item, b.sdiv(row, index(capacity)))
    entry = e.mul(b.srem(row, index(capacity)), 2)
    item = e.load(e.at(source.items, place, I64), I64, 8)
    words_before = e.load(e.at(source.offsets, entry, I64), I64, 8)
    vectors_before = e.load(e.at(source.offsets, e.add(entry, 1), I64), I64, 8)
    start = e.add(words_before, e.mul(item, source.item_stride), block)
    kind = F16 if rows_kind is Rows.FLOAT16 else F32
    return e.at(source.base, start, kind), e.at(source.inverse_norms, e.add(vectors_before, item))


def _emit_copy(
    e: Emitter,
    rows_kind: Rows,
    origin: ir.Value,
    norm: ir.Value,
    length: ir.Value,
    target: ir.Value,
    ahead: ir.Value,
) -> None:
    """One block of one gallery vector into the buffer, as words that can be broadcast.

    Fetches the vector whose turn comes next meanwhile: the products in between hide the memory's delay.
    """
    half = rows_kind is Rows.FLOAT16
    whole = e.mul(e.builder.sdiv(length, index(e.lanes)), e.lanes)
    scale = e.load(norm, F32) if half else None
    for kind, start, stop, step in ((e.floats, 0, whole, e.lanes), (F32, whole, length, 1)):
        with e.loop(stop, start=start, step=step) as word:
            place = e.at(origin, word, F16 if half else F32)
            value = _emit_half(e, place, kind, scale) if scale else e.load(place, kind)
            e.store(value, e.at(target, word))
            if step > 1:
                e.prefetch(e.at(ahead, word, F16 if half else F32))


def _emit_half(e: Emitter, place: ir.Value, kind: ir.Type, scale: ir.Value) -> ir.Value:
    wide = kind != F32
    stored = e.load(place, ir.VectorType(F16, e.lanes) if wide else F16, 2)
    factor = e.broadcast(scale, e.floats) if wide else scale
    return e.builder.fmul(e.builder.fpext(stored, kind), factor)

"""The frame of every kernel over a gallery: tile after tile of items, a product each, and what is made of it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from llvmlite import ir

from adaptiveembed.similarity.kernels.compiler import Kernel, compile_kernel, lanes
from adaptiveembed.similarity.kernels.product import Rows, Source, emit_tile_product
from adaptiveembed.similarity.kernels.vocabulary import I64, POINTER, Emitter, index


@dataclass(frozen=True)
class Tile:
    """The product of a run of items with all queries, ready to be turned into a result."""

    products: ir.Value  # [item, position, lane of the panel]
    width: ir.Value  # lanes of the panel
    first: ir.Value  # place of the tile's first item among the items asked for
    count: ir.Value  # how many items
    source: Source
    result: ir.Value  # address of the integer that the kernel returns, 0 at first


Finish: TypeAlias = Callable[[Emitter, Tile, Sequence[ir.Value]], None]


def gallery_kernel(rows: Rows, capacity: int, extras: Sequence[type], finish: Finish) -> Kernel:
    """Compile a kernel whose further arguments, after `GALLERY_ARGUMENTS`, are handed to `finish`."""
    module = ir.Module("kernel")
    kinds = [_kind(argument) for argument in (*GALLERY_ARGUMENTS, *extras)]
    function = ir.Function(module, ir.FunctionType(I64, kinds), "kernel")
    e = Emitter(function, lanes())
    panel, words, width, base, norms, offsets, stride, items, count, step, scratch, *more = (
        function.args
    )
    source = Source(base, norms, offsets, stride, items)
    result = e.stack(I64)
    e.store(index(0), result, 8)
    with e.loop(count, step=step) as first:
        tile_count = e.least(step, e.builder.sub(count, first))
        emit_tile_product(
            e, rows, capacity, source, panel, words, width, first, tile_count, scratch
        )
        finish(e, Tile(scratch, width, first, tile_count, source, result), more)
    e.finish(e.load(result, I64, 8))
    return compile_kernel(module, "kernel", (*GALLERY_ARGUMENTS, *extras))


GALLERY_ARGUMENTS: tuple[type, ...] = (
    ctypes.c_void_p,  # panel
    ctypes.c_int64,  # words of a vector
    ctypes.c_int64,  # lanes of the panel
    ctypes.c_void_p,  # first word of the gallery
    ctypes.c_void_p,  # inverse norms of the gallery's vectors, or null
    ctypes.c_void_p,  # offsets of the active positions
    ctypes.c_int64,  # words from an item to the next
    ctypes.c_void_p,  # items
    ctypes.c_int64,  # number of items
    ctypes.c_int64,  # items of a tile, a multiple of the lanes
    ctypes.c_void_p,  # scratch
)


def _kind(argument: type) -> ir.Type:
    return POINTER if argument is ctypes.c_void_p else I64

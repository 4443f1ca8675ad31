"""The frame of every kernel over a gallery: tile after tile, a product and what is made of it."""

import ctypes
from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite import ir

from adaptiveembed.similarity.kernels.compiler import Argument, Kernel, compile_kernel, lanes
from adaptiveembed.similarity.kernels.product import Rows, Source, Tile, emit_tile_product
from adaptiveembed.similarity.kernels.vocabulary import I64, POINTER, Emitter, index

Finish: TypeAlias = Callable[[Emitter, Tile, Sequence[ir.Value]], None]
"""Turns a tile's product into a result, with the kernel's further arguments."""

ADDRESS, NUMBER = ctypes.c_void_p, ctypes.c_int64

GALLERY_ARGUMENTS: tuple[Argument, ...] = (
    ADDRESS,  # panels, one for each list of items
    NUMBER,  # words of a vector
    NUMBER,  # lanes of a panel
    ADDRESS,  # first word of the gallery
    ADDRESS,  # inverse norms of the gallery's vectors, or null
    ADDRESS,  # offsets of the active positions
    NUMBER,  # words from an item to the next
    ADDRESS,  # items, one list after the other
    ADDRESS,  # where each list begins, and where the last one ends
    NUMBER,  # number of lists
    NUMBER,  # items of a tile, a multiple of the lanes
    ADDRESS,  # scratch for a tile's product
)


def gallery_kernel(rows: Rows, capacity: int, extras: Sequence[Argument], finish: Finish) -> Kernel:
    """Compile a kernel; its arguments after `GALLERY_ARGUMENTS` are handed to `finish`."""
    arguments = (*GALLERY_ARGUMENTS, *extras)
    e = start_function(ir.Module("gallery"), arguments)
    panels, words, width, base, norms, offsets, stride, items, *rest = e.function.args
    bounds, num_lists, step, scratch, *more = rest
    source = Source(base, norms, offsets, stride, items)
    result = e.stack(I64)
    e.store(index(0), result, 8)
    with e.loop(num_lists) as number:
        panel = e.at(panels, e.mul(number, words, width))
        start = e.load(e.at(bounds, number, I64), I64, 8)
        stop = e.load(e.at(bounds, e.add(number, 1), I64), I64, 8)
        with e.loop(stop, start=start, step=step) as first:
            count = e.least(step, e.builder.sub(stop, first))
            tile = Tile(rows, capacity, source, panel, words, width, first, count, scratch, result)
            emit_tile_product(e, tile)
            finish(e, tile, more)
    e.finish(e.load(result, I64, 8))
    return compile_kernel(e.builder.module, "kernel", arguments)


def start_function(module: ir.Module, arguments: Sequence[Argument]) -> Emitter:
    """An emitter of the module's function named `kernel`, which returns a number."""
    kinds = [POINTER if argument is ADDRESS else I64 for argument in arguments]
    return Emitter(ir.Function(module, ir.FunctionType(I64, kinds), "kernel"), lanes())

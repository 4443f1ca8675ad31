"""The kernel that solves given cosines, as training and explanations need it."""

from __future__ import annotations

import ctypes
from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import emit_assignment, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel, compile_kernel, lanes
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.vocabulary import F32, I32, I64, POINTER, Emitter, index


@lru_cache(maxsize=16)
def matching_kernel(size: int, *, with_assignment: bool) -> Kernel:
    """Totals, and packed assignments if asked for, of a run of square matrices of cosines.

    Arguments: the first matrix, words from a matrix to the next, words from a row to the next, number of matrices,
    totals, packed assignments.
    """
    module = ir.Module("matching")
    kinds = [POINTER, I64, I64, I64, POINTER, POINTER]
    function = ir.Function(module, ir.FunctionType(I64, kinds), "kernel")
    first, matrix_stride, row_stride, count, totals, packed = function.args
    e = Emitter(function, lanes())
    cells = e.stack(e.floats, size * size)
    found, path = e.stack(e.floats), e.stack(e.integers)
    with e.loop(count, step=e.lanes) as group:
        left = e.least(e.lanes, e.builder.sub(count, group))
        with e.loop(left) as lane:
            matrix = e.at(first, e.mul(e.add(group, lane), matrix_stride))
            _emit_gather(e, size, matrix, row_stride, e.at(cells, lane))
        _emit_solution(e, size, cells, found, path, with_assignment=with_assignment)
        with e.loop(left) as lane:
            place = e.add(group, lane)
            e.store(e.load(e.at(found, lane), F32), e.at(totals, place))
            if with_assignment:
                e.store(e.load(e.at(path, lane), I32), e.at(packed, place))
    e.finish(index(0))
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    arguments = (pointer, integer, integer, integer, pointer, pointer)
    return compile_kernel(module, "kernel", arguments)


def _emit_gather(
    e: Emitter, size: int, matrix: ir.Value, row_stride: ir.Value, lane_of_cells: ir.Value
) -> None:
    """One matrix into one lane of the cells."""
    for row in range(size):
        start = e.at(matrix, e.mul(row_stride, row))
        for column in range(size):
            cosine = e.load(e.at(start, column), F32)
            e.store(cosine, e.at(lane_of_cells, (row * size + column) * e.lanes))


def _emit_solution(
    e: Emitter,
    size: int,
    cells: ir.Value,
    found: ir.Value,
    path: ir.Value,
    *,
    with_assignment: bool,
) -> None:
    def cell(row: int, column: int) -> ir.Value:
        return e.load(e.at(cells, row * size + column, e.floats), e.floats, 64)

    if with_assignment:
        total, packed = emit_assignment(e, single_plan(size), cell)
        e.store(packed, path, 64)
    else:
        (total,) = emit_totals(e, single_plan(size), cell)
    e.store(total, found, 64)

"""Kernels that solve given cosines, as training and explanations need it."""

from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import emit_choices, emit_totals, emit_walk
from adaptiveembed.similarity.kernels.compiler import Kernel, compile_kernel
from adaptiveembed.similarity.kernels.frame import ADDRESS, NUMBER, start_function
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.scoring import stored_cells
from adaptiveembed.similarity.kernels.vocabulary import F32, I32, I64, Emitter, index

MATCHING_ARGUMENTS = (
    ADDRESS,  # first matrix of cosines
    NUMBER,  # words from a matrix to the next
    NUMBER,  # words from a row to the next
    NUMBER,  # number of matrices
    ADDRESS,  # totals
    ADDRESS,  # columns [matrix, row], 64-bit; not read by the kernel of totals
)


@lru_cache(maxsize=16)
def totals_kernel(size: int) -> Kernel:
    """The greatest one-to-one totals of a run of square matrices."""
    return _matching_kernel(size, with_columns=False)


@lru_cache(maxsize=16)
def columns_kernel(size: int) -> Kernel:
    """The greatest totals of a run of square matrices, and the column that each row takes."""
    return _matching_kernel(size, with_columns=True)


def _matching_kernel(size: int, *, with_columns: bool) -> Kernel:
    e = start_function(ir.Module("matching"), MATCHING_ARGUMENTS)
    first, matrix_stride, row_stride, count, totals, columns = e.function.args
    plan = single_plan(size)
    cells, found = e.stack(e.floats, size * size), e.stack(e.floats)
    choices = e.stack(e.integers, len(plan.states))
    cell = stored_cells(e, size, cells)
    with e.loop(count, step=e.lanes) as group:
        left = e.least(e.lanes, e.builder.sub(count, group))
        with e.loop(left) as lane:
            matrix = e.at(first, e.mul(e.add(group, lane), matrix_stride))
            _emit_gather(e, size, (matrix, row_stride), e.at(cells, lane))
        if with_columns:
            total = emit_choices(e, plan, cell, choices)
        else:
            (total,) = emit_totals(e, plan, cell)
        e.store(total, found, 64)
        with e.loop(left) as lane:
            place = e.add(group, lane)
            e.store(e.load(e.at(found, lane), F32), e.at(totals, place))
            if with_columns:
                emit_walk(e, plan, choices, lane, e.at(columns, e.mul(place, size), I64))
    e.finish(index(0))
    return compile_kernel(e.builder.module, "kernel", MATCHING_ARGUMENTS)


def _emit_gather(
    e: Emitter, size: int, matrix: tuple[ir.Value, ir.Value], lane_of_cells: ir.Value
) -> None:
    """One matrix into one lane of the cells."""
    start, row_stride = matrix
    for row in range(size):
        place = e.at(start, e.mul(row_stride, row))
        for column in range(size):
            word = e.load(e.at(place, column, I32), I32)
            e.store(word, e.at(lane_of_cells, (row * size + column) * e.lanes, I32))

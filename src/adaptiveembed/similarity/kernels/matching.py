"""The kernel that solves given cosines, as training and explanations need it."""

from collections.abc import Callable
from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import emit_assignment, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel, compile_kernel
from adaptiveembed.similarity.kernels.frame import ADDRESS, NUMBER, start_function
from adaptiveembed.similarity.kernels.plan import single_plan
from adaptiveembed.similarity.kernels.scoring import stored_cells
from adaptiveembed.similarity.kernels.vocabulary import F32, Emitter, index

MATCHING_ARGUMENTS = (
    ADDRESS,  # first matrix of cosines
    NUMBER,  # words from a matrix to the next
    NUMBER,  # words from a row to the next
    NUMBER,  # number of matrices
    ADDRESS,  # totals, or packed assignments
)


@lru_cache(maxsize=16)
def totals_kernel(size: int) -> Kernel:
    """The greatest one-to-one totals of a run of square matrices."""

    def solve(e: Emitter, cells: ir.Value) -> ir.Value:
        (total,) = emit_totals(e, single_plan(size), stored_cells(e, size, cells))
        return total

    return _matching_kernel(size, solve)


@lru_cache(maxsize=16)
def assignments_kernel(size: int) -> Kernel:
    """The best assignments of a run of square matrices, packed into 32 bits each."""

    def solve(e: Emitter, cells: ir.Value) -> ir.Value:
        _, packed = emit_assignment(e, single_plan(size), stored_cells(e, size, cells))
        return e.builder.bitcast(packed, e.floats)

    return _matching_kernel(size, solve)


def _matching_kernel(size: int, solve: Callable[[Emitter, ir.Value], ir.Value]) -> Kernel:
    """A kernel that writes one word for every matrix."""
    e = start_function(ir.Module("matching"), MATCHING_ARGUMENTS)
    first, matrix_stride, row_stride, count, out = e.function.args
    cells, found = e.stack(e.floats, size * size), e.stack(e.floats)
    with e.loop(count, step=e.lanes) as group:
        left = e.least(e.lanes, e.builder.sub(count, group))
        with e.loop(left) as lane:
            matrix = e.at(first, e.mul(e.add(group, lane), matrix_stride))
            _emit_gather(e, size, (matrix, row_stride), e.at(cells, lane))
        e.store(solve(e, cells), found, 64)
        with e.loop(left) as lane:
            e.store(e.load(e.at(found, lane), F32), e.at(out, e.add(group, lane)))
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
            cosine = e.load(e.at(place, column), F32)
            e.store(cosine, e.at(lane_of_cells, (row * size + column) * e.lanes))

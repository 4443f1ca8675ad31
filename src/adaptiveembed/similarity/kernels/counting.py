"""The kernel under rank tables: how many items score at least as high as a probe, under many selections at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import emit_score, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel
from adaptiveembed.similarity.kernels.gallery import Tile, gallery_kernel
from adaptiveembed.similarity.kernels.plan import assignment_plan
from adaptiveembed.similarity.kernels.product import Rows
from adaptiveembed.similarity.kernels.scoring import query_cells
from adaptiveembed.similarity.kernels.vocabulary import Emitter


@lru_cache(maxsize=16)
def counting_kernel(rows: Rows, size: int, targets: tuple[tuple[int, ...], ...]) -> Kernel:
    """counts[target, query] += items whose score under the target's positions is at least the probe's.

    More arguments: probes, counts (32-bit), both [target, lanes of all queries], and that number of lanes.
    """
    plan = assignment_plan(size, targets)

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        probes, counts, num_lanes = more
        with e.loop(tile.count) as item, e.loop(num_lanes, step=e.lanes) as query:
            cells = query_cells(e, tile, size, item, query)

            def cell(row: int, column: int) -> ir.Value:
                return e.load(cells[row * size + column], e.floats)

            for number, total in enumerate(emit_totals(e, plan, cell)):
                score = emit_score(e, total, len(targets[number]))
                place = e.add(e.mul(num_lanes, number), query)
                reached = e.builder.fcmp_ordered(">=", score, e.load(e.at(probes, place), e.floats))
                count = e.load(e.at(counts, place), e.integers)
                e.store(
                    e.builder.add(count, e.builder.zext(reached, e.integers)), e.at(counts, place)
                )

    return gallery_kernel(rows, size, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64), finish)

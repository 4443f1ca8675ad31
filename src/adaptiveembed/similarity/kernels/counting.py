"""The kernel under rank tables: how many items score at least as much as a probe (App. A.3)."""

from collections.abc import Sequence
from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import emit_score, emit_totals
from adaptiveembed.similarity.kernels.compiler import Kernel
from adaptiveembed.similarity.kernels.frame import ADDRESS, NUMBER, gallery_kernel
from adaptiveembed.similarity.kernels.plan import Numbers, assignment_plan
from adaptiveembed.similarity.kernels.product import Rows, Tile
from adaptiveembed.similarity.kernels.scoring import query_cells
from adaptiveembed.similarity.kernels.vocabulary import Emitter


@lru_cache(maxsize=16)
def counting_kernel(rows: Rows, size: int, targets: tuple[Numbers, ...]) -> Kernel:
    """Counts, under many selections at once, the items that score at least each query's probe.

    More arguments: probes and counts (32-bit) [target, lane of queries], number of those lanes.
    """
    plan = assignment_plan(size, targets)

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        probes, counts, num_lanes = more
        with e.loop(tile.count) as item, e.loop(num_lanes, step=e.lanes) as query:
            totals = emit_totals(e, plan, query_cells(e, tile, item, query))
            for number, (total, target) in enumerate(zip(totals, targets, strict=True)):
                place = e.add(e.mul(num_lanes, number), query)
                probe = e.load(e.at(probes, place), e.floats)
                reached = e.builder.fcmp_ordered(">=", emit_score(e, total, len(target)), probe)
                _emit_count(e, reached, e.at(counts, place))

    return gallery_kernel(rows, size, (ADDRESS, ADDRESS, NUMBER), finish)


def _emit_count(e: Emitter, mask: ir.Value, place: ir.Value) -> None:
    count = e.load(place, e.integers)
    e.store(e.builder.add(count, e.builder.zext(mask, e.integers)), place)

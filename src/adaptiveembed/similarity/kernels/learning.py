"""Kernels of training: scores under many prefixes at once, and what their gradients ask of cosines.

Queries lie in lanes, in a multiple of their number. A word holds a pair's best assignment
(`COLUMN_BITS` a row), so that going back solves nothing again.
"""

from collections.abc import Sequence
from functools import lru_cache

from llvmlite import ir

from adaptiveembed.similarity.kernels.assign import COLUMN_BITS, emit_matches, emit_score
from adaptiveembed.similarity.kernels.compiler import Kernel, compile_kernel
from adaptiveembed.similarity.kernels.frame import ADDRESS, NUMBER, gallery_kernel, start_function
from adaptiveembed.similarity.kernels.plan import Numbers, assignment_plan
from adaptiveembed.similarity.kernels.product import Rows, Tile
from adaptiveembed.similarity.kernels.scoring import query_cells
from adaptiveembed.similarity.kernels.vocabulary import I32, Emitter, index

GRADIENT_ARGUMENTS = (
    ADDRESS,  # gradients of the scores [prefix, item, query]
    ADDRESS,  # assignments alike
    NUMBER,  # words from a prefix to the next
    NUMBER,  # number of items
    NUMBER,  # number of queries
    ADDRESS,  # gradients of the cosines [item, column, row, query]
)


@lru_cache(maxsize=64)
def matching_scores_kernel(lengths: Numbers) -> Kernel:
    """Scores under each prefix of the positions, and the assignments that attain them.

    More arguments: scores and assignments [prefix, item, query], words from a prefix to the next,
    words from an item to the next, number of queries.
    """
    capacity = max(lengths)
    plan = assignment_plan(capacity, tuple(tuple(range(length)) for length in lengths))

    def finish(e: Emitter, tile: Tile, more: Sequence[ir.Value]) -> None:
        scores, words, prefix_stride, item_stride, num_queries = more
        with e.loop(tile.count) as item, e.loop(num_queries, step=e.lanes) as query:
            matches = emit_matches(e, plan, query_cells(e, tile, item, query))
            start = e.add(e.mul(e.add(tile.first, item), item_stride), query)
            for number, (length, (total, word)) in enumerate(zip(lengths, matches, strict=True)):
                place = e.add(start, e.mul(prefix_stride, number))
                e.store(emit_score(e, total, length), e.at(scores, place))
                e.store(word, e.at(words, place, I32))

    extras = (ADDRESS, ADDRESS, NUMBER, NUMBER, NUMBER)
    return gallery_kernel(Rows.FLOAT32, capacity, extras, finish)


@lru_cache(maxsize=64)
def cosine_gradient_kernel(lengths: Numbers) -> Kernel:
    """The gradient of every cosine: what the prefixes ask whose assignment takes it."""
    e = start_function(ir.Module("learning"), GRADIENT_ARGUMENTS)
    gradients, words, prefix_stride, num_items, num_queries, out = e.function.args
    capacity = max(lengths)
    with e.loop(num_items) as item, e.loop(num_queries, step=e.lanes) as query:
        places = [
            e.add(e.mul(prefix_stride, number), e.mul(num_queries, item), query)
            for number in range(len(lengths))
        ]
        asked = [
            e.builder.fmul(e.load(e.at(gradients, place), e.floats), e.constant(1 / length))
            for place, length in zip(places, lengths, strict=True)
        ]
        matches = [e.load(e.at(words, place, I32), e.integers) for place in places]
        for row in range(capacity):
            columns = [_emit_column(e, match, row) for match in matches]
            for column in range(capacity):
                terms = [
                    _emit_where(e, columns[number], column, asked[number])
                    for number, length in enumerate(lengths)
                    if length > max(row, column)
                ]
                number = e.add(e.mul(item, capacity * capacity), column * capacity + row)
                e.store(_emit_sum(e, terms), e.at(out, e.add(e.mul(number, num_queries), query)))
    e.finish(index(0))
    return compile_kernel(e.builder.module, "kernel", GRADIENT_ARGUMENTS)


def _emit_column(e: Emitter, match: ir.Value, row: int) -> ir.Value:
    """The column that a row takes."""
    shifted = e.builder.lshr(match, e.whole(COLUMN_BITS * row))
    return e.builder.and_(shifted, e.whole((1 << COLUMN_BITS) - 1))


def _emit_where(e: Emitter, columns: ir.Value, column: int, asked: ir.Value) -> ir.Value:
    """What is asked in the lanes whose row takes this column, else 0."""
    return e.builder.select(
        e.builder.icmp_signed("==", columns, e.whole(column)), asked, e.constant(0.0)
    )


def _emit_sum(e: Emitter, terms: list[ir.Value]) -> ir.Value:
    total = terms[0]
    for term in terms[1:]:
        total = e.builder.fadd(total, term)
    return total

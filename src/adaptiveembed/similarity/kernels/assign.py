"""Emits the program of a plan over vectors of pairs: Eq. 2 for as many pairs as there are lanes."""

from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir

from adaptiveembed.similarity.kernels.plan import AssignmentPlan, Term
from adaptiveembed.similarity.kernels.vocabulary import I32, I64, POINTER, Emitter, index

Cell: TypeAlias = Callable[[int, int], ir.Value]
"""The cosines of row and column, one pair to a lane."""

COLUMN_BITS = 3
"""Bits of an assignment's word that hold the column of one row; those of row 0 are the lowest."""


def emit_totals(e: Emitter, plan: AssignmentPlan, cell: Cell) -> list[ir.Value]:
    """The greatest total of each target of the plan."""
    values: list[ir.Value] = []
    for terms in plan.states:
        best = _value(e, terms[0], values, cell)
        for term in terms[1:]:
            best = e.greater(_value(e, term, values, cell), best)
        values.append(best)
    return [values[target] for target in plan.targets]


def emit_choices(e: Emitter, plan: AssignmentPlan, cell: Cell, choices: ir.Value) -> ir.Value:
    """The greatest total of the plan's one target; the column that each state's last row takes.

    Choices [state, lane] go to the address given. Of several columns with one total, the first.
    """
    values: list[ir.Value] = []
    for number, terms in enumerate(plan.states):
        best, choice = _value(e, terms[0], values, cell), _column(e, terms[0])
        for term in terms[1:]:
            value = _value(e, term, values, cell)
            better = e.builder.fcmp_ordered(">", value, best)
            best = e.builder.select(better, value, best)
            choice = e.builder.select(better, _column(e, term), choice)
        e.store(choice, e.at(choices, number, e.integers), 64)
        values.append(best)
    (target,) = plan.targets
    return values[target]


def emit_walk(
    e: Emitter, plan: AssignmentPlan, choices: ir.Value, lane: ir.Value, columns: ir.Value
) -> None:
    """Follow one lane's choices back from the target: the column of every row, 64-bit."""
    sources = _source_table(e, plan)
    (target,) = plan.targets
    state: ir.Value = index(target)
    for row in reversed(range(plan.size)):
        place = e.at(choices, e.add(e.mul(state, e.lanes), lane), I32)
        column = e.builder.zext(e.load(place, I32), I64)
        e.store(column, e.at(columns, row, I64), 8)
        if row:
            state = e.load(e.at(sources, e.add(e.mul(state, plan.size), column), I64), I64, 8)


def emit_matches(e: Emitter, plan: AssignmentPlan, cell: Cell) -> list[tuple[ir.Value, ir.Value]]:
    """The greatest total of each target, and its assignment as a word of `COLUMN_BITS` a row.

    Of several columns with one total, the first. The word travels with the value: no state has to
    be visited again, and every lane may go its own way.
    """
    values: list[ir.Value] = []
    words: list[ir.Value] = []
    for terms in plan.states:
        best, word = _value(e, terms[0], values, cell), _word(e, terms[0], words)
        for term in terms[1:]:
            value = _value(e, term, values, cell)
            better = e.builder.fcmp_ordered(">", value, best)
            best = e.builder.select(better, value, best)
            word = e.builder.select(better, _word(e, term, words), word)
        values.append(best)
        words.append(word)
    return [(values[target], words[target]) for target in plan.targets]


def emit_score(e: Emitter, total: ir.Value, capacity: int) -> ir.Value:
    """The mean of an assignment's cosines, held in [-1, 1]; what is not a number stays so.

    Rounding may lift the cosine of equal vectors above 1.
    """
    one, minus_one = e.constant(1.0), e.constant(-1.0)
    mean = e.builder.fdiv(total, e.constant(float(capacity)))
    mean = e.builder.select(e.builder.fcmp_ordered(">", mean, one), one, mean)
    return e.builder.select(e.builder.fcmp_ordered("<", mean, minus_one), minus_one, mean)


def _value(e: Emitter, term: Term, values: list[ir.Value], cell: Cell) -> ir.Value:
    cosine = cell(term.row, term.column)
    return cosine if term.source is None else e.builder.fadd(values[term.source], cosine)


def _word(e: Emitter, term: Term, words: list[ir.Value]) -> ir.Value:
    column = e.whole(term.column << COLUMN_BITS * term.row)
    return column if term.source is None else e.builder.or_(words[term.source], column)


def _column(e: Emitter, term: Term) -> ir.Constant:
    return e.whole(term.column)


def _source_table(e: Emitter, plan: AssignmentPlan) -> ir.Value:
    """For every state and column: the state that is left when the last row takes that column."""
    table = [[0] * plan.size for _ in plan.states]
    for row, terms in zip(table, plan.states, strict=True):
        for term in terms:
            row[term.column] = term.source or 0
    numbers = [number for row in table for number in row]
    kind = ir.ArrayType(I64, len(numbers))
    constant = ir.GlobalVariable(e.builder.module, kind, "sources")
    constant.linkage, constant.global_constant = "internal", True
    constant.initializer = ir.Constant(kind, numbers)
    constant.type = POINTER
    return constant

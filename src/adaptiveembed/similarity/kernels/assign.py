"""Emits the program of a plan over vectors of pairs: Eq. 2 for as many pairs as there are lanes."""

from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir

from adaptiveembed.similarity.kernels.plan import AssignmentPlan, Term
from adaptiveembed.similarity.kernels.vocabulary import Emitter

PATH_BITS = 4
"""Bits of a packed assignment that hold one row's column."""

Cell: TypeAlias = Callable[[int, int], ir.Value]
"""The cosines of row and column, one pair to a lane."""


def emit_totals(e: Emitter, plan: AssignmentPlan, cell: Cell) -> list[ir.Value]:
    """The greatest total of each target of the plan."""
    values: list[ir.Value] = []
    for terms in plan.states:
        best = _value(e, terms[0], values, cell)
        for term in terms[1:]:
            best = e.greater(_value(e, term, values, cell), best)
        values.append(best)
    return [values[target] for target in plan.targets]


def emit_assignment(e: Emitter, plan: AssignmentPlan, cell: Cell) -> tuple[ir.Value, ir.Value]:
    """The greatest total of the plan's one target, and the columns of its rows by `PATH_BITS`.

    Of several assignments with one total, each state keeps the one it meets first.
    """
    values: list[ir.Value] = []
    paths: list[ir.Value] = []
    for terms in plan.states:
        best, path = _value(e, terms[0], values, cell), _path(e, terms[0], paths)
        for term in terms[1:]:
            value = _value(e, term, values, cell)
            better = e.builder.fcmp_ordered(">", value, best)
            best = e.builder.select(better, value, best)
            path = e.builder.select(better, _path(e, term, paths), path)
        values.append(best)
        paths.append(path)
    (target,) = plan.targets
    return values[target], paths[target]


def emit_score(e: Emitter, total: ir.Value, capacity: int) -> ir.Value:
    """The mean of an assignment's cosines, held in [-1, 1].

    Rounding may lift the cosine of equal vectors above 1.
    """
    mean = e.builder.fdiv(total, e.constant(float(capacity)))
    return e.greater(e.smaller(mean, e.constant(1.0)), e.constant(-1.0))


def _value(e: Emitter, term: Term, values: list[ir.Value], cell: Cell) -> ir.Value:
    cosine = cell(term.row, term.column)
    return cosine if term.source is None else e.builder.fadd(values[term.source], cosine)


def _path(e: Emitter, term: Term, paths: list[ir.Value]) -> ir.Value:
    step = ir.Constant(e.integers, [term.column << (PATH_BITS * term.row)] * e.lanes)
    return step if term.source is None else e.builder.or_(paths[term.source], step)

"""Emits the assignment program of a plan over vectors of pairs: Eq. 2 for `lanes` pairs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir

from adaptiveembed.similarity.kernels.plan import AssignmentPlan, Term
from adaptiveembed.similarity.kernels.vocabulary import I32, Emitter

PATH_BITS = 4  # bits that hold one row's column in a packed assignment

Cell: TypeAlias = Callable[[int, int], ir.Value]


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
    """The greatest total of the plan's one target, and which column each row took, packed by `PATH_BITS`.

    Where several assignments reach the same total, the one met first in ascending columns is kept, always.
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
    return values[plan.targets[0]], paths[plan.targets[0]]


def emit_score(e: Emitter, total: ir.Value, capacity: int) -> ir.Value:
    """The mean of an assignment's cosines, held in [-1, 1]: rounding may lift the cosine of equal vectors above 1."""
    mean = e.builder.fdiv(total, e.constant(float(capacity)))
    return e.greater(e.smaller(mean, e.constant(1.0)), e.constant(-1.0))


def _value(e: Emitter, term: Term, values: list[ir.Value], cell: Cell) -> ir.Value:
    cosine = cell(term.row, term.column)
    return cosine if term.source is None else e.builder.fadd(values[term.source], cosine)


def _path(e: Emitter, term: Term, paths: list[ir.Value]) -> ir.Value:
    kind = e.integers
    step = ir.Constant(kind, [term.column << (PATH_BITS * term.row)] * e.lanes)
    return step if term.source is None else e.builder.or_(paths[term.source], step)


__all__ = ["I32", "PATH_BITS", "emit_assignment", "emit_score", "emit_totals"]

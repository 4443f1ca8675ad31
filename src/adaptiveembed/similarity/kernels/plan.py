"""Which sums and maxima solve the assignment: a dynamic program over subsets, written out as data (Eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Term:
    """One way to reach a state: give the state's last row this column, and take the source for the other rows."""

    row: int
    column: int
    source: int | None  # index of an earlier state; None for the empty assignment


@dataclass(frozen=True)
class AssignmentPlan:
    """States in an order in which each depends on earlier ones only; a state's value is the maximum over its terms.

    A state is a pair (set of rows, set of columns) of equal size. Rows are added in ascending order, so that the
    value of an assignment is always the same floating-point sum, whichever target it was computed for.
    """

    size: int
    states: tuple[tuple[Term, ...], ...]
    targets: tuple[int, ...]

    @property
    def num_terms(self) -> int:
        """Additions and comparisons of one evaluation, up to a constant."""
        return sum(len(terms) for terms in self.states)


@lru_cache(maxsize=64)
def assignment_plan(size: int, targets: tuple[tuple[int, ...], ...]) -> AssignmentPlan:
    """The shortest plan found for matching each target's rows with the columns of the same numbers.

    Targets share their states: the twenty selections of two groups of four cost half as much again as the largest alone.
    """
    numbers: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    states: list[tuple[Term, ...]] = []

    def visit(rows: tuple[int, ...], columns: tuple[int, ...]) -> int:
        known = numbers.get((rows, columns))
        if known is not None:
            return known
        rest, last = rows[:-1], rows[-1]
        terms = tuple(
            Term(last, column, visit(rest, _without(columns, column)) if rest else None)
            for column in columns
        )
        states.append(terms)
        numbers[rows, columns] = len(states) - 1
        return len(states) - 1

    ends = tuple(visit(_row_order(target), target) for target in targets)
    return AssignmentPlan(size, tuple(states), ends)


def _without(columns: tuple[int, ...], column: int) -> tuple[int, ...]:
    return tuple(other for other in columns if other != column)


def _row_order(target: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(target))


def single_plan(size: int) -> AssignmentPlan:
    """The plan that matches all rows with all columns."""
    return assignment_plan(size, (tuple(range(size)),))

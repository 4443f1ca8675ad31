"""Which sums and maxima solve the assignment: a dynamic program over subsets, as data (Eq. 2)."""

from dataclasses import dataclass
from functools import lru_cache

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """One way to reach a state: its last row takes this column, the source serves the others."""

    row: int
    column: int
    source: int | None  # index of an earlier state; None for the empty assignment


@dataclass(frozen=True)
class AssignmentPlan:
    """States, each depending on earlier ones only; a state's value is the maximum of its terms.

    A state is a set of rows and as large a set of columns. Rows are added in ascending order, so
    that an assignment is the same floating-point sum, whichever target it is computed for.
    """

    size: int
    states: tuple[tuple[Term, ...], ...]
    targets: Numbers

    @property
    def num_terms(self) -> int:
        """Additions and comparisons of one evaluation, but for a constant."""
        return sum(len(terms) for terms in self.states)


@lru_cache(maxsize=64)
def assignment_plan(size: int, targets: tuple[Numbers, ...]) -> AssignmentPlan:
    """The plan that matches each target's rows with the columns of the same numbers.

    Targets share states: the twenty selections of two groups of four cost half as much again as
    the largest of them alone.
    """
    states: list[tuple[Term, ...]] = []
    known: dict[tuple[Numbers, Numbers], int] = {}
    ends = tuple(
        _visit(tuple(sorted(each)), tuple(sorted(each)), states, known) for each in targets
    )
    return AssignmentPlan(size, tuple(states), ends)


def single_plan(size: int) -> AssignmentPlan:
    """The plan that matches all rows with all columns."""
    return assignment_plan(size, (tuple(range(size)),))


def _visit(
    rows: Numbers,
    columns: Numbers,
    states: list[tuple[Term, ...]],
    known: dict[tuple[Numbers, Numbers], int],
) -> int:
    """The index of the state of these rows and columns, written down after what it depends on."""
    if (rows, columns) not in known:
        *rest, last = rows
        sources = (
            _visit(tuple(rest), _without(columns, each), states, known) if rest else None
            for each in columns
        )
        terms = tuple(Term(last, *each) for each in zip(columns, sources, strict=True))
        known[rows, columns] = len(states)
        states.append(terms)
    return known[rows, columns]


def _without(columns: Numbers, column: int) -> Numbers:
    return tuple(other for other in columns if other != column)

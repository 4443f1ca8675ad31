"""Whether one method ranks better than another by more than the luck of the queries.

The paired bootstrap: queries are drawn again with replacement, and the mean difference between two
methods is looked at in every draw. Both methods answer the same queries, so what is hard for both
cancels out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError

NUM_DRAWS = 10_000
CONFIDENCE = 0.95
NUMBERS_AT_ONCE = 1 << 22
"""Drawn queries that are held at a time, which bounds the memory."""

Values: TypeAlias = NDArray[np.float64]
"""One value per query; not a named shape, because the errors below say what to do."""


@dataclass(frozen=True)
class Comparison:
    """By how much the first of two methods is better, and how sure that is."""

    difference: float
    """Mean over the queries of first minus second."""
    low: float
    """Where the 95 % interval of the difference begins."""
    high: float
    """Where it ends."""
    p_value: float
    """Two-sided: how often chance alone would give a difference as large as this one."""
    queries: int
    draws: int


def compare(
    first: Values, second: Values, generator: np.random.Generator, draws: int = NUM_DRAWS
) -> Comparison:
    """The paired bootstrap of one measure of two methods, query by query."""
    return compare_means([first], [second], generator, draws)


def compare_means(
    first: Sequence[Values],
    second: Sequence[Values],
    generator: np.random.Generator,
    draws: int = NUM_DRAWS,
) -> Comparison:
    """The paired bootstrap of the mean over directions, or over anything else with equal queries.

    Query i of every direction is the same pair, so that all directions are drawn together.
    """
    differences = np.mean([_differences(*each) for each in zip(first, second, strict=True)], axis=0)
    if draws < 1:
        raise SettingError(f"draws is {draws}; draw at least once")
    means = _drawn_means(differences, generator, draws)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Comparison(
        difference=float(differences.mean()),
        low=float(low),
        high=float(high),
        p_value=_two_sided(means),
        queries=len(differences),
        draws=draws,
    )


def _two_sided(means: Values) -> float:
    """Twice the smaller share of draws beyond zero; never 0, since draws are finite."""
    below, above = np.count_nonzero(means <= 0), np.count_nonzero(means >= 0)
    return min(1.0, 2 * (min(below, above) + 1) / (len(means) + 1))


def _drawn_means(differences: Values, generator: np.random.Generator, draws: int) -> Values:
    count = len(differences)
    at_once = max(1, NUMBERS_AT_ONCE // count)
    parts = [min(at_once, draws - start) for start in range(0, draws, at_once)]
    means = [
        differences[generator.integers(0, count, (part, count))].mean(axis=1) for part in parts
    ]
    return np.concatenate(means)


def _differences(first: Values, second: Values) -> Values:
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(
            f"methods are compared query by query, got values of shapes {first.shape} and "
            f"{second.shape}; give one value per query of the same queries"
        )
    if not len(first):
        raise EmptyBatchError("there is no query to compare on; give at least one")
    found: Values = first - second
    return found

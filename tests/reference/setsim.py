"""SetSim of two sets, bijection by bijection as Eq. 2 is written, in float64."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def setsim(query: ArrayLike, gallery: ArrayLike) -> float:
    """The greatest mean cosine of a bijection."""
    cosines = _cosines(query, gallery)
    bijections = permutations(range(len(cosines)))
    return max(_mean_cosine(cosines, columns) for columns in bijections)


def setsim_assignment(query: ArrayLike, gallery: ArrayLike) -> tuple[int, ...]:
    """The gallery vector that each query vector is matched with."""
    return best_columns(_cosines(query, gallery))


def best_columns(cosines: ArrayLike) -> tuple[int, ...]:
    """The best bijection; of several, that with the lowest last column, then last but one, ..."""
    entries = np.asarray(cosines, np.float64)
    bijections = sorted(permutations(range(len(entries))), key=lambda columns: columns[::-1])
    return max(bijections, key=lambda columns: _mean_cosine(entries, columns))


def best_totals(cosines: NDArray[np.floating]) -> NDArray[np.float64]:
    """The greatest sum of a bijection, for every matrix [pairs, rows, columns]."""
    entries = cosines.astype(np.float64)
    rows = range(entries.shape[1])
    totals = np.full(len(entries), -np.inf)
    for columns in permutations(rows):
        np.maximum(totals, entries[:, rows, columns].sum(axis=1), out=totals)
    return totals


def _cosines(query: ArrayLike, gallery: ArrayLike) -> NDArray[np.float64]:
    left, right = np.asarray(query, np.float64), np.asarray(gallery, np.float64)
    return np.array([[np.dot(one, other) for other in right] for one in left])


def _mean_cosine(cosines: NDArray[np.float64], columns: Sequence[int]) -> float:
    total = 0.0
    for row, column in enumerate(columns):
        total += cosines[row, column]
    return total / len(columns)

"""MaxSim and responses, one vector at a time as App. A.4 writes them, in float64."""

import numpy as np
from numpy.typing import ArrayLike


def response(vector: ArrayLike, item: ArrayLike) -> float:
    """The greatest cosine of one query vector with the vectors of one item."""
    return max(float(np.dot(_exact(vector), other)) for other in _exact(item))


def responses(query: ArrayLike, bank: ArrayLike) -> list[list[float]]:
    """A_{i,n} of one query: for each of its vectors, the response of every bank item."""
    return [[response(vector, item) for item in _exact(bank)] for vector in _exact(query)]


def maxsim(query: ArrayLike, item: ArrayLike) -> float:
    """The sum of the responses of a query's vectors."""
    return sum(response(vector, item) for vector in _exact(query))


def mean_maxsim(query: ArrayLike, item: ArrayLike) -> float:
    """The mean of the responses of a query's vectors."""
    return maxsim(query, item) / len(_exact(query))


def _exact(vectors: ArrayLike) -> np.ndarray:
    return np.asarray(vectors, np.float64)

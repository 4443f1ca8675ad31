"""Search by scoring everything: the ranking of Sec. 3.1, with the tie rule of reading R5."""

from collections.abc import Sequence

import numpy as np

from tests.reference.setsim import setsim


def best_items(scores: Sequence[float], k: int) -> list[int]:
    """The k items of the highest scores, best first; equal scores in gallery order."""
    return sorted(range(len(scores)), key=lambda item: -scores[item])[:k]


def scores_of_query(query: np.ndarray, items: np.ndarray, positions: Sequence[int]) -> list[float]:
    """SetSim in float64 of one query [positions, dim] with each item [positions, items, dim]."""
    chosen = list(positions)
    unit_query = _unit(query[chosen])
    unit_items = _unit(items[chosen])
    return [setsim(unit_query, unit_items[:, item]) for item in range(items.shape[1])]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of half precision are read as unit vectors; others are taken as they are."""
    exact = vectors.astype(np.float64)
    if vectors.dtype != np.float16:
        return exact
    return exact / np.linalg.norm(exact, axis=-1, keepdims=True)

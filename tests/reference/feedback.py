"""Bank feedback of App. A.4 for one query at one state, item by item, in float64."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tests.reference.maxsim import responses


def retrieval_scores(query: ArrayLike, bank: ArrayLike, selected: Sequence[int]) -> list[float]:
    """s_n: for every bank item, the mean response of the selected positions."""
    answers = responses(query, bank)
    return [
        sum(answers[position][item] for position in selected) / len(selected)
        for item in range(len(np.asarray(bank)))
    ]


def top_items(scores: Sequence[float], depth: int, left_out: int | None = None) -> list[int]:
    """N_t: the items of the highest scores, best first, never the one that is left out."""
    allowed = [item for item in range(len(scores)) if item != left_out]
    return sorted(allowed, key=lambda item: -scores[item])[:depth]


def feedback(query: ArrayLike, bank: ArrayLike, items: Sequence[int]) -> np.ndarray:
    """F_t: the responses of all positions to these items, [positions, depth]."""
    answers = responses(query, bank)
    return np.array([[row[item] for item in items] for row in answers])

"""The ranks of every query's positives under every selection, from all scores at once."""

from collections.abc import Sequence

import numpy as np

from tests.reference.oracle import ranks_among


def rank_table(
    scores: Sequence[np.ndarray], positives: np.ndarray, counted: Sequence[int]
) -> np.ndarray:
    """Ranks [selections, queries, positives] from one score matrix per selection."""
    table = np.zeros((len(scores), *positives.shape), np.int64)
    for number, matrix in enumerate(scores):
        for query, row in enumerate(matrix.tolist()):
            relevant = [item for item in positives[query].tolist() if item >= 0]
            ranks = ranks_among(row, relevant, counted)
            table[number, query, : len(ranks)] = ranks
    return table

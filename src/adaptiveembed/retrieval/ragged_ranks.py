"""The ranks of each query's positives by MaxSim: how multi-vector encoders are evaluated."""

import numpy as np

from adaptiveembed.errors import ShapeError
from adaptiveembed.metrics.ranks import checked_positives, ranks_of_positives
from adaptiveembed.shapes import Positives, Ranks
from adaptiveembed.similarity.ragged import RaggedSets, ragged_maxsim_matrix
from adaptiveembed.similarity.tiling import MEMORY_BUDGET


def maxsim_ranks(
    queries: RaggedSets,
    gallery: RaggedSets,
    positives: np.ndarray,  # not a named shape: the errors of metrics.ranks say what to do
    memory_budget: int = MEMORY_BUDGET,
) -> Ranks:
    """Pessimistic ranks [queries, positives] of each query's positives (R7).

    Scores are made a few queries at a time. They come from a matrix product, so that equal items
    may differ in the last bit of their scores, unlike those of SetSim.
    """
    places = checked_positives(positives, len(gallery))
    _require_a_row_each(queries, places)
    at_once = max(1, memory_budget // (8 * len(gallery)))
    starts = range(0, len(queries), at_once)
    parts = [slice(start, start + at_once) for start in starts]
    return np.concatenate(
        [_ranks(queries[part], gallery, places[part], memory_budget) for part in parts]
    )


def _ranks(
    queries: RaggedSets, gallery: RaggedSets, positives: Positives, memory_budget: int
) -> Ranks:
    scores = ragged_maxsim_matrix(queries, gallery, memory_budget)
    return ranks_of_positives(scores.cpu().numpy(), positives)


def _require_a_row_each(queries: RaggedSets, positives: Positives) -> None:
    if not 0 < len(queries) == len(positives):
        raise ShapeError(
            f"got {len(queries)} queries and positives of {len(positives)}; give at least one "
            f"query, and one row of positives for each"
        )

"""From scores to ranks to numbers: per query first, means are for the caller.

May import errors and shapes only. Arrays are numpy's; the rule for equal scores is in ``ranks``.
"""

from adaptiveembed.metrics.measures import (
    MEASURES,
    average_precision,
    first_rank,
    ndcg,
    recall_at,
    reciprocal_rank,
)
from adaptiveembed.metrics.ranks import ranks_from_counts, ranks_of_positives

__all__ = [
    "MEASURES",
    "average_precision",
    "first_rank",
    "ndcg",
    "ranks_from_counts",
    "ranks_of_positives",
    "recall_at",
    "reciprocal_rank",
]

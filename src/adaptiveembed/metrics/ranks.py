"""Ranks of the positives of a query, with one rule for equal scores.

**The rule is pessimistic.** A positive stands behind every item that is not relevant and scores at
least as much, so that a constant score never looks good:

* one positive: rank = 1 + number of other items with a score >= its score;
* several: the i-th positive by descending score has rank = i + number of items that are not
  relevant with a score >= its score.

Ranks are int64, counted from 1, ascending along the last axis. Queries with fewer positives than
others are filled up with 0 at the end.
"""

import numpy as np

from adaptiveembed.errors import (
    DtypeError,
    DuplicateIdError,
    EmptyBatchError,
    NotFiniteError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.shapes import (
    PositiveCounts,
    PositiveMask,
    Positives,
    PositiveScores,
    Ranks,
    ScoreArray,
)


def ranks_of_positives(scores: ScoreArray, positives: np.ndarray) -> Ranks:
    """The pessimistic ranks of each query's positives among all items.

    ``positives`` [queries, positives] holds indices of items, filled up with -1 where a query has
    fewer.
    """
    _require_usable(scores)
    positives = checked_positives(positives, scores.shape[1])
    _require_a_row_per_query(scores, positives)
    valid = positives >= 0
    positive_scores = np.take_along_axis(scores, np.where(valid, positives, 0), axis=1)
    counts = np.zeros(positives.shape, dtype=np.int64)
    for column, thresholds in enumerate(positive_scores.T):
        counts[:, column] = np.count_nonzero(scores >= thresholds[:, None], axis=1)
    return ranks_from_counts(counts, positive_scores, valid)


def ranks_from_counts(
    counts: PositiveCounts, positive_scores: PositiveScores, valid: PositiveMask
) -> Ranks:
    """The pessimistic ranks, from how many items score at least as much as each positive.

    ``counts`` are over all items: the positive itself and the other positives are among them.
    What stands where ``valid`` is false does not matter.
    """
    rivals = counts - _relevant_at_least(positive_scores, valid)
    # A lower score has no fewer rivals, so ascending rivals are the positives by descending score.
    rivals = np.sort(np.where(valid, rivals, np.iinfo(np.int64).max), axis=-1)
    places = np.arange(1, valid.shape[-1] + 1)
    has_place = places <= valid.sum(axis=-1, keepdims=True)
    return np.where(has_place, places + np.where(has_place, rivals, 0), 0)


def _relevant_at_least(positive_scores: PositiveScores, valid: PositiveMask) -> PositiveCounts:
    """For each positive, how many positives of its query score at least as much, itself included.

    One positive at a time, because all pairs at once would need the square of the memory.
    """
    counts = np.zeros(valid.shape, dtype=np.int64)
    for other in range(valid.shape[-1]):
        at_least = positive_scores[..., other, None] >= positive_scores
        counts += at_least & valid[..., other, None]
    return counts


def checked_positives(positives: object, num_items: int) -> Positives:
    """The positives [queries, positives] as int64, if they are distinct places of items, or -1."""
    places = _whole_places(positives)
    unknown = places[(places < -1) | (places >= num_items)]
    if unknown.size:
        raise UnknownIdError(
            f"positive {unknown[0]} is not among the {num_items} items; "
            f"choose 0 to {num_items - 1}, or -1 for none"
        )
    _require_distinct_positives(places)
    return places


def _whole_places(positives: object) -> Positives:
    if not isinstance(positives, np.ndarray):
        raise DtypeError(
            f"positives are a numpy array of integers, got {type(positives).__name__}; "
            f"convert with np.asarray(positives)"
        )
    if positives.dtype.kind not in "iu":
        raise DtypeError(
            f"positives are whole numbers, got {positives.dtype}; "
            f"give the indices of each query's positives as np.int64"
        )
    if positives.ndim != 2:
        raise ShapeError(
            f"positives have two axes, [queries, positives], got shape {positives.shape}; "
            f"one positive per query needs positives[:, None]"
        )
    return positives.astype(np.int64, copy=False)


def _require_a_row_per_query(scores: ScoreArray, positives: Positives) -> None:
    if len(positives) != len(scores):
        raise ShapeError(
            f"got scores of {len(scores)} queries and positives of {len(positives)}; "
            f"give one row of positives per query"
        )


def _require_usable(scores: ScoreArray) -> None:
    if not scores.shape[1]:
        raise EmptyBatchError("scores of no item at all cannot be ranked; give at least one item")
    if np.isnan(scores).any():
        query, item = np.argwhere(np.isnan(scores))[0]
        raise NotFiniteError(
            f"the score of query {query} with item {item} is NaN and cannot be ranked; "
            f"look for the cause in what made the scores"
        )


def _require_distinct_positives(positives: Positives) -> None:
    """Refuse a query that names the same positive twice."""
    ordered = np.sort(positives, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        query, place = np.argwhere(repeated)[0]
        raise DuplicateIdError(
            f"query {query} names item {ordered[query, place]} as positive twice; name it once"
        )

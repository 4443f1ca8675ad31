"""Measures of retrieval, from ranks to one number per query (App. B and App. C.1).

Nothing here takes a mean over queries. Ranks are as ``metrics.ranks`` makes them: ascending along
the last axis, counted from 1, with 0 after the last positive of a query, and at least one positive.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError
from adaptiveembed.shapes import PerQuery, Ranks


def average_precision(ranks: Ranks) -> PerQuery:
    r"""The mean over a query's positives of the precision at their ranks.

    With positives at ranks :math:`r_1 < ... < r_R` it is :math:`\frac{1}{R} \sum_i i / r_i`, which
    for one positive is :math:`1 / r_1`.
    """
    _require_ranks(ranks)
    return _mean(_places(ranks) / np.maximum(ranks, 1), ranks)


def recall_at(ranks: Ranks, k: int) -> PerQuery:
    """The share of a query's positives that are among the first k items."""
    if k < 1:
        raise SettingError(f"recall needs at least the first 1 item, got k = {k}")
    _require_ranks(ranks)
    return _mean(ranks <= k, ranks)


def ndcg(ranks: Ranks) -> PerQuery:
    r"""The normalised discounted cumulative gain over the whole ranking, gains being 0 or 1.

    .. math:: \sum_i \frac{1}{\log_2(1 + r_i)} \Big/ \sum_i \frac{1}{\log_2(1 + i)}
    """
    _require_ranks(ranks)
    ideal = _mean(1 / np.log2(1 + _places(ranks)), ranks)
    reached: PerQuery = _mean(1 / np.log2(1 + np.maximum(ranks, 1)), ranks) / ideal
    return reached


def reciprocal_rank(ranks: Ranks) -> PerQuery:
    """One over the rank of a query's first positive."""
    return 1 / first_rank(ranks)


def first_rank(ranks: Ranks) -> PerQuery:
    """The rank of a query's first positive; its mean over queries is the mean rank."""
    _require_ranks(ranks)
    return ranks[..., 0].astype(np.float64)


MEASURES: dict[str, Callable[[Ranks], PerQuery]] = {
    "mAP": average_precision,
    "MRR": reciprocal_rank,
    "R@1": partial(recall_at, k=1),
    "R@5": partial(recall_at, k=5),
    "R@10": partial(recall_at, k=10),
    "nDCG": ndcg,
    "MeanR": first_rank,
}
"""Names as reports print them. Of all but MeanR, more is better."""


def _places(ranks: Ranks) -> Ranks:
    """1, 2, ... for the first, second, ... positive of every query."""
    return np.broadcast_to(np.arange(1, ranks.shape[-1] + 1), ranks.shape)


def _mean(terms: np.ndarray, ranks: Ranks) -> PerQuery:
    """The mean over a query's positives, filling left out."""
    return np.asarray(np.mean(terms, axis=-1, where=ranks > 0, dtype=np.float64))


def _require_ranks(ranks: Ranks) -> None:
    if not ranks.shape[-1]:
        raise EmptyBatchError(f"ranks of shape {ranks.shape} hold no positive; give at least one")
    _require_a_positive_each(ranks)
    _require_order(ranks)


def _require_a_positive_each(ranks: Ranks) -> None:
    missing = np.argwhere(ranks[..., 0] == 0)
    if len(missing):
        raise EmptyBatchError(
            f"ranks{missing[0].tolist()} begins with 0: the query has no positive, and no measure "
            f"is defined for it; leave the query out"
        )


def _require_order(ranks: Ranks) -> None:
    # A rank may be followed by a larger one or by filling, and filling by filling only.
    before, after = ranks[..., :-1], ranks[..., 1:]
    in_order = ((after > before) & (before > 0)) | (after == 0)
    wrong = np.argwhere(np.any(ranks < 0, axis=-1) | ~np.all(in_order, axis=-1))
    if len(wrong):
        query = wrong[0].tolist()
        raise ShapeError(
            f"ranks{query} is {ranks[tuple(query)].tolist()}; ranks are counted from 1, ascend and "
            f"end in zeros where a query has fewer positives: make them with ranks_of_positives "
            f"or ranks_from_counts"
        )

"""Pessimistic ranks of one query, item by item as reading R7 says them."""

from collections.abc import Sequence


def rank_of_only_positive(scores: Sequence[float], positive: int) -> int:
    """One, and one more for every other item that scores at least as much."""
    rank = 1
    for item, score in enumerate(scores):
        if item != positive and score >= scores[positive]:
            rank += 1
    return rank


def ranks_of_several_positives(scores: Sequence[float], positives: Sequence[int]) -> list[int]:
    """For the i-th best positive, i and one more for every irrelevant item not below it."""
    ranks = []
    best_first = sorted(positives, key=lambda item: scores[item], reverse=True)
    for place, positive in enumerate(best_first, start=1):
        irrelevant = [item for item in range(len(scores)) if item not in positives]
        ahead = [item for item in irrelevant if scores[item] >= scores[positive]]
        ranks.append(place + len(ahead))
    return ranks

"""The oracle of App. A.3 and its transfer between halves, one query and selection at a time."""

from collections.abc import Sequence
from fractions import Fraction


def exact_average_precision(ranks: Sequence[int]) -> Fraction:
    """Average precision as a fraction, so that equal means equal; zeros are padding."""
    found = [rank for rank in ranks if rank]
    return sum((Fraction(i, rank) for i, rank in enumerate(found, start=1)), Fraction()) / len(
        found
    )


def best_selection(ranks: Sequence[Sequence[int]], capacities: Sequence[int]) -> int:
    """Index of the best selection of one query, from its positives' ranks under each selection."""
    best = 0
    for candidate in range(1, len(ranks)):
        gain = exact_average_precision(ranks[candidate]) - exact_average_precision(ranks[best])
        if gain > 0 or (gain == 0 and capacities[candidate] < capacities[best]):
            best = candidate
    return best


def ranks_among(
    scores: Sequence[float], positives: Sequence[int], counted: Sequence[int]
) -> list[int]:
    """Pessimistic ranks of one query's positives when only the counted items can distract."""
    distractors = [item for item in counted if item not in positives]
    ordered = sorted((scores[item] for item in positives), reverse=True)
    return [
        place + sum(scores[item] >= score for item in distractors)
        for place, score in enumerate(ordered, start=1)
    ]


def transfer_precision(
    scores: Sequence[Sequence[float]],
    positives: Sequence[int],
    capacities: Sequence[int],
    half: Sequence[int],
) -> float:
    """One query's average precision when its selection is chosen on one half, scored on the other.

    ``scores`` are [selections, items]; both halves take both roles, and the two are averaged.
    """
    other = [item for item in range(len(scores[0])) if item not in half]
    total = Fraction()
    for chosen_on, scored_on in ((half, other), (other, half)):
        ranks = [ranks_among(row, positives, chosen_on) for row in scores]
        best = best_selection(ranks, capacities)
        total += exact_average_precision(ranks_among(scores[best], positives, scored_on))
    return float(total / 2)

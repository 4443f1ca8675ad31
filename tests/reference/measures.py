"""Textbook retrieval measures, one query at a time, read off an explicit ranked list.

The package computes them from ranks; here a list of relevance marks is written out in full and
every sum is spelled as in the textbooks (Manning, Raghavan and Schuetze, chapter 8), so that the
two share nothing but the definition.
"""

from collections.abc import Sequence
from math import log2


def pessimistic_order(scores: Sequence[float], relevant: Sequence[int]) -> list[int]:
    """Items by descending score; among equal scores every non-relevant item comes first."""
    chosen = set(relevant)
    return sorted(range(len(scores)), key=lambda item: (-scores[item], item in chosen))


def relevance_marks(scores: Sequence[float], relevant: Sequence[int]) -> list[bool]:
    """Whether the item at each place of the pessimistic ranking is relevant."""
    chosen = set(relevant)
    return [item in chosen for item in pessimistic_order(scores, relevant)]


def ranks_of_relevant(scores: Sequence[float], relevant: Sequence[int]) -> list[int]:
    """The places, counted from 1, that relevant items take."""
    marks = relevance_marks(scores, relevant)
    return [place for place, mark in enumerate(marks, start=1) if mark]


def average_precision(marks: Sequence[bool]) -> float:
    """Mean, over relevant items, of the precision of the list cut right after each."""
    precisions = [sum(marks[: place + 1]) / (place + 1) for place, mark in enumerate(marks) if mark]
    return sum(precisions) / len(precisions)


def recall_at(marks: Sequence[bool], k: int) -> float:
    """Share of the relevant items among the first k."""
    return sum(marks[:k]) / sum(marks)


def reciprocal_rank(marks: Sequence[bool]) -> float:
    """One over the place of the first relevant item."""
    return 1.0 / first_rank(marks)


def first_rank(marks: Sequence[bool]) -> float:
    """The place of the first relevant item."""
    return float(list(marks).index(True) + 1)


def ndcg(marks: Sequence[bool]) -> float:
    """Discounted gain of the whole list over that of the ideal list, relevant items first."""
    ideal = sorted(marks, reverse=True)
    return _discounted_gain(marks) / _discounted_gain(ideal)


def _discounted_gain(marks: Sequence[bool]) -> float:
    return sum(mark / log2(place + 1) for place, mark in enumerate(marks, start=1))

"""Marginal utilities of Sec. 3.2 for one sample, one expansion at a time."""

import math
from collections.abc import Sequence
from fractions import Fraction

from tests.reference.oracle import exact_average_precision


def average_precision(ranks: Sequence[int]) -> float:
    return float(exact_average_precision(ranks))


def ranks_among_others(ranks: Sequence[int]) -> list[int]:
    """Each positive's rank when the other positives are not there."""
    return [rank - place for place, rank in enumerate(rank for rank in ranks if rank)]


def minus_log_rank(ranks: Sequence[int]) -> float:
    found = ranks_among_others(ranks)
    return -sum(math.log(rank) for rank in found) / len(found)


def sub_gallery_precision(ranks: Sequence[int], share: Fraction) -> float:
    """The expected reciprocal rank, over every number of better items that may be kept."""
    found = ranks_among_others(ranks)
    total = Fraction()
    for rank in found:
        better = rank - 1
        for kept in range(better + 1):
            ways = math.comb(better, kept)
            chance = ways * share**kept * (1 - share) ** (better - kept)
            total += chance * Fraction(1, 1 + kept)
    return float(total / len(found))


def marginal_utilities(
    values: Sequence[Sequence[float]], edges: Sequence[tuple[int, int]]
) -> list[list[float]]:
    """What every expansion (source, target) gains for every sample, from values by node."""
    return [
        [after - before for before, after in zip(values[source], values[target], strict=True)]
        for source, target in edges
    ]


def standardized(
    utilities: Sequence[Sequence[float]], steps: Sequence[int], epsilon: float
) -> list[list[float]]:
    """Every utility less the mean of its step, divided by the deviation of its step."""
    results = []
    for row, step in zip(utilities, steps, strict=True):
        same = [
            value
            for other, at in zip(utilities, steps, strict=True)
            if at == step
            for value in other
        ]
        mean = sum(same) / len(same)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in same) / len(same))
        results.append([(value - mean) / (deviation + epsilon) for value in row])
    return results

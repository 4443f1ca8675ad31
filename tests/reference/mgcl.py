"""MGCL as Eq. 3 is written: loops over prefixes and pairs, in float64."""

from collections.abc import Sequence
from math import exp, log

import numpy as np
from numpy.typing import ArrayLike

from tests.reference.setsim import setsim


def mgcl(
    source: ArrayLike,
    target: ArrayLike,
    position_sets: Sequence[Sequence[int]],
    temperature: float,
    same_item: ArrayLike | None = None,
) -> float:
    """The loss; pairs that are the same item are in no denominator but their own."""
    left, right = np.asarray(source, np.float64), np.asarray(target, np.float64)
    pairs = range(len(left))
    same = np.zeros((len(left), len(left)), bool) if same_item is None else np.asarray(same_item)
    total = 0.0
    for positions in map(list, position_sets):
        for n in pairs:
            scores = [setsim(left[n, positions], right[m, positions]) for m in pairs]
            backward = [setsim(left[m, positions], right[n, positions]) for m in pairs]
            own = exp(scores[n] / temperature)
            kept = [m for m in pairs if m == n or not same[n, m]]
            total += log(own / sum(exp(scores[m] / temperature) for m in kept))
            kept = [m for m in pairs if m == n or not same[m, n]]
            total += log(own / sum(exp(backward[m] / temperature) for m in kept))
    return -total / (2 * len(left) * len(position_sets))

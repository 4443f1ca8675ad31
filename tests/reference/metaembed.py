"""The loss of MetaEmbed, pair by pair, in float64 (R17)."""

from collections.abc import Sequence
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from tests.reference.maxsim import maxsim

Array = NDArray[np.float64]


def metaembed_loss(  # noqa: PLR0917 - as in the code
    source: Array,
    target: Array,
    roles: tuple[int, int],
    budgets: Sequence[tuple[int, int]],
    temperature: float,
    same_item: NDArray[np.bool_] | None = None,
) -> float:
    """The mean, over directions, budgets and queries, of -log of the share of the own item."""
    losses = []
    for asking, asked in ((source, target), (target, source)):
        for query_size, gallery_size in budgets:
            for own in range(len(asking)):
                query = asking[own, :query_size]
                items = asked[:, roles[0] : roles[0] + gallery_size]
                others = [
                    item
                    for item in range(len(asked))
                    if item == own or same_item is None or not same_item[own, item]
                ]
                scores = {item: maxsim(query, items[item]) / temperature for item in others}
                greatest = max(scores.values())
                total = sum(exp(score - greatest) for score in scores.values())
                losses.append(log(total) - (scores[own] - greatest))
    return float(np.mean(losses))

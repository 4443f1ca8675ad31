"""Eq. 5 for one item, one step at a time, and the choice of its threshold by trying all of them."""

from collections.abc import Callable, Mapping, Sequence

Probability = Callable[[int, int], float]
"""How probable the expansion from one node to another is."""


def allocate(
    probability: Probability, expansions: Mapping[int, Sequence[int]], threshold: float
) -> int:
    """The node at which the item ends; node 0 is the root."""
    node = 0
    while expansions.get(node):
        best = expansions[node][0]
        for target in expansions[node][1:]:
            if probability(node, target) > probability(node, best):
                best = target
        if probability(node, best) <= threshold:
            break
        node = best
    return node


def best_threshold(
    probabilities: Sequence[Probability],
    expansions: Mapping[int, Sequence[int]],
    values: Sequence[Sequence[float]],
    capacities: Sequence[int],
) -> tuple[float, float]:
    """The best mean value that any threshold reaches, and the smallest capacity that reaches it.

    ``values`` are [nodes][items]. Every probability is tried as a threshold, beside 0 and 1.
    """
    tried = {0.0, 1.0}
    for probability in probabilities:
        tried |= {probability(node, target) for node in expansions for target in expansions[node]}
    outcomes = []
    for threshold in tried:
        nodes = [allocate(probability, expansions, threshold) for probability in probabilities]
        reached = sum(values[node][item] for item, node in enumerate(nodes)) / len(nodes)
        capacity = sum(capacities[node] for node in nodes) / len(nodes)
        outcomes.append((round(reached, 9), -capacity))
    value, capacity = max(outcomes)
    return value, -capacity

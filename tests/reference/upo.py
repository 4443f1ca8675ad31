"""Eq. 4 and its gradient, one action at a time."""

import math
from collections.abc import Sequence


def softmax(logits: Sequence[float]) -> list[float]:
    powers = [math.exp(logit) for logit in logits]
    return [power / sum(powers) for power in powers]


def expected_utility(logits: Sequence[float], utilities: Sequence[float]) -> float:
    total = 0.0
    for probability, utility in zip(softmax(logits), utilities, strict=True):
        total += probability * utility
    return total


def upo_loss(states: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The loss over states of logits and utilities."""
    return -sum(expected_utility(*state) for state in states) / len(states)


def gradient(
    states: Sequence[tuple[Sequence[float], Sequence[float]]],
) -> list[list[float]]:
    """The loss's derivative by every logit: -pi(a) (R(a) - expected) / number of states."""
    return [
        [
            -probability * (utility - expected_utility(logits, utilities)) / len(states)
            for probability, utility in zip(softmax(logits), utilities, strict=True)
        ]
        for logits, utilities in states
    ]

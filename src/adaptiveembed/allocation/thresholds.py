"""The threshold of MUA, chosen on validation: one per direction, by mAP (R14).

Where an item ends depends on the threshold only through the lowest probability on its way, so all
thresholds that differ at all are found by one sort, and every one of them is tried.
"""

from dataclasses import dataclass

import numpy as np

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.mua import best_expansions
from adaptiveembed.allocation.oracle import ROUNDING
from adaptiveembed.errors import EmptyBatchError, ShapeError
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.shapes import CurveValues, NodeValues, RankTable, StateProbabilities


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """mAP and mean capacity under every threshold that makes a difference, highest first.

    Each threshold stands in the middle between the probabilities at which something changes.
    """

    thresholds: CurveValues
    precision: CurveValues
    capacity: CurveValues

    @property
    def best(self) -> int:
        """The place of the threshold of the best mAP; ties go to the smaller capacity."""
        # Capacity never rises with the threshold, so the first of equals is the smallest.
        highest = self.precision.max()
        return int((self.precision >= highest - ROUNDING * abs(highest)).argmax())

    @property
    def threshold(self) -> float:
        """The best threshold."""
        return float(self.thresholds[self.best])


def choose_threshold(
    probabilities: StateProbabilities, ranks: RankTable, actions: Actions
) -> ThresholdCurve:
    """What every threshold would reach, from probabilities at all states and ranks at all nodes."""
    _require_table(probabilities, ranks, actions)
    return threshold_curve(probabilities, average_precision(ranks), actions)


def threshold_curve(
    probabilities: StateProbabilities, values: NodeValues, actions: Actions
) -> ThresholdCurve:
    """The mean value and capacity under every threshold, for values [nodes, items] of any kind."""
    limits, sources, targets = _events(probabilities, actions)
    num_items = len(probabilities)
    items = np.broadcast_to(np.arange(num_items)[:, None], limits.shape)
    happens = limits > 0  # nothing is more probable than a threshold and has probability 0
    order = np.argsort(-limits[happens], kind="stable")
    limits, sources, targets, items = (
        each[happens][order] for each in (limits, sources, targets, items)
    )
    capacities = np.array([node.capacity for node in actions.space.nodes])
    gains = values[targets, items] - values[sources, items]
    growth = capacities[targets] - capacities[sources]
    # All that happens at one probability happens together.
    last = np.flatnonzero(np.diff(limits, append=-np.inf))
    start = values[0].mean(), float(capacities[0])
    return ThresholdCurve(
        _between(limits[last]),
        np.concatenate([[0.0], np.cumsum(gains)[last]]) / num_items + start[0],
        np.concatenate([[0.0], np.cumsum(growth)[last]]) / num_items + start[1],
    )


def _events(
    probabilities: StateProbabilities, actions: Actions
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every item's way [items, steps]: below which threshold it goes from which node to which.

    Ways that end earlier are filled up with minus infinity.
    """
    best, target = (
        each.numpy() for each in best_expansions(probabilities, actions, actions.states)
    )
    space = actions.space
    state_of = np.full(len(space), -1)
    state_of[[space.index(state) for state in actions.states]] = np.arange(len(actions.states))
    items, longest = np.arange(len(best)), max(map(space.step_of, space.nodes))
    places, limit = np.zeros(len(best), np.int64), np.full(len(best), np.inf)
    events = []
    for _ in range(longest):
        state = state_of[places]
        limit = np.where(state >= 0, np.minimum(limit, best[items, state]), -np.inf)
        following = np.where(state >= 0, target[items, state], places)
        events.append((limit, places, following))
        places = following
    limits, sources, targets = (np.stack(each, axis=1) for each in zip(*events, strict=True))
    return limits, sources, targets


def _between(limits: np.ndarray) -> np.ndarray:
    """The middle of every two neighbours of 1, the limits (descending) and 0."""
    bounds = np.concatenate([[1.0], limits, [0.0]])
    return np.asarray((bounds[:-1] + bounds[1:]) / 2)


def _require_table(probabilities: StateProbabilities, ranks: RankTable, actions: Actions) -> None:
    if not len(probabilities):
        raise EmptyBatchError("no validation item was given; a threshold is chosen by at least one")
    given, needed = ranks.shape[:2], (len(actions.space), len(probabilities))
    if given != needed:
        raise ShapeError(
            f"ranks are of {given[0]} selections and {given[1]} items, needed are {needed[0]} and "
            f"{needed[1]}; make the rank table of the same items with all of space.nodes"
        )

"""Marginal Utility Allocation (Eq. 5): from the probabilities of actions to a selection."""

from collections.abc import Callable

import torch

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.shapes import (
    ActionProbabilities,
    BestExpansions,
    BestProbabilities,
    ItemIndices,
    NodePlaces,
    StateProbabilities,
)
from adaptiveembed.structure.selection import Selection

Decide = Callable[[Selection, ItemIndices], ActionProbabilities]
"""The probabilities of all actions at a state, for the items that are there."""


def marginal_utility_allocation(
    probabilities: StateProbabilities, actions: Actions, threshold: float
) -> NodePlaces:
    """The place among the nodes of the space of every item's selection."""

    def decide(state: Selection, items: ItemIndices) -> ActionProbabilities:
        return probabilities[items, actions.place(state)]

    return walk(decide, len(probabilities), actions, threshold)


def walk(decide: Decide, num_items: int, actions: Actions, threshold: float) -> NodePlaces:
    """Lead every item from the root along its best expansions, as long as they are probable enough.

    An item takes its best expansion where that is more probable than the threshold, and ends
    otherwise. Only states that some item reaches are decided on, each once and for all items there:
    an expansion always leads to a later step, so all have arrived when a state's turn comes.
    """
    places = torch.zeros(num_items, dtype=torch.int64)
    for place, node in enumerate(actions.space.nodes):
        items = torch.nonzero(places == place).squeeze(-1)
        if len(items) and not actions.space.is_terminal(node):
            best, target = best_expansions(decide(node, items).unsqueeze(1), actions, (node,))
            places[items] = torch.where(best[:, 0] > threshold, target[:, 0], place)
    return places


def best_expansions(
    probabilities: StateProbabilities, actions: Actions, states: tuple[Selection, ...]
) -> tuple[BestProbabilities, BestExpansions]:
    """p* and c* at these states: how probable the best expansion is, and to which node it leads.

    Of equally probable expansions the first of the space is taken. Probabilities are compared with
    thresholds in double precision, and on the CPU, where selections are.
    """
    rows = [actions.place(state) for state in states]
    expansions = probabilities.detach().cpu().double()[..., 1:]
    possible = expansions.masked_fill(~actions.admissible[rows, 1:], -torch.inf)
    best = possible.argmax(dim=-1, keepdim=True)
    return possible.gather(-1, best).squeeze(-1), actions.targets[best.squeeze(-1)]

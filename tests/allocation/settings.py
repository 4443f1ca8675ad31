"""Small banks, spaces and policy inputs for the tests of this package."""

import torch

from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import FeedbackSettings, policy_inputs
from adaptiveembed.structure.groups import PAPER_LAYOUT, GroupLayout
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import (
    Expansion,
    SelectionSpace,
    coarse_to_fine,
    every_prefix,
)
from tests.structure.strategies import random_candidates

DIM = 6

SPACES = {
    "paper": coarse_to_fine(PAPER_LAYOUT),
    "every prefix": every_prefix(PAPER_LAYOUT),
    "one group": coarse_to_fine(GroupLayout((8,))),
    "unequal groups": coarse_to_fine(GroupLayout((3, 5))),
}


def shortcut_space():
    """Ways of different lengths to one node, and two nodes where a way ends."""
    layout = GroupLayout((2, 2))
    one, two, three, four = (Selection.parse(text, layout) for text in ("1+0", "1+1", "2+1", "2+0"))
    return SelectionSpace(
        layout,
        one,
        (Expansion(one, three), Expansion(one, two), Expansion(two, three), Expansion(one, four)),
    )


SPACES["shortcut"] = shortcut_space()


def bank_of(num_items=20, layout=PAPER_LAYOUT, dim=DIM, seed=100, dtype=torch.float32):
    candidates = random_candidates(num_items, layout, dim, seed=seed, dtype=dtype)
    return RetrievalBank(tuple(f"b{item}" for item in range(num_items)), candidates)


def inputs_of(space, num_items=5, depth=7, seed=0, dim=DIM):
    candidates = random_candidates(num_items, space.layout, dim, seed=seed)
    bank = bank_of(layout=space.layout, dim=dim)
    return policy_inputs(candidates, bank, space, FeedbackSettings(depth=depth))


def random_logits(actions, num_items=5, seed=0, scale=1.0):
    """Logits [items, states, actions] of no policy, minus infinity where no action is."""
    shape = num_items, *actions.admissible.shape
    logits = scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return logits.masked_fill(~actions.admissible, -torch.inf)

"""What every allocator promises; call these checks from the tests of an implementation."""

import torch

from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.structure.candidates import CandidateSets


def check_keeps_the_items(allocator: Allocator, candidates: CandidateSets) -> None:
    """The same candidates, in the same order, each with one selection of their layout."""
    caes = allocator.allocate(candidates)
    torch.testing.assert_close(caes.candidates.vectors, candidates.vectors, rtol=0, atol=0)
    assert caes.candidates.layout == candidates.layout
    assert len(caes.selections) == len(candidates)
    assert {selection.layout for selection in caes.selections} == {candidates.layout}


def check_is_repeatable(allocator: Allocator, candidates: CandidateSets) -> None:
    """Asked twice, it answers the same."""
    once, again = allocator.allocate(candidates), allocator.allocate(candidates)
    assert once.selections == again.selections


def check_decides_item_by_item(allocator: Allocator, candidates: CandidateSets) -> None:
    """An item is given in a batch what it is given alone, and wherever it stands in the batch."""
    together = allocator.allocate(candidates).selections
    alone = [allocator.allocate(candidates[item]).selections[0] for item in range(len(candidates))]
    assert list(together) == alone
    backwards = allocator.allocate(candidates[list(range(len(candidates)))[::-1]]).selections
    assert list(together) == list(backwards)[::-1]

"""Fixed allocation gives everyone the same."""

import pytest
import torch

from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.allocation.fixed import FixedAllocator
from adaptiveembed.errors import LayoutMismatchError
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection
from tests.contracts import allocator as contract

LAYOUT = GroupLayout((3, 5))


def candidate_sets(num_items=4, layout=LAYOUT):
    raw = torch.randn(
        num_items, layout.num_candidates, 6, generator=torch.Generator().manual_seed(1)
    )
    return CandidateSets.normalized(raw, layout)


@pytest.mark.parametrize("text", ["1+0", "2+3", "3+5", "0+2"])
@pytest.mark.parametrize(
    "check",
    [
        contract.check_keeps_the_items,
        contract.check_is_repeatable,
        contract.check_decides_item_by_item,
    ],
)
def test_fixed_keeps_the_contract_of_allocators(check, text):
    check(FixedAllocator(Selection.parse(text, LAYOUT)), candidate_sets())


def test_every_item_gets_the_selection():
    selection = Selection.parse("2+3", LAYOUT)
    caes = FixedAllocator(selection).allocate(candidate_sets(3))
    assert caes.selections == (selection,) * 3
    assert caes.capacities.tolist() == [5, 5, 5]


def test_it_is_an_allocator_by_shape_alone():
    assert isinstance(FixedAllocator(Selection.full(LAYOUT)), Allocator)


def test_candidates_of_another_layout_are_refused_with_both_layouts():
    allocator = FixedAllocator(Selection.parse("2+3", LAYOUT))
    with pytest.raises(LayoutMismatchError, match=r"2\+3 .*layout 3\+5.* 4\+4"):
        allocator.allocate(candidate_sets(layout=GroupLayout((4, 4))))

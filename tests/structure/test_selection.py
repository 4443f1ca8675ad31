"""A selection is how long the prefix of each group is."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import LayoutMismatchError, SettingError, UnknownSelectionError
from adaptiveembed.structure import PAPER_LAYOUT, GroupLayout, GroupPrefix, Selection
from tests.structure.strategies import layouts, selections

UNEVEN = GroupLayout((3, 5))
any_selection = layouts().flatmap(selections)
two_selections = layouts().flatmap(lambda layout: st.tuples(selections(layout), selections(layout)))


def test_two_and_one_of_the_paper_layout():
    selection = Selection(PAPER_LAYOUT, (2, 1))
    assert selection.positions == (0, 1, 4)
    assert selection.mask == (True, True, False, False, True, False, False, False)
    assert selection.capacity == 3
    assert selection.labels == ("g0", "z1", "g1")
    assert str(selection) == "2+1"


def test_uneven_groups_shift_the_second_prefix():
    assert Selection(UNEVEN, (1, 2)).positions == (0, 3, 4)
    assert Selection(UNEVEN, (0, 5)).labels == ("g1", "z3", "z4", "z5", "z6")


@given(any_selection)
def test_positions_mask_and_capacity_say_the_same(selection):
    active = tuple(place for place, is_active in enumerate(selection.mask) if is_active)
    assert selection.positions == active
    assert len(active) == selection.capacity
    assert len(selection.mask) == selection.layout.num_candidates


@given(any_selection)
def test_a_selection_is_the_union_of_its_group_prefixes(selection):
    prefixes = [GroupPrefix(*each) for each in enumerate(selection.prefix_lengths) if each[1]]
    union = {place for each in prefixes for place in selection.layout.prefix_positions(each)}
    assert set(selection.positions) == union


@given(any_selection)
def test_text_and_selection_are_inverse(selection):
    assert Selection.parse(str(selection), selection.layout) == selection


@given(layouts())
def test_the_full_selection_is_every_position(layout):
    assert Selection.full(layout).positions == tuple(range(layout.num_candidates))


@given(two_selections)
def test_covering_is_containing_every_position(pair):
    larger, smaller = pair
    assert larger.covers(smaller) == (set(larger.positions) >= set(smaller.positions))


@given(two_selections)
def test_selections_are_ordered_by_capacity_then_by_prefix_lengths(pair):
    first, second = pair
    keys = [(each.capacity, each.prefix_lengths) for each in pair]
    assert (first < second, first <= second) == (keys[0] < keys[1], keys[0] <= keys[1])
    assert (first > second, first >= second) == (keys[0] > keys[1], keys[0] >= keys[1])


def test_a_smaller_set_comes_first_also_with_a_longer_first_prefix():
    assert Selection(PAPER_LAYOUT, (3, 0)) < Selection(PAPER_LAYOUT, (1, 3))
    assert Selection(PAPER_LAYOUT, (1, 1)) < Selection(PAPER_LAYOUT, (2, 0))


@given(any_selection)
def test_equal_selections_are_one_key_also_after_pickling(selection):
    assert selection.positions  # fills the cache, which must not take part in equality
    twin = pickle.loads(pickle.dumps(Selection(selection.layout, selection.prefix_lengths)))
    assert {selection: "found"}[twin] == "found"


def test_the_same_lengths_on_another_layout_are_another_selection():
    assert Selection(PAPER_LAYOUT, (1, 1)) != Selection(UNEVEN, (1, 1))


@pytest.mark.parametrize("compare", [Selection.covers, Selection.__lt__])
def test_selections_of_two_layouts_are_not_compared(compare):
    with pytest.raises(
        LayoutMismatchError, match=r"2\+1 is of layout 4\+4 .* of layout 3\+5; comp"
    ):
        compare(Selection(PAPER_LAYOUT, (2, 1)), Selection(UNEVEN, (1, 1)))


@pytest.mark.parametrize("lengths", [(), (2,), (2, 1, 0)])
def test_a_length_is_needed_for_every_group(lengths):
    expected = rf"has {len(lengths)} prefix lengths and layout 4\+4 has 2 groups; give one length"
    with pytest.raises(LayoutMismatchError, match=expected):
        Selection(PAPER_LAYOUT, lengths)


@pytest.mark.parametrize("lengths", [(5, 0), (-1, 2)])
def test_a_prefix_longer_than_its_group_or_negative_is_refused(lengths):
    expected = rf"asks for {lengths[0]} vectors of group 0, which has 4 .*; choose 0 to 4"
    with pytest.raises(UnknownSelectionError, match=expected):
        Selection(PAPER_LAYOUT, lengths)


def test_the_size_in_the_message_is_that_of_the_group():
    with pytest.raises(UnknownSelectionError, match="asks for 6 vectors of group 1, which has 5"):
        Selection(UNEVEN, (1, 6))


def test_an_empty_selection_is_refused():
    with pytest.raises(UnknownSelectionError, match=r"0\+0\+0 is empty; .* for example 1\+0\+0"):
        Selection(GroupLayout((1, 2, 3)), (0, 0, 0))


def test_text_that_is_no_selection_is_refused():
    with pytest.raises(SettingError, match=r"prefix lengths are written .* got 'all'"):
        Selection.parse("all", PAPER_LAYOUT)

"""Layouts cut a row of positions into ordered groups."""

import pytest
from hypothesis import given

from adaptiveembed.errors import LayoutMismatchError, SettingError
from adaptiveembed.structure import PAPER_LAYOUT, GroupLayout, GroupPrefix
from tests.reference import spaces
from tests.structure.strategies import layouts


def test_the_paper_layout_names_its_positions_as_the_paper_does():
    assert PAPER_LAYOUT.labels == spaces.GROUPS[0] + spaces.GROUPS[1]
    assert (PAPER_LAYOUT.num_groups, PAPER_LAYOUT.num_candidates) == (2, 8)


@pytest.mark.parametrize(
    ("sizes", "labels", "starts"),
    [
        ((3, 5), "g0 z1 z2 g1 z3 z4 z5 z6", (0, 3)),
        ((8,), "g0 z1 z2 z3 z4 z5 z6 z7", (0,)),
        ((1,), "g0", (0,)),
        ((2, 3, 1), "g0 z1 g1 z2 z3 g2", (0, 2, 5)),
    ],
)
def test_group_heads_are_coarse_and_all_others_fine(sizes, labels, starts):
    layout = GroupLayout(sizes)
    assert layout.labels == tuple(labels.split())
    assert layout.starts == starts


@given(layouts())
def test_groups_lie_one_after_another_and_fill_the_row(layout):
    row = [
        layout.position(group, index)
        for group, size in enumerate(layout.sizes)
        for index in range(size)
    ]
    assert row == list(range(layout.num_candidates))


@given(layouts())
def test_every_group_has_a_prefix_of_every_length(layout):
    prefixes = list(layout.group_prefixes())
    assert prefixes == sorted(set(prefixes))
    assert len(prefixes) == layout.num_candidates
    assert max(prefixes) == (layout.num_groups - 1, layout.sizes[-1])


@given(layouts())
def test_a_prefix_is_the_beginning_of_its_group(layout):
    for group, length in layout.group_prefixes():
        expected = tuple(layout.position(group, index) for index in range(length))
        assert layout.prefix_positions(GroupPrefix(group, length)) == expected


def test_prefix_positions_of_an_uneven_layout():
    layout = GroupLayout((3, 5))
    assert layout.prefix_positions(GroupPrefix(0, 2)) == (0, 1)
    assert layout.prefix_positions(GroupPrefix(1, 4)) == (3, 4, 5, 6)


@given(layouts())
def test_text_and_layout_are_inverse(layout):
    assert GroupLayout.parse(str(layout)) == layout


def test_layouts_are_written_as_sums():
    assert str(GroupLayout((3, 5))) == "3+5"
    assert GroupLayout.parse("8") == GroupLayout((8,))


@pytest.mark.parametrize("sizes", [(), (0,), (4, 0), (0, 4), (4, -1)])
def test_groups_without_positions_are_refused(sizes):
    with pytest.raises(
        SettingError, match=r"at least one position .* got sizes .*\(4, 4\)"
    ) as info:
        GroupLayout(sizes)
    assert f"{sizes}" in str(info.value)


@pytest.mark.parametrize("text", ["", "4+", "4,4", "four", "4+4.0"])
def test_text_that_is_no_sum_is_refused(text):
    with pytest.raises(SettingError, match=r"group sizes are written .* '4\+4', got") as info:
        GroupLayout.parse(text)
    assert repr(text) in str(info.value)


@pytest.mark.parametrize("index", [-1, 3])
def test_a_vector_outside_its_group_is_refused(index):
    with pytest.raises(LayoutMismatchError, match=rf"group 0 of layout 3\+5 .* got {index}"):
        GroupLayout((3, 5)).position(0, index)


@pytest.mark.parametrize("group", [-1, 2])
def test_a_group_outside_the_layout_is_refused(group):
    with pytest.raises(LayoutMismatchError, match=f"has groups 0 to 1, got group {group}"):
        GroupLayout((3, 5)).position(group, 0)
    with pytest.raises(LayoutMismatchError, match=f"has groups 0 to 1, got group {group}"):
        GroupLayout((3, 5)).prefix_positions(GroupPrefix(group, 1))


@pytest.mark.parametrize("length", [-1, 0, 4])
def test_a_prefix_outside_its_group_is_refused(length):
    with pytest.raises(LayoutMismatchError, match=f"has 1 to 3 vectors, got {length}; group_pref"):
        GroupLayout((3, 5)).prefix_positions(GroupPrefix(0, length))

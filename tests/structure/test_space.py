"""The decision graph, beside the sets that the paper writes out."""

import pickle
from math import prod

import pytest
from hypothesis import given

from adaptiveembed.errors import LayoutMismatchError, SettingError, UnknownSelectionError
from adaptiveembed.structure import (
    PAPER_LAYOUT,
    Expansion,
    GroupLayout,
    Selection,
    SelectionSpace,
    coarse_to_fine,
    every_prefix,
)
from tests.reference import spaces
from tests.structure.strategies import layouts

builders = pytest.mark.parametrize("build", [coarse_to_fine, every_prefix])


def paper(text):
    return Selection.parse(text, PAPER_LAYOUT)


def space_of(*edges, root="1+0"):
    """A space of the paper's layout from edges written as "1+0 2+0"."""
    ends = [Expansion(*(paper(end) for end in edge.split())) for edge in edges]
    return SelectionSpace(PAPER_LAYOUT, paper(root), tuple(ends))


def sets_of_edges(space):
    return [(frozenset(source.labels), frozenset(target.labels)) for source, target in space.edges]


def test_coarse_to_fine_has_the_five_outcomes_of_the_paper():
    nodes = coarse_to_fine(PAPER_LAYOUT).nodes
    assert [frozenset(node.labels) for node in nodes] == list(spaces.REACHABLE)
    assert [node.capacity for node in nodes] == [1, 2, 2, 4, 8]


def test_coarse_to_fine_has_the_five_arrows_of_the_paper():
    assert sets_of_edges(coarse_to_fine(PAPER_LAYOUT)) == list(spaces.ARROWS)


def test_every_prefix_has_the_twenty_outcomes_of_the_paper():
    nodes = every_prefix(PAPER_LAYOUT).nodes
    assert len(nodes) == 20
    assert {frozenset(node.labels) for node in nodes} == spaces.ORACLE_SETS


def test_every_prefix_has_the_thirty_one_single_vector_arrows():
    edges = sets_of_edges(every_prefix(PAPER_LAYOUT))
    assert len(edges) == 31
    assert set(edges) == spaces.ORACLE_ARROWS


@pytest.mark.parametrize(
    ("sizes", "nodes", "edges"),
    [
        ((8,), "1 2 4 8", "1→2 2→4 4→8"),
        (
            (3, 5),
            "1+0 1+1 2+0 2+3 3+5",
            "1+0→1+1 1+0→2+0 1+1→2+3 2+0→2+3 2+3→3+5",
        ),
        # A step that adds nothing is left out.
        ((1,), "1", ""),
        ((2,), "1 2", "1→2"),
        ((3,), "1 2 3", "1→2 2→3"),
        ((4,), "1 2 4", "1→2 2→4"),
        ((5,), "1 2 3 5", "1→2 2→3 3→5"),
        ((1, 1), "1+0 1+1", "1+0→1+1"),
        ((1, 3), "1+0 1+1 1+2 1+3", "1+0→1+1 1+1→1+2 1+2→1+3"),
        # The half is 1+1 already, and 2+0 is not inside it: both go on to all.
        ((2, 2), "1+0 1+1 2+0 2+2", "1+0→1+1 1+0→2+0 1+1→2+2 2+0→2+2"),
        (
            (2, 3, 1),
            "1+0+0 1+0+1 1+1+0 2+0+0 1+2+1 2+3+1",
            "1+0+0→1+0+1 1+0+0→1+1+0 1+0+0→2+0+0 1+0+1→1+2+1 1+1+0→1+2+1 2+0+0→2+3+1 1+2+1→2+3+1",
        ),
    ],
)
def test_coarse_to_fine_on_other_layouts(sizes, nodes, edges):
    space = coarse_to_fine(GroupLayout(sizes))
    assert [str(node) for node in space.nodes] == nodes.split()
    assert [str(edge) for edge in space.edges] == edges.split()


@given(layouts(max_size=8))
def test_coarse_to_fine_takes_at_most_three_steps_to_all_positions(layout):
    space = coarse_to_fine(layout)
    assert space.nodes[-1] == Selection.full(layout)
    assert space.step_of(Selection.full(layout)) <= 3
    assert all(node.covers(space.root) for node in space.nodes)


@given(layouts(max_size=8))
def test_the_first_step_adds_one_vector_to_any_single_group(layout):
    root = coarse_to_fine(layout).root
    firsts = coarse_to_fine(layout).expansions(root)
    groups_with_room = (layout.sizes[0] > 1) + layout.num_groups - 1
    assert len(set(firsts)) == groups_with_room
    assert all(first.capacity == 2 and first.covers(root) for first in firsts)


@given(layouts())
def test_every_prefix_is_every_combination_with_the_first_vector(layout):
    space = every_prefix(layout)
    assert len(space) == layout.sizes[0] * prod(size + 1 for size in layout.sizes[1:])
    assert all(node.positions[0] == 0 for node in space.nodes)


@given(layouts())
def test_every_prefix_grows_one_vector_at_a_time_and_steps_count_them(layout):
    space = every_prefix(layout)
    assert all(target.capacity == source.capacity + 1 for source, target in space.edges)
    assert all(space.step_of(node) == node.capacity - 1 for node in space.nodes)
    assert space.nodes == tuple(sorted(space.nodes))


@builders
@given(layouts())
def test_every_way_grows_and_only_the_full_selection_ends_it(build, layout):
    space = build(layout)
    assert all(set(source.positions) < set(target.positions) for source, target in space.edges)
    terminal = [node for node in space.nodes if space.is_terminal(node)]
    assert terminal == [Selection.full(layout)]


@builders
@given(layouts())
def test_every_way_starts_at_the_first_vector_alone(build, layout):
    space = build(layout)
    assert space.root.positions == (0,)
    assert space.nodes[0] == space.root
    assert space.step_of(space.root) == 0


@builders
@given(layouts())
def test_expansions_are_the_edges_by_source(build, layout):
    space = build(layout)
    listed = [(node, target) for node in space.nodes for target in space.expansions(node)]
    assert sorted(listed) == sorted(space.edges)
    assert all(space.step_of(target) > space.step_of(node) for node, target in listed)


@builders
@given(layouts())
def test_index_is_the_place_among_the_nodes(build, layout):
    space = build(layout)
    assert [space.index(node) for node in space.nodes] == list(range(len(space)))
    assert all(node in space for node in space.nodes)


def test_expansions_keep_the_order_of_the_edges():
    space = space_of("1+0 2+0", "1+0 4+0", "1+0 1+1")
    assert space.expansions(paper("1+0")) == (paper("2+0"), paper("4+0"), paper("1+1"))
    assert space.nodes == (paper("1+0"), paper("2+0"), paper("4+0"), paper("1+1"))


def test_a_step_is_the_longest_way_so_that_expansions_never_stay_in_a_step():
    space = space_of("1+0 4+4", "2+2 4+4", "1+0 2+2")
    assert [space.step_of(paper(text)) for text in ("1+0", "2+2", "4+4")] == [0, 1, 2]
    assert space.nodes == (paper("1+0"), paper("2+2"), paper("4+4"))


def test_a_long_way_over_small_selections_counts_more_than_a_short_one_over_large_ones():
    space = space_of("1+0 4+0", "4+0 4+4", "1+0 1+1", "1+1 1+2", "1+2 4+4")
    assert space.step_of(paper("4+0")) == 1
    assert space.step_of(paper("4+4")) == 3


def test_a_space_of_one_selection_has_nothing_to_decide():
    space = space_of(root="2+2")
    assert space.nodes == (paper("2+2"),)
    assert space.is_terminal(paper("2+2"))
    assert len(space) == 1


def test_membership_is_by_selection_and_layout():
    space = coarse_to_fine(PAPER_LAYOUT)
    assert paper("2+2") in space
    assert paper("3+0") not in space
    assert Selection(GroupLayout((5, 4)), (2, 2)) not in space
    assert "2+2" not in space


@builders
def test_equal_spaces_are_one_key_also_after_pickling(build):
    space = build(GroupLayout((3, 5)))
    assert len(space.nodes) > 1  # fills the caches, which must not take part in equality
    assert {space: "found"}[pickle.loads(pickle.dumps(build(GroupLayout((3, 5)))))] == "found"
    assert coarse_to_fine(PAPER_LAYOUT) != every_prefix(PAPER_LAYOUT)


@pytest.mark.parametrize("ask", ["expansions", "is_terminal", "step_of", "index"])
def test_a_selection_outside_the_space_is_refused(ask):
    expected = r"3\+0 of layout 4\+4 is not in this space; choose one of 1\+0, 1\+1, 2\+0, 2\+2, 4"
    with pytest.raises(UnknownSelectionError, match=expected):
        getattr(coarse_to_fine(PAPER_LAYOUT), ask)(paper("3+0"))


@pytest.mark.parametrize("edge", ["1+0 1+0", "2+0 1+0", "2+0 1+4"])
def test_an_expansion_that_does_not_grow_is_refused(edge):
    with pytest.raises(SettingError, match="does not grow; no group's prefix may get shorter"):
        space_of("1+0 2+0", edge)


def test_an_expansion_given_twice_is_refused():
    with pytest.raises(SettingError, match=r"1\+0→2\+0 is given 2 times; give it once"):
        space_of("1+0 2+0", "1+0 2+0")


@pytest.mark.parametrize("edges", [["2+0 4+0"], ["1+0 4+4", "2+0 3+0", "3+0 4+0"]])
def test_an_expansion_that_nothing_leads_to_is_refused(edges):
    with pytest.raises(SettingError, match=r"no way from the root 1\+0 reaches; add .* to 2\+0"):
        space_of(*edges)


def test_selections_of_another_layout_are_refused():
    other = Selection(GroupLayout((8,)), (1,))
    expected = r"selection 1 is of layout 8 and the space of layout 4\+4; build"
    with pytest.raises(LayoutMismatchError, match=expected):
        SelectionSpace(PAPER_LAYOUT, other, ())
    with pytest.raises(LayoutMismatchError, match=expected):
        SelectionSpace(PAPER_LAYOUT, paper("1+0"), (Expansion(paper("1+0"), other),))

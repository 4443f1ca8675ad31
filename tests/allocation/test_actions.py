"""The space as tables of states and actions."""

import pytest

from adaptiveembed.allocation.actions import STOP, Actions
from adaptiveembed.errors import SettingError, UnknownSelectionError
from adaptiveembed.structure.groups import PAPER_LAYOUT, GroupLayout
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import coarse_to_fine
from tests.allocation.settings import SPACES

PAPER = Actions(coarse_to_fine(PAPER_LAYOUT))
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def test_the_papers_states_are_the_four_that_can_grow():
    assert [str(state) for state in PAPER.states] == ["1+0", "1+1", "2+0", "2+2"]


def test_the_papers_actions_are_stop_and_five_expansions():
    edges = ["1+0→1+1", "1+0→2+0", "1+1→2+2", "2+0→2+2", "2+2→4+4"]
    assert [str(edge) for edge in PAPER.space.edges] == edges
    assert PAPER.admissible.int().tolist() == [
        [1, 1, 1, 0, 0, 0],
        [1, 0, 0, 1, 0, 0],
        [1, 0, 0, 0, 1, 0],
        [1, 0, 0, 0, 0, 1],
    ]


def test_candidate_positions_are_all_that_any_expansion_adds():
    positions = [row.nonzero().squeeze(-1).tolist() for row in PAPER.candidates]
    assert positions == [[1, 4], [1, 5], [4, 5], [2, 3, 6, 7]]
    assert PAPER.selected[3].nonzero().squeeze(-1).tolist() == [0, 1, 4, 5]


@every_space
def test_every_expansion_starts_at_a_state_and_leads_to_a_node(space):
    actions = Actions(space)
    for place, edge in enumerate(space.edges):
        assert actions.states[actions.sources[place]] == edge.source
        assert space.nodes[actions.targets[place]] == edge.target
        assert actions.admissible[actions.place(edge.source), 1 + place]


@every_space
def test_every_state_can_stop_or_grow(space):
    actions = Actions(space)
    assert actions.admissible[:, STOP].all()
    assert actions.admissible.sum() == len(actions.states) + len(space.edges)
    assert actions.candidates.any(dim=1).all()
    assert not (actions.candidates & actions.selected).any()


def test_a_selection_that_cannot_grow_is_no_state():
    with pytest.raises(UnknownSelectionError, match=r"nothing to decide at selection 4\+4 .* 1\+0"):
        PAPER.place(Selection.full(PAPER_LAYOUT))


def test_a_space_of_one_selection_is_refused():
    with pytest.raises(SettingError, match="nothing to decide; give everyone that selection"):
        Actions(coarse_to_fine(GroupLayout((1,))))

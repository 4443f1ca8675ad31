"""The oracle is never beaten by a selection it looked at, and breaks ties as stated."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.allocation.oracle import OracleAllocator, oracle_choice
from adaptiveembed.errors import DtypeError, SettingError, ShapeError, UnknownIdError
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import Expansion, SelectionSpace, coarse_to_fine, every_prefix
from tests.contracts import allocator as contract
from tests.reference.oracle import best_selection

SPACE = coarse_to_fine(GroupLayout((4, 4)))
NAMES = [str(node) for node in SPACE.nodes]


def choose(*ranks_per_node):
    """The oracle's choice for one query with one positive, by name."""
    ranks = np.array(ranks_per_node, dtype=np.int64).reshape(len(SPACE), 1, -1)
    return NAMES[oracle_choice(ranks, SPACE)[0]]


def test_the_nodes_are_those_the_hand_cases_below_assume():
    assert NAMES == ["1+0", "1+1", "2+0", "2+2", "4+4"]


def test_the_best_rank_wins():
    assert choose(3, 5, 2, 1, 4) == "2+2"


def test_a_tie_goes_to_the_smaller_capacity():
    assert choose(9, 9, 9, 2, 2) == "2+2"


def test_a_tie_of_equal_capacity_goes_to_the_first_in_the_space():
    assert choose(9, 4, 4, 7, 7) == "1+1"


def test_when_nothing_differs_the_root_is_enough():
    assert choose(6, 6, 6, 6, 6) == "1+0"


def test_a_smaller_capacity_wins_a_tie_although_it_comes_later_in_the_space():
    layout = GroupLayout((2, 2))
    root, large, small = (Selection.parse(text, layout) for text in ("1+0", "2+1", "1+1"))
    space = SelectionSpace(layout, root, edges=(Expansion(root, large), Expansion(root, small)))
    assert oracle_choice(np.array([[[2]], [[1]], [[1]]]), space).tolist() == [2]


def test_several_positives_are_judged_by_average_precision():
    # (1 + 2/10) / 2 = 0.6 beats (1/2 + 2/3) / 2 = 0.583, though 2 + 3 < 1 + 10
    assert choose((5, 6), (2, 3), (1, 10), (5, 6), (5, 6)) == "2+0"


def test_equal_fractions_are_a_tie_though_floats_tell_them_apart():
    # (1 + 2/12) / 2 and (1/2 + 2/3) / 2 are both 7/12
    far, near = average_precision(np.array([[1, 12], [2, 3]]))
    assert far > near
    assert choose((9, 10), (2, 3), (1, 12), (2, 3), (1, 12)) == "1+1"
    assert choose((9, 10), (1, 12), (2, 3), (2, 3), (1, 12)) == "1+1"


@given(st.data())
def test_the_choice_is_that_of_the_literal_twin(data):
    space = every_prefix(GroupLayout((2, 2)))
    one_query = st.lists(st.integers(1, 6), min_size=2, max_size=2, unique=True).map(sorted)
    ranks = data.draw(st.lists(one_query, min_size=len(space), max_size=len(space)))
    chosen = oracle_choice(np.array(ranks)[:, None, :], space)[0]
    assert chosen == best_selection(ranks, [node.capacity for node in space.nodes])


def test_ranks_of_another_space_are_refused():
    with pytest.raises(ShapeError, match="4 selections were given for a space of 5"):
        oracle_choice(np.ones((4, 1, 1), dtype=np.int64), SPACE)


@pytest.fixture
def gallery_and_queries():
    layout = GroupLayout((2, 2))
    raw = torch.randn(12, 4, 5, generator=torch.Generator().manual_seed(7))
    noise = torch.randn(12, 4, 5, generator=torch.Generator().manual_seed(8))
    gallery = Gallery.from_candidates(
        tuple(f"i{item}" for item in range(12)), CandidateSets.normalized(raw, layout)
    )
    return gallery, CandidateSets.normalized(raw + noise, layout)


@pytest.fixture
def oracle(gallery_and_queries):
    gallery, _ = gallery_and_queries
    return OracleAllocator(every_prefix(gallery.layout), gallery, np.arange(12)[:, None])


def test_the_oracle_keeps_the_items(oracle, gallery_and_queries):
    contract.check_keeps_the_items(oracle, gallery_and_queries[1])
    contract.check_is_repeatable(oracle, gallery_and_queries[1])


def test_no_fixed_selection_beats_the_oracle_on_any_query(oracle, gallery_and_queries):
    gallery, queries = gallery_and_queries
    ranks = rank_table(gallery, queries, oracle.positives, oracle.space.nodes)
    places = [oracle.space.index(one) for one in oracle.allocate(queries).selections]
    reached = average_precision(ranks)[places, np.arange(12)]
    assert (reached >= average_precision(ranks)).all()


def test_the_oracle_answers_only_the_queries_whose_positives_it_knows(oracle, gallery_and_queries):
    with pytest.raises(ShapeError, match="positives of 12 queries and was asked about 5"):
        oracle.allocate(gallery_and_queries[1][:5])


def test_positives_of_another_integer_kind_give_the_same_choice(oracle, gallery_and_queries):
    gallery, queries = gallery_and_queries
    twin = OracleAllocator(oracle.space, gallery, oracle.positives.astype(np.int32))
    assert twin.allocate(queries).selections == oracle.allocate(queries).selections


def test_positives_that_are_no_table_of_indices_are_refused_when_the_oracle_is_made(oracle):
    with pytest.raises(DtypeError, match="whole numbers, got float64"):
        OracleAllocator(oracle.space, oracle.gallery, oracle.positives * 1.0)
    with pytest.raises(ShapeError, match=r"two axes, .* got shape \(12,\)"):
        OracleAllocator(oracle.space, oracle.gallery, oracle.positives[:, 0])
    with pytest.raises(UnknownIdError, match="positive 12 is not among the 12 items"):
        OracleAllocator(oracle.space, oracle.gallery, oracle.positives + 1)


@pytest.mark.parametrize("save", [pickle.dumps, copy.copy, copy.deepcopy])
def test_the_oracle_cannot_be_saved(oracle, save):
    with pytest.raises(SettingError, match=r"OracleAllocator cannot be saved.*no part of a model"):
        save(oracle)

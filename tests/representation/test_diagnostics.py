"""The spread of candidates tells a collapse from a set of different vectors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.errors import EmptyBatchError
from adaptiveembed.representation import diagnostics
from adaptiveembed.representation.diagnostics import effective_ranks, spread
from adaptiveembed.structure import CandidateSets, GroupLayout
from tests.structure.strategies import candidate_sets, random_candidates

LAYOUT = GroupLayout((2, 2))


def test_equal_positions_are_a_collapse():
    one = random_candidates(5, GroupLayout((1,)), 6).vectors
    found = spread(CandidateSets(one.expand(5, 4, 6), LAYOUT))
    assert found.cosine == pytest.approx(1)
    assert found.group_cosines == pytest.approx((1, 1))
    assert found.effective_rank == pytest.approx(1, abs=1e-4)


def test_axes_are_as_far_apart_as_can_be():
    found = spread(CandidateSets(torch.eye(4).expand(3, 4, 4), LAYOUT))
    assert found.cosine == pytest.approx(0)
    assert found.effective_rank == pytest.approx(4)
    assert found.item_cosines == pytest.approx((1, 1, 1, 1))


def test_cosines_by_hand():
    east, north = [1.0, 0.0], [0.0, 1.0]
    items = torch.tensor([[east, east, east, north], [east, east, north, east]])
    found = spread(CandidateSets(items, LAYOUT))
    # of six pairs of positions, three are equal in each item
    assert found.cosine == pytest.approx(0.5)
    assert found.group_cosines == pytest.approx((1, 0))
    assert found.item_cosines == pytest.approx((1, 1, 0, 0))


@settings(max_examples=30)
@given(candidate_sets(), st.integers(1, 5))
def test_the_measures_are_those_of_a_double_loop_however_many_are_looked_at_at_once(sets, at_once):
    if len(sets) < 2:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnostics, "ITEMS_AT_ONCE", at_once)
        found = spread(sets)
    rows = sets.vectors.double()
    positions, items = range(rows.shape[1]), range(len(rows))
    pairs = [
        float(rows[item, one] @ rows[item, other])
        for item in items
        for one in positions
        for other in positions
        if one != other
    ]
    assert found.cosine == pytest.approx(sum(pairs) / len(pairs) if pairs else 1, abs=1e-6)
    for place in positions:
        others = [
            float(rows[one, place] @ rows[other, place])
            for one in items
            for other in items
            if one != other
        ]
        assert found.item_cosines[place] == pytest.approx(sum(others) / len(others), abs=1e-6)
    assert 1 - 1e-6 <= found.effective_rank <= len(positions) + 1e-6


def test_the_effective_rank_is_that_of_the_singular_values():
    vectors = random_candidates(3, LAYOUT, 6).vectors
    squares = torch.linalg.svdvals(vectors.double()).square() / 4
    expected = (-(squares * squares.log()).sum(dim=-1)).exp()
    torch.testing.assert_close(effective_ranks(vectors), expected)


def test_a_single_item_is_refused():
    with pytest.raises(EmptyBatchError, match="give at least two items"):
        spread(random_candidates(1, LAYOUT, 3))

"""The features by hand, and what they do not depend on."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.allocation import invariants
from adaptiveembed.allocation.invariants import EdgePositions, edge_invariants, num_invariants
from tests.allocation.settings import SPACES, inputs_of

SPACE = SPACES["paper"]
TWO_LISTS = torch.tensor([[0.9, 0.5, 0.1], [0.2, 0.2, 0.2]])


def close(found, expected):
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-6)


def test_margins_by_hand():
    close(invariants.margin(TWO_LISTS), [0.4, 0.0])
    close(invariants.margin(torch.tensor([[0.3]])), [0.0])


def test_sorted_scores_are_read_at_some_places():
    close(invariants.sorted_scores(TWO_LISTS.flip(1)), [[0.9, 0.5, 0.1], [0.2, 0.2, 0.2]])
    many = torch.arange(60.0)[None]
    close(invariants.sorted_scores(many), [[59.0, 58.0, 57.0, 55.0, 50.0, 40.0, 10.0]])


def test_entropy_is_that_of_even_odds_or_of_certainty():
    found = invariants.entropy(torch.tensor([[0.2, 0.2, 0.2], [0.9, -0.9, -0.9]]))
    close(found, [math.log(3), 0.0])


def test_overlaps_by_hand():
    one = torch.tensor([[5.0, 4.0, 3.0, 2.0, 1.0]])
    other = torch.tensor([[5.0, 1.0, 4.0, 3.0, 2.0]])
    # Tops of three are {0, 1, 2} and {0, 2, 3}.
    close(invariants.overlaps(one, other), [[1.0, 0.5]])
    assert invariants.jaccard(one, -one, 1).item() == 0


def test_correlation_by_hand():
    one = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    other = torch.tensor([[2.0, 4.0, 6.0], [3.0, 2.0, 1.0], [7.0, 7.0, 7.0]])
    close(invariants.correlation(one, other), [1.0, -1.0, 0.0])


def test_the_fall_of_the_leader_by_hand():
    close(invariants.fall_of_the_leader(TWO_LISTS[:1], torch.tensor([[0.3, 0.8, 0.1]])), [0.5])
    close(invariants.fall_of_the_leader(TWO_LISTS[:1], TWO_LISTS[:1]), [0.0])


def test_disagreement_is_about_the_item_that_leads():
    responses = torch.tensor([[[0.9, 0.0], [0.5, 0.0]]])
    close(invariants.disagreement(responses, responses.mean(dim=1)), [0.2])
    close(invariants.disagreement(responses[:, :1], responses[:, 0]), [0.0])


def test_block_cosines_by_hand():
    vectors = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]])
    edge = EdgePositions([0], [1, 2], [0, 1, 2])
    # 0 with 1 and 2: 0 and 0.6; among 1 and 2: 1, 0.8, 0.8, 1
    close(invariants.block_cosines(vectors, edge), [[0.3, 0.0, 0.6, 1.0, 0.9]])


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("depth", [1, 2, 7, 20])
def test_there_are_as_many_features_as_said(space, depth):
    inputs = inputs_of(space, depth=depth)
    for edge in space.edges:
        place = inputs.states.index(edge.source)
        found = edge_invariants(
            inputs.candidates, inputs.feedback[:, place], EdgePositions.of(edge)
        )
        assert found.shape == (5, num_invariants(depth))
        assert found.isfinite().all()


def test_an_expansions_positions_are_those_before_those_added_and_both():
    edge = EdgePositions.of(SPACE.edges[-1])
    assert edge.source == [0, 1, 4, 5]
    assert edge.added == [2, 3, 6, 7]
    assert edge.target == list(range(8))


@settings(max_examples=20)
@given(st.permutations(range(7)), st.sampled_from(range(5)))
def test_the_order_of_the_items_does_not_matter(order, number):
    inputs, edge = inputs_of(SPACE), SPACE.edges[number]
    feedback = inputs.feedback[:, inputs.states.index(edge.source)]
    positions = EdgePositions.of(edge)
    one = edge_invariants(inputs.candidates, feedback, positions)
    other = edge_invariants(inputs.candidates, feedback[..., order], positions)
    torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)

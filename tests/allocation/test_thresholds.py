"""The chosen threshold is the best there is, and what it promises is what MUA then does."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.mua import marginal_utility_allocation
from adaptiveembed.allocation.thresholds import choose_threshold, threshold_curve
from adaptiveembed.errors import EmptyBatchError, ShapeError
from adaptiveembed.metrics.measures import average_precision
from tests.allocation.settings import SPACES, random_logits
from tests.allocation.test_mua import expansions_of, one_item, probability_of
from tests.reference import mua as literal

PAPER = Actions(SPACES["paper"])
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def world(actions, num_items=6, seed=0, levels=None):
    """Probabilities, a few values of them only where ties are wanted, and ranks."""
    table = random_logits(actions, num_items, seed).softmax(dim=-1)
    if levels:
        table = (table * levels).round() / levels
    shape = (len(actions.space), num_items, 1)
    return table, np.random.default_rng(seed).integers(1, 6, shape)


def outcome(table, ranks, actions, threshold):
    """mAP and mean capacity of a threshold, as MUA gives them."""
    places = marginal_utility_allocation(table, actions, threshold).numpy()
    precision = average_precision(ranks)[places, np.arange(len(places))].mean()
    return precision, np.mean([actions.space.nodes[place].capacity for place in places])


def test_two_items_by_hand():
    # The first gains by 2+0 and loses after it, the second loses at once.
    table = torch.cat([one_item(to_20=0.8, to_22=0.6), one_item(to_11=0.7)])
    ranks = np.array([[4, 9, 1, 2, 2], [1, 3, 9, 9, 9]]).T[:, :, None]
    curve = choose_threshold(table, ranks, PAPER)
    assert curve.thresholds.tolist() == pytest.approx([0.9, 0.75, 0.65, 0.3], abs=1e-6)
    expected = [5 / 8, 1, 2 / 3, 5 / 12]
    assert curve.precision.tolist() == pytest.approx(expected)
    assert curve.capacity.tolist() == pytest.approx([1, 1.5, 2, 3])
    assert curve.threshold == pytest.approx(0.75)


@every_space
@settings(max_examples=12)
@given(st.integers(0, 99), st.sampled_from([None, 5]))
def test_no_threshold_is_better_than_the_chosen_one(space, seed, levels):
    actions = Actions(space)
    table, ranks = world(actions, seed=seed, levels=levels)
    curve = choose_threshold(table, ranks, actions)
    expected = literal.best_threshold(
        [probability_of(item, actions) for item in table],
        expansions_of(space),
        average_precision(ranks).tolist(),
        [node.capacity for node in space.nodes],
    )
    found = outcome(table, ranks, actions, curve.threshold)
    assert found == pytest.approx(expected)


@every_space
@settings(max_examples=12)
@given(st.integers(0, 99), st.sampled_from([None, 5]))
def test_mua_reaches_what_the_curve_says_of_every_threshold(space, seed, levels):
    actions = Actions(space)
    table, ranks = world(actions, seed=seed, levels=levels)
    curve = choose_threshold(table, ranks, actions)
    reached = [outcome(table, ranks, actions, one) for one in curve.thresholds.tolist()]
    np.testing.assert_allclose(np.array(reached).T, [curve.precision, curve.capacity])
    assert (np.diff(curve.thresholds) < 0).all()
    assert (np.diff(curve.capacity) >= 0).all()


def test_a_tie_goes_to_the_smaller_capacity():
    table, _ = world(PAPER)
    curve = choose_threshold(table, np.full((5, 6, 1), 3), PAPER)
    assert curve.best == 0
    assert curve.capacity[curve.best] == 1


def test_probabilities_that_are_neighbours_are_told_apart():
    close = torch.tensor(0.5).nextafter(torch.tensor(1.0))
    table = torch.cat([one_item(to_20=0.5), one_item(to_20=float(close))])
    ranks = np.array([[1, 9, 9, 9, 9], [9, 9, 1, 9, 9]]).T[:, :, None]
    curve = choose_threshold(table, ranks, PAPER)
    assert outcome(table, ranks, PAPER, curve.threshold) == pytest.approx((1.0, 1.5))


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_can_be_drawn_of_any_value(seed):
    table, ranks = world(PAPER, seed=seed)
    curve = threshold_curve(table, -np.log(ranks[..., 0]), PAPER)
    assert curve.precision[0] == pytest.approx(-np.log(ranks[0]).mean())
    assert curve.precision.max() < 0
    assert curve.best == curve.precision.argmax()


def test_tables_that_do_not_fit_are_refused():
    table, ranks = world(PAPER)
    with pytest.raises(ShapeError, match="5 selections and 4 items, needed are 5 and 6"):
        choose_threshold(table, ranks[:, :4], PAPER)
    with pytest.raises(EmptyBatchError, match="no validation item"):
        choose_threshold(table[:0], ranks[:, :0], PAPER)

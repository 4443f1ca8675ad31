"""The items of a step are a function of the seed and the step."""

import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import TrainingError
from adaptiveembed.training.order import Plan, one_ahead, order
from adaptiveembed.training.randomness import mixed, own_randomness
from adaptiveembed.training.settings import LastBatch, TrainingSettings

PLANS = st.builds(
    Plan,
    num_items=st.integers(8, 30),
    batch_size=st.integers(1, 8),
    epochs=st.integers(1, 3),
    last_batch=st.sampled_from(LastBatch),
    seed=st.integers(0, 5),
)


def epoch_of(plan, epoch):
    steps = range(epoch * plan.steps_per_epoch, (epoch + 1) * plan.steps_per_epoch)
    return [plan.items(step).tolist() for step in steps]


@given(PLANS)
def test_an_epoch_sees_no_item_twice_and_leaves_out_less_than_a_batch(plan):
    batches = epoch_of(plan, 0)
    seen = [item for batch in batches for item in batch]
    assert len(set(seen)) == len(seen)
    assert plan.num_items - len(seen) < plan.batch_size
    assert plan.items_until(plan.steps_per_epoch) == len(seen)


@given(PLANS)
def test_dropping_makes_all_batches_equal_and_keeping_leaves_nothing_out(plan):
    sizes = [len(batch) for batch in epoch_of(plan, plan.epochs - 1)]
    if plan.last_batch is LastBatch.DROP:
        assert set(sizes) == {plan.batch_size}
    else:
        assert sum(sizes) == plan.num_items


@given(PLANS, st.integers(0, 100))
def test_items_seen_are_the_sum_of_the_batches(plan, done):
    done = min(done, plan.total_steps)
    assert plan.items_until(done) == sum(len(plan.items(step)) for step in range(done))


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = [tuple(order(50, seed, epoch).tolist()) for seed in (0, 1) for epoch in (0, 1)]
    assert len(set(orders)) == 4
    assert orders[0] == tuple(order(50, 0, 0).tolist())


def test_nothing_drawn_before_changes_an_order():
    order.cache_clear()
    torch.manual_seed(0)
    first = order(20, 3, 1).tolist()
    order.cache_clear()
    torch.manual_seed(99)
    assert order(20, 3, 1).tolist() == first


def test_fewer_items_than_a_batch_are_refused_with_both_numbers():
    settings = TrainingSettings(batch_size=64)
    with pytest.raises(TrainingError, match=r"there are 10 pairs and a batch takes 64.*at most 10"):
        Plan.of(settings, 10, "pairs")


def test_fewer_items_than_a_batch_make_one_batch_if_the_last_one_is_kept():
    plan = Plan.of(TrainingSettings(batch_size=64, last_batch=LastBatch.KEEP), 10, "pairs")
    assert plan.steps_per_epoch == 1
    assert sorted(plan.items(0).tolist()) == list(range(10))


def test_batches_come_in_order_with_the_next_one_made_meanwhile():
    made, ready = [], threading.Event()

    def make(step):
        made.append(step)
        if step == 1:
            ready.set()
        return step * 10

    batches = one_ahead(make, range(4))
    assert next(batches) == 0
    assert ready.wait(timeout=10)
    assert list(batches) == [10, 20, 30]
    assert made == [0, 1, 2, 3]


def test_an_error_in_making_a_batch_is_raised_where_the_batch_is_taken():
    def make(step):
        if step == 1:
            raise TrainingError("no such item")
        return step

    batches = one_ahead(make, range(3))
    assert next(batches) == 0
    with pytest.raises(TrainingError, match="no such item"):
        next(batches)


def test_mixed_numbers_depend_on_every_argument_and_their_order():
    drawn = [mixed(*numbers) for numbers in [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (-1,)]]
    assert len(set(drawn)) == len(drawn)
    assert all(0 <= number < 1 << 63 for number in drawn)


def test_own_randomness_leaves_the_generator_as_it_was():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with own_randomness(torch.device("cpu")):
        torch.manual_seed(77)
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)

"""Masks belong to items and not to batches, and are as random as they should be."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from adaptiveembed.errors import DtypeError, SettingError, ShapeError
from adaptiveembed.representation.dropout import (
    STEPS,
    ItemDropout,
    StateDropout,
    item_dropout,
    item_keys,
    kept,
    side_keys,
    with_item_dropout,
)
from tests.reference import splitmix

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def keys_of(*items, seed=3, step=5):
    return item_keys(seed, step, torch.tensor(items))


def unsigned(keys):
    return [key % (1 << 64) for key in keys.tolist()]


@given(
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**40),
    st.lists(st.integers(0, 2**40), min_size=1, max_size=5),
)
def test_keys_are_those_of_the_twin(seed, step, items):
    expected = [splitmix.item_key(seed, step, item) for item in items]
    assert unsigned(item_keys(seed, step, torch.tensor(items))) == expected


@given(st.integers(0, 9), st.integers(0, 500), st.integers(1, 23), st.integers(0, STEPS - 1))
def test_masks_are_those_of_the_twin(item, stream, count, dropped):
    keys = keys_of(item, item + 1)
    expected = [splitmix.kept(key, stream, count, dropped) for key in unsigned(keys)]
    assert kept(keys, stream, count, dropped).tolist() == expected


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_draws_the_same(device):
    here = kept(keys_of(*range(50)), 3, 100, STEPS // 3)
    there = item_keys(3, 5, torch.arange(50, device=device))
    assert torch.equal(kept(there, 3, 100, STEPS // 3).cpu(), here)


@given(st.permutations(range(12)), st.integers(1, 12))
def test_an_item_has_one_mask_in_whatever_batch_it_is(order, cut):
    dropout = ItemDropout(0.4, stream=2)
    hidden = torch.randn(12, 3, 5, generator=torch.Generator().manual_seed(0))
    keys = keys_of(*range(12))
    with item_dropout(dropout, keys):
        whole = dropout(hidden)
    for part in (order[:cut], order[cut:]):
        if part:
            with item_dropout(dropout, keys[part]):
                assert torch.equal(dropout(hidden[part]), whole[part])


def test_the_share_and_the_mean_are_kept():
    dropout, ones = ItemDropout(0.3, stream=0), torch.ones(400, 7, 64)
    with item_dropout(dropout, item_keys(0, 0, torch.arange(400))):
        found = dropout(ones)
    count = ones.numel()
    share = float((found == 0).float().mean())
    assert abs(share - 0.3) < 4 * (0.3 * 0.7 / count) ** 0.5
    assert abs(float(found.mean()) - 1) < 0.01
    assert found.unique().tolist() == pytest.approx([0, 1 / 0.7], rel=1e-4)


@pytest.mark.parametrize(
    "other",
    [
        lambda: kept(keys_of(*range(1000, 2000)), 0, 64, STEPS // 2),
        lambda: kept(keys_of(*range(1000), step=6), 0, 64, STEPS // 2),
        lambda: kept(keys_of(*range(1000), seed=4), 0, 64, STEPS // 2),
        lambda: kept(keys_of(*range(1000)), 1, 64, STEPS // 2),
        lambda: kept(side_keys(keys_of(*range(1000)), 1), 0, 64, STEPS // 2),
        lambda: kept(keys_of(*range(1000)), 0, 65, STEPS // 2)[:, 1:],
        lambda: kept(keys_of(*range(1000)), 0, 68, STEPS // 2)[:, 4:],
    ],
    ids=["items", "steps", "seeds", "streams", "sides", "lanes", "blocks"],
)
def test_masks_of_different_draws_are_independent(other):
    mine = kept(keys_of(*range(1000)), 0, 64, STEPS // 2)
    agreement = float((mine == other()).float().mean())
    # 64,000 fair coins agree in one half, with a deviation of 0.002
    assert abs(agreement - 0.5) < 0.01


def test_places_of_a_mask_are_uncorrelated():
    masks = kept(keys_of(*range(4000)), 0, 48, STEPS // 5).double().numpy()
    correlations = np.corrcoef(masks.T)[~np.eye(48, dtype=bool)]
    assert np.abs(correlations).max() < 5 / 4000**0.5
    assert abs(correlations.mean()) < 0.001


def test_the_gradient_flows_through_what_is_kept():
    dropout = ItemDropout(0.5, stream=0)
    hidden = torch.ones(4, 6, requires_grad=True)
    with item_dropout(dropout, keys_of(0, 1, 2, 3)):
        found = dropout(hidden)
    found.sum().backward()
    assert torch.equal(hidden.grad, found.detach())


def test_nothing_is_dropped_in_evaluation_or_at_share_0():
    hidden = torch.randn(2, 3)
    assert ItemDropout(0.5, stream=0).eval()(hidden) is hidden
    assert ItemDropout(0.0, stream=0)(hidden) is hidden


# --- States ---------------------------------------------------------------------------------------


def left_out(states, mask, share, *items):
    """What is left of these states, as sets of their first numbers, item by item."""
    dropout = StateDropout(share, stream=0)
    with item_dropout(dropout, keys_of(*items)):
        found, real = dropout(states, mask)
    return [set(row[one, 0].tolist()) for row, one in zip(found, real, strict=True)]


def numbered_states(lengths, columns):
    mask = torch.arange(columns) < torch.tensor(lengths)[:, None]
    return torch.arange(float(mask.numel())).view(*mask.shape, 1).expand(*mask.shape, 3), mask


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(0, 4),
    st.sampled_from([0.1, 0.25, 0.5, 0.9]),
)
def test_the_same_real_states_are_left_whatever_the_padding(lengths, more, share):
    states, mask = numbered_states(lengths, 9)
    items = range(len(lengths))
    found = left_out(states, mask, share, *items)
    for length, row, one, kind in zip(lengths, states, mask, found, strict=True):
        assert kind <= set(row[one, 0].tolist())
        assert len(kind) == max(1, length - int(length * share + 0.5))
    wider = torch.nn.functional.pad(states, (0, 0, 0, more))
    assert left_out(wider, torch.nn.functional.pad(mask, (0, more)), share, *items) == found
    for place in items:
        part = slice(place, place + 1)
        assert left_out(states[part], mask[part], share, place) == found[part]


def test_every_state_is_left_out_as_often_as_every_other():
    states, mask = numbered_states([8] * 2000, 8)
    dropout = StateDropout(0.5, stream=0)
    with item_dropout(dropout, keys_of(*range(2000))):
        found, _ = dropout(states, mask)
    counts = torch.bincount(found[..., 0].long().flatten() % 8)
    assert counts.sum() == 8000
    assert (counts - 1000).abs().max() < 4 * (2000 * 0.25) ** 0.5


def test_states_that_are_left_are_moved_together():
    states, mask = numbered_states([8, 4], 8)
    dropout = StateDropout(0.5, stream=0)
    with item_dropout(dropout, keys_of(0, 1)):
        found, real = dropout(states, mask)
    assert found.shape == (2, 4, 3)
    assert real.tolist() == [[True] * 4, [True, True, False, False]]
    assert dropout.eval()(states, mask)[0] is states


# --- Models ---------------------------------------------------------------------------------------


def test_every_dropout_of_a_model_gets_its_own_stream():
    model = nn.Sequential(nn.Dropout(0.1), nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.2)))
    with_item_dropout(model)
    found = [each for each in model.modules() if isinstance(each, ItemDropout)]
    assert [each.stream for each in found] == [0, 1]
    assert [repr(each) for each in found] == [
        "ItemDropout(share=0.1, stream=0)",
        "ItemDropout(share=0.2, stream=1)",
    ]
    assert not any(isinstance(each, nn.Dropout) for each in model.modules())


def test_keys_are_forgotten_at_the_end_also_after_an_error():
    dropout = ItemDropout(0.5, stream=0)
    with pytest.raises(RuntimeError), item_dropout(dropout, keys_of(0)):
        raise RuntimeError
    assert dropout.keys is None


def test_training_without_keys_is_refused():
    with pytest.raises(SettingError, match=r"dropout of 0\.1 is on and no dropout keys.*\.eval"):
        ItemDropout(0.1, stream=0)(torch.ones(2, 3))


def test_keys_of_another_batch_are_refused():
    dropout = ItemDropout(0.1, stream=0)
    with (
        item_dropout(dropout, keys_of(0, 1, 2)),
        pytest.raises(ShapeError, match="keys of 3 items for a batch of 2; give one key per item"),
    ):
        dropout(torch.ones(2, 3))


def test_what_are_no_keys_is_refused():
    with (
        pytest.raises(DtypeError, match=r"int64 tensor.*make them with item_keys"),
        item_dropout(nn.Identity(), torch.ones(2)),
    ):
        pass
    with pytest.raises(ShapeError, match="items are numbered by an int64 tensor"):
        item_keys(0, 0, torch.ones(2))

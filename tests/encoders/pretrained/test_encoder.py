"""Batches are cut within the budget and put together again in their order."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.encoders.pretrained.encoder import encoded, in_order, padded, passes


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 200))
def test_every_item_is_in_one_pass_and_a_pass_is_within_the_budget(lengths, budget):
    found = list(passes(lengths, budget))
    assert sorted(place for rows in found for place in rows) == list(range(len(lengths)))
    for rows in found:
        assert len(rows) == 1 or len(rows) * max(lengths[place] for place in rows) <= budget


@given(st.integers(1, 20), st.integers(1, 30), st.integers(1, 200))
def test_items_of_one_length_make_as_few_passes_as_the_budget_allows(items, length, budget):
    in_one = max(1, budget // length)
    assert len(list(passes([length] * items, budget))) == -(-items // in_one)


def test_items_of_like_length_pass_together():
    assert list(passes([1, 9, 1, 9, 1, 1], 18)) == [[1, 3], [0, 2, 4, 5]]
    assert list(passes([], 18)) == []


def test_parts_are_put_together_in_order_and_padded_with_zeros():
    generator = torch.Generator().manual_seed(0)
    features, states = torch.rand(3, 2, generator=generator), torch.rand(3, 4, 2)
    lengths = torch.tensor([2, 4, 1])
    mask = torch.arange(4) < lengths[:, None]
    parts = [
        encoded(features[rows], states[rows, :longest], mask[rows, :longest])
        for rows, longest in (([2, 0], 2), ([1], 4))
    ]
    found = in_order(parts, [[2, 0], [1]])
    expected = encoded(features, states, mask)
    for part in ("global_feature", "hidden_states", "mask"):
        assert torch.equal(getattr(found, part), getattr(expected, part))
    assert not found.hidden_states[~mask].any()


def test_what_a_model_gave_becomes_float32_with_features_of_length_one():
    given_feature = torch.tensor([[3.0, 4.0]], dtype=torch.bfloat16)
    states = torch.tensor([[[5.0, 6.0], [float("nan"), 7.0]]], dtype=torch.bfloat16)
    found = encoded(given_feature, states, torch.tensor([[1, 0]]))
    assert found.global_feature.dtype == found.hidden_states.dtype == torch.float32
    torch.testing.assert_close(found.global_feature, torch.tensor([[0.6, 0.8]]))
    assert found.hidden_states.tolist() == [[[5, 6], [0, 0]]]


@pytest.mark.parametrize("rows", [[[1, 2, 3], [4]], [[5]], [[6], [7, 8]]])
def test_rows_of_tokens_are_filled_up_behind_their_ends(rows):
    tokens, mask = padded(rows, filling=9)
    for row, filled, real in zip(rows, tokens, mask, strict=True):
        assert filled[real].tolist() == row
        assert set(filled[~real].tolist()) <= {9}
        assert real.tolist() == sorted(real.tolist(), reverse=True)
    assert tokens.shape[1] == max(map(len, rows))

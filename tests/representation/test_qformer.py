"""The Q-Former reads what is there and nothing else, whatever batch it stands in."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from adaptiveembed.representation.dropout import ItemDropout, item_keys
from adaptiveembed.representation.qformer import QFormer, StandardisedStates, state_normaliser
from adaptiveembed.representation.settings import StateNormalisation
from adaptiveembed.structure.encoded import EncodedMedia
from tests.representation.media import SMALL, encoded_media

WIDTH = 6


def qformer(seed=0, **changes):
    torch.manual_seed(seed)
    return QFormer(replace(SMALL, weight_scale=0.3, **changes), 3, WIDTH)


def padded(encoded, more, filling):
    """The same media with more columns, which hold what nobody may read."""
    items, _, width = encoded.hidden_states.shape
    states = torch.cat([encoded.hidden_states, torch.full((items, more, width), filling)], dim=1)
    mask = torch.cat([encoded.mask, torch.zeros(items, more, dtype=torch.bool)], dim=1)
    return states, mask


@settings(max_examples=30)
@given(st.integers(0, 20), st.integers(1, 7), st.sampled_from([0.0, 1.0, -1e3]))
def test_padding_changes_nothing(seed, more, filling):
    model, encoded = qformer().eval(), encoded_media(5, WIDTH, seed=seed)
    whole = model(encoded.hidden_states, encoded.mask)
    torch.testing.assert_close(model(*padded(encoded, more, filling)), whole, atol=1e-5, rtol=0)


def test_a_batch_equals_its_items_one_by_one():
    model, encoded = qformer().eval(), encoded_media(9, WIDTH)
    whole = model(encoded.hidden_states, encoded.mask)
    for place in range(9):
        item = encoded.read([place])
        alone = model(item.hidden_states, item.mask)
        torch.testing.assert_close(alone, whole[[place]], atol=1e-5, rtol=0)


def test_the_order_of_states_does_not_matter():
    # An encoder says where a state stands in the state itself.
    model, encoded = qformer().eval(), encoded_media(4, WIDTH)
    order = torch.randperm(encoded.mask.shape[1], generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        model(encoded.hidden_states[:, order], encoded.mask[:, order]),
        model(encoded.hidden_states, encoded.mask),
        atol=1e-5,
        rtol=0,
    )


def test_every_real_state_is_read():
    model, encoded = qformer().eval(), encoded_media(4, WIDTH)
    states = encoded.hidden_states.clone().requires_grad_()
    model(states, encoded.mask).square().sum().backward()
    assert torch.equal(states.grad.abs().sum(dim=-1) > 0, encoded.mask)


@pytest.mark.parametrize(("frequency", "layers"), [(1, [0, 1, 2]), (2, [0, 2]), (3, [0])])
def test_the_frequency_says_which_layers_read_the_states(frequency, layers):
    model = qformer(layers=3, cross_attention_frequency=frequency)
    found = [
        place for place, layer in enumerate(model.model.encoder.layer) if layer.has_cross_attention
    ]
    assert found == layers


def test_dropout_is_drawn_per_item_at_every_place_of_the_model():
    model, encoded = qformer(dropout=0.5), encoded_media(6, WIDTH)
    places = [each for each in model.modules() if isinstance(each, ItemDropout)]
    # on the way in, and after each of three blocks of two layers
    assert sorted(each.stream for each in places) == list(range(1, 8))
    assert not any(isinstance(each, nn.Dropout) for each in model.modules())
    keys = item_keys(0, 0, torch.arange(6))
    whole = model(encoded.hidden_states, encoded.mask, keys)
    again = model(encoded.hidden_states, encoded.mask, keys)
    assert torch.equal(whole, again)
    part = model(encoded.hidden_states[4:], encoded.mask[4:], keys[4:])
    torch.testing.assert_close(part, whole[4:], atol=1e-5, rtol=0)
    other = model(encoded.hidden_states, encoded.mask, item_keys(0, 1, torch.arange(6)))
    assert not torch.allclose(other, whole, atol=0.1)


def test_queries_start_at_their_scale_and_apart():
    queries = QFormer(replace(SMALL, width=256, query_scale=1.0), 7, WIDTH).queries.detach()
    assert float(queries.std()) == pytest.approx(1, abs=0.1)
    cosines = torch.corrcoef(queries)[~torch.eye(7, dtype=torch.bool)]
    assert cosines.abs().max() < 0.3


# --- The scale of states --------------------------------------------------------------------------


@given(st.integers(0, 20), st.integers(1, 9))
def test_standardised_states_have_mean_0_and_deviation_1_over_the_real_ones(seed, at_once):
    encoded = encoded_media(20, WIDTH, seed=seed)
    encoded = EncodedMedia(encoded.global_feature, 100 + 7 * encoded.hidden_states, encoded.mask)
    normaliser = StandardisedStates(WIDTH)
    starts = range(0, 20, at_once)
    normaliser.fit(encoded.read(np.arange(s, min(s + at_once, 20))) for s in starts)
    found = normaliser(encoded.hidden_states)[encoded.mask]
    torch.testing.assert_close(found.mean(dim=0), torch.zeros(WIDTH), atol=1e-4, rtol=0)
    torch.testing.assert_close(found.std(dim=0, correction=0), torch.ones(WIDTH), rtol=1e-4, atol=0)


def test_a_feature_that_never_changes_becomes_zero():
    encoded = encoded_media(9, WIDTH)
    encoded.hidden_states[..., 2] = 0.1
    normaliser = StandardisedStates(WIDTH)
    normaliser.fit([encoded])
    assert normaliser(encoded.hidden_states)[..., 2].abs().max() < 1e-6


def test_every_normalisation_keeps_the_shape():
    states = torch.randn(2, 3, WIDTH)
    for kind in StateNormalisation:
        assert state_normaliser(kind, WIDTH)(states).shape == states.shape
    layer = state_normaliser(StateNormalisation.LAYER, WIDTH)(states).detach()
    torch.testing.assert_close(layer.mean(dim=-1), torch.zeros(2, 3), atol=1e-6, rtol=0)

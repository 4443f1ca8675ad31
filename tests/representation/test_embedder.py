"""The embedder gives unit vectors of any features, and is its state and its settings."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError
from adaptiveembed.representation import embedder as embedder_module
from adaptiveembed.representation.dropout import ItemDropout, item_keys
from adaptiveembed.representation.embedder import PairEmbedder, batches_by_length
from adaptiveembed.representation.settings import GlobalPosition, StateNormalisation
from adaptiveembed.structure import Modality
from adaptiveembed.structure.encoded import EncodedMedia
from tests.representation.media import (
    IMAGE,
    SMALL,
    TEXT,
    encoded_media,
    fitted_embedder,
    pair_of_media,
)

MODES = list(GlobalPosition)
KEYS = item_keys(0, 0, torch.arange(30))

every_mode = pytest.mark.parametrize("mode", MODES, ids=str)


def in_mode(mode, **changes):
    """A fitted embedder, of one width on both sides since the frozen mode needs that."""
    return fitted_embedder(replace(SMALL, global_position=mode, **changes), widths=(10, 10))


# --- Candidates -----------------------------------------------------------------------------------


@every_mode
def test_candidates_are_unit_vectors_of_every_position(mode):
    embedder, source, target = in_mode(mode)
    for modality, media in ((TEXT, source), (IMAGE, target)):
        found = embedder(modality, media, KEYS)
        assert found.shape == (30, 4, 8)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.norm(dim=-1), torch.ones(30, 4))


@every_mode
def test_position_0_comes_from_where_the_mode_says(mode):
    embedder, source, _ = in_mode(mode)
    other_states = EncodedMedia(
        source.global_feature, source.hidden_states.flip(0) + 1, source.mask.flip(0)
    )
    one, two = embedder.eval()(TEXT, source), embedder(TEXT, other_states)
    same = [torch.equal(one[:, place], two[:, place]) for place in range(4)]
    assert same == [mode is not GlobalPosition.LEARNED, False, False, False]


def test_other_positions_are_the_normalised_projections_of_the_qformer():
    embedder, source, _ = fitted_embedder()
    embedder.eval()
    states = embedder.normalisers[TEXT](source.hidden_states)
    outputs = embedder.qformers[TEXT](states, source.mask)
    matrix = embedder.projections[TEXT].weight
    found = embedder(TEXT, source)
    for item in range(3):
        for place in range(3):
            projected = matrix @ outputs[item, place]
            torch.testing.assert_close(found[item, place + 1], projected / projected.norm())


def test_frozen_features_of_a_shared_space_keep_their_cosines_when_narrowed():
    embedder, source, target = in_mode(GlobalPosition.FROZEN, dim=9)
    found = embedder.eval()(TEXT, source)[:, 0] @ embedder(IMAGE, target)[:, 0].T
    one, two = (
        torch.nn.functional.normalize(each.global_feature, dim=-1) for each in (source, target)
    )
    assert (found - one @ two.T).abs().max() < 0.2


def test_a_declared_matryoshka_width_cuts_frozen_features_off():
    source, target = pair_of_media(20, (10, 10))
    made = PairEmbedder.fitted(
        replace(SMALL, global_position=GlobalPosition.FROZEN),
        (TEXT, source),
        (IMAGE, target),
        range(20),
        0,
        matryoshka_widths=(4, 8),
    )
    expected = torch.nn.functional.normalize(source.global_feature[:, :8], dim=-1)
    torch.testing.assert_close(made.eval()(TEXT, source)[:, 0], expected)


def test_aligned_features_of_a_pair_are_close():
    embedder, source, target = fitted_embedder(items=60)
    one, two = embedder.eval()(TEXT, source)[:, 0], embedder(IMAGE, target)[:, 0]
    own = (one * two).sum(dim=-1).mean()
    others = (one @ two.T).mean()
    assert own > others + 0.5


def test_autocast_gives_unit_vectors_in_float32():
    embedder, source, _ = fitted_embedder()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = embedder(TEXT, source, KEYS)
    exact = embedder(TEXT, source, KEYS)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded.norm(dim=-1), torch.ones(30, 4))
    assert torch.equal(rounded[:, 0], exact[:, 0])
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, atol=0.1, rtol=0)


def test_an_item_that_says_nothing_still_has_unit_vectors():
    embedder, *_ = in_mode(GlobalPosition.FROZEN)
    silence = EncodedMedia(torch.zeros(1, 10), torch.zeros(1, 2, 10), torch.ones(1, 2) > 0)
    torch.testing.assert_close(embedder.eval()(TEXT, silence).norm(dim=-1), torch.ones(1, 4))


# --- Training -------------------------------------------------------------------------------------


@every_mode
def test_every_trained_parameter_gets_a_gradient_and_fitted_ones_are_none(mode):
    embedder, source, target = in_mode(mode)
    for modality, media in ((TEXT, source), (IMAGE, target)):
        embedder(modality, media, KEYS)[..., 0].sum().backward()
    assert all(each.grad is not None for each in embedder.parameters())
    assert embedder.num_trainable == sum(each.numel() for each in embedder.parameters())
    maps = {"mean", "matrix", "shift", "scale"}
    fitted = {name for name, _ in embedder.named_buffers()}
    assert {name.rpartition(".")[2] for name in fitted} <= maps


def test_masks_are_drawn_per_item_and_differ_between_the_two_sides():
    embedder, source, _ = fitted_embedder(replace(SMALL, dropout=0.5))
    whole = embedder(TEXT, source, KEYS)
    part = embedder(TEXT, source.read([7, 3]), KEYS[[7, 3]])
    torch.testing.assert_close(part, whole[[7, 3]], atol=1e-5, rtol=0)
    seen = []
    for place in embedder.modules():
        if isinstance(place, ItemDropout):
            place.register_forward_hook(lambda module, *_: seen.append(module.keys))
    for modality in (TEXT, IMAGE):
        seen.clear()
        embedder(modality, encoded_media(30, embedder.widths[modality]), KEYS)
        used = torch.stack(seen)
        assert (used == used[0]).all()
        if modality is TEXT:
            of_texts = used[0]
    assert not (of_texts == used[0]).any()


def test_training_with_dropout_needs_keys_and_evaluation_does_not():
    embedder, source, _ = fitted_embedder()
    with pytest.raises(SettingError, match="no dropout keys were given; pass dropout_keys="):
        embedder(TEXT, source)
    embedder.eval()(TEXT, source)
    plain, source, _ = fitted_embedder(replace(SMALL, dropout=0.0, state_dropout=0.0))
    plain(TEXT, source)


def test_both_modalities_may_share_one_qformer():
    shared = replace(SMALL, shared=True)
    embedder, *_ = fitted_embedder(shared, widths=(6, 6))
    assert list(embedder.qformers) == ["shared"]
    apart, *_ = fitted_embedder(SMALL, widths=(6, 6))
    assert embedder.num_trainable < apart.num_trainable
    with pytest.raises(SettingError, match="one Q-Former cannot read features of widths 6 and 5"):
        fitted_embedder(shared, widths=(6, 5))


# --- Making, saving and loading -------------------------------------------------------------------


@every_mode
@pytest.mark.parametrize("states", list(StateNormalisation), ids=str)
def test_a_state_fits_into_an_empty_embedder_of_the_same_settings(mode, states):
    embedder, source, target = in_mode(mode, states=states)
    state = load(save(embedder.state_dict()))
    again = PairEmbedder.empty(embedder.settings, {TEXT: 10, IMAGE: 10})
    again.load_state_dict(state)
    for modality, media in ((TEXT, source), (IMAGE, target)):
        assert torch.equal(
            again.embed(modality, media).vectors, embedder.embed(modality, media).vectors
        )


def test_equal_arguments_give_equal_embedders_and_disturb_no_other_randomness():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, two = (fitted_embedder(seed=1)[0].state_dict() for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(one[name], two[name]) for name in one)
    other = fitted_embedder(seed=2)[0].state_dict()
    assert not torch.equal(one["qformers.text.queries"], other["qformers.text.queries"])


def test_only_the_training_places_are_fitted_on():
    source, target = pair_of_media(40)
    spoiled = EncodedMedia(source.global_feature.clone(), source.hidden_states * 1, source.mask)
    spoiled.global_feature[30:] = 1e6
    spoiled.hidden_states[30:] = 1e6
    one, two = (
        PairEmbedder.fitted(SMALL, (TEXT, each), (IMAGE, target), np.arange(30), 0).state_dict()
        for each in (source, spoiled)
    )
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_validation_pairs_choose_the_regularisation(monkeypatch):
    source, target = pair_of_media(40)
    judged = []
    choose = embedder_module.fitted_maps
    monkeypatch.setattr(
        embedder_module,
        "fitted_maps",
        lambda settings, data: judged.append(data.validation) or choose(settings, data),
    )
    PairEmbedder.fitted(
        SMALL, (TEXT, source), (IMAGE, target), range(30), 0, validation=range(30, 40)
    )
    assert judged == [range(30, 40)]


# --- Embedding many items -------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 9))
def test_embedding_in_batches_equals_one_by_one_in_the_order_of_the_items(items, batch, seed):
    embedder, *_ = fitted_embedder()
    media = encoded_media(items, 6, seed=seed)
    told = []
    found = embedder.embed(TEXT, media, batch_size=batch, progress=lambda *each: told.append(each))
    alone = [embedder.embed(TEXT, media.read([place])).vectors for place in range(items)]
    torch.testing.assert_close(found.vectors, torch.cat(alone), atol=1e-5, rtol=0)
    assert found.layout == embedder.layout
    assert told[-1] == (items, items)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_embedding_leaves_the_mode_and_keeps_no_gradient():
    embedder, source, _ = fitted_embedder()
    found = embedder.embed(TEXT, source)
    assert embedder.training
    assert embedder.qformers[TEXT].training
    assert not found.vectors.requires_grad
    # usable where gradients are taken, unlike a tensor made in inference mode
    (found.vectors * torch.ones(8, requires_grad=True)).sum().backward()


def test_batches_hold_items_of_similar_length():
    media = encoded_media(60, 3, longest=9)
    lengths = media.mask.sum(dim=1)
    batches = list(batches_by_length(media, 15))
    assert sorted(place for places, _ in batches for place in places) == list(range(60))
    for places, encoded in batches:
        assert torch.equal(encoded.global_feature, media.global_feature[places])
        assert encoded.mask.shape[1] == lengths[places].max()
    computed = sum(encoded.mask.numel() for _, encoded in batches)
    assert computed < 0.75 * media.mask.numel()


# --- Bad input ------------------------------------------------------------------------------------


def test_features_of_another_encoder_are_refused():
    embedder, *_ = fitted_embedder()
    with pytest.raises(ShapeError, match=r"text features have width 5 and this .* 6; encode with"):
        embedder.embed(TEXT, encoded_media(2, 5))
    with pytest.raises(SettingError, match="is for text and image, got audio; use the embedder"):
        embedder.embed(Modality.AUDIO, encoded_media(2, 5))


def test_no_item_is_refused():
    class Nothing:
        width = 6

        def __len__(self):
            return 0

        def global_features(self):
            raise AssertionError

        def read(self, places):
            raise AssertionError

    embedder, *_ = fitted_embedder()
    with pytest.raises(EmptyBatchError, match="nothing to embed; give at least one item"):
        embedder.embed(TEXT, Nothing())


def test_one_modality_and_no_work_for_the_qformer_are_refused():
    with pytest.raises(SettingError, match="for two different modalities, got text; give a width"):
        PairEmbedder.empty(SMALL, {TEXT: 3})
    with pytest.raises(SettingError, match="layout 1 and global_position aligned leave no positio"):
        PairEmbedder.empty(replace(SMALL, layout="1"), {TEXT: 3, IMAGE: 3})
    with pytest.raises(SettingError, match="frozen and the features have widths 3 and 4"):
        PairEmbedder.empty(
            replace(SMALL, global_position=GlobalPosition.FROZEN), {TEXT: 3, IMAGE: 4}
        )

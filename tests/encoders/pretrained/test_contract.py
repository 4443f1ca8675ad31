"""Every published encoder keeps the contract, loaded by its public name and without a network."""

import pytest
import torch

from adaptiveembed.data.media import Image, Text
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from tests.contracts import encoder as contract
from tests.encoders.items import BATCHES
from tests.encoders.pretrained.checkpoints import MAKERS, kind_of

MODALITIES = {
    "clip": ("text", "image"),
    "siglip": ("text", "image"),
    "clap": ("text", "audio"),
    "clap-fused": ("text", "audio"),
    "wave": ("text", "audio"),
    "whisper": ("audio",),
    "ast": ("audio",),
    "sentence-transformers": ("text",),
    "sentence-transformers-dense": ("text",),
}
SIDES = [(name, Modality(each)) for name in MODALITIES for each in MODALITIES[name]]


def test_every_checkpoint_of_the_fixtures_is_held_to_the_contract():
    assert set(MODALITIES) == set(MAKERS)


@pytest.mark.parametrize(("name", "modality"), SIDES)
@pytest.mark.parametrize("check", contract.CHECKS)
def test_an_encoder_of_a_checkpoint_keeps_the_contract(check, name, modality, load):
    check(load(name, modality), BATCHES[modality])


@pytest.mark.parametrize("name", MODALITIES)
def test_it_encodes_what_it_says_and_refuses_everything_else(name, load):
    encoder = load(name, Modality(MODALITIES[name][0]))
    assert set(encoder.modalities) == set(MODALITIES[name])
    other = BATCHES[Modality.VIDEO][0]
    batch = BATCHES[Modality(MODALITIES[name][0])]
    contract.check_refuses_other_modalities(encoder, batch, other)
    with pytest.raises(EncoderError, match="not video"):
        load(name, Modality.VIDEO)


def test_both_sides_of_a_pair_share_one_model(checkpoint):
    name = f"clip:{checkpoint('clip')}"
    assert load_encoder(name, Modality.TEXT) is load_encoder(name, Modality.IMAGE)


def test_a_batch_may_mix_modalities(load):
    encoder = load("clip", Modality.TEXT)
    texts, images = BATCHES[Modality.TEXT], BATCHES[Modality.IMAGE]
    mixed = encoder.encode([images[0], texts[0], images[1], texts[1]])
    apart = [encoder.encode(batch).global_feature for batch in (texts, images)]
    expected = torch.stack([apart[1][0], apart[0][0], apart[1][1], apart[0][1]])
    torch.testing.assert_close(mixed.global_feature, expected, rtol=0, atol=1e-5)


def test_states_lie_in_the_space_of_the_global_feature(load):
    """The state that a model pools is its global feature, before it is made a unit vector."""
    for name, modality, place in [
        ("clip", Modality.IMAGE, 0),
        ("clip", Modality.TEXT, -1),
        ("siglip", Modality.TEXT, -1),
        ("clap", Modality.TEXT, 0),
    ]:
        encoded = load(name, modality).encode(BATCHES[modality][:1])
        pooled = torch.nn.functional.normalize(encoded.hidden_states[0, place], dim=0)
        torch.testing.assert_close(pooled, encoded.global_feature[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("budget", [1, 40, 8192])
def test_the_token_budget_changes_no_feature(budget, load):
    for name, modality in [("clip", Modality.TEXT), ("clip", Modality.IMAGE)]:
        batch = BATCHES[modality]
        within = load(name, modality, f",token_budget={budget}").encode(batch)
        together = load(name, modality).encode(batch)
        for part in ("global_feature", "hidden_states", "mask"):
            torch.testing.assert_close(
                getattr(within, part), getattr(together, part), rtol=0, atol=1e-5
            )


def test_bfloat16_computes_otherwise_and_says_nearly_the_same(load):
    batch = BATCHES[Modality.IMAGE]
    exact = load("clip", Modality.IMAGE)
    coarse = load("clip", Modality.IMAGE, ",dtype=bfloat16")
    assert coarse.fingerprint != exact.fingerprint
    cosines = (coarse.encode(batch).global_feature * exact.encode(batch).global_feature).sum(dim=1)
    assert cosines.min() > 0.99
    assert cosines.min() < 1 - 1e-6


def test_no_feature_holds_a_gradient_and_one_can_be_trained_on(load):
    encoded = load("clip", Modality.TEXT).encode([Text("a dog")])
    assert not encoded.global_feature.requires_grad
    weight = torch.ones(16, requires_grad=True)
    (encoded.hidden_states * weight).sum().backward()
    assert weight.grad.any()


def test_fingerprints_are_the_same_in_a_process_without_a_network(checkpoint, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names = {f"{kind_of(name)}:{checkpoint(name)}": modality for name, modality in SIDES}
    contract.check_fingerprints_are_the_same_elsewhere(
        {f"{name} {each}": load_encoder(name, each) for name, each in names.items()}
    )


def test_a_picture_that_would_fill_the_memory_is_refused(load):
    encoder = load("clip", Modality.IMAGE)
    with pytest.raises(EncoderError, match="1000 × 2 pixels is too narrow"):
        encoder.encode([Image(torch.zeros(2, 1000, 3, dtype=torch.uint8).numpy())])

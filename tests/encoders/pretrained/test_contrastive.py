"""CLIP, SigLIP and CLAP say what the official processors and models say."""

import numpy as np
import pytest
import torch
from PIL import Image as Pictures
from torch.nn.functional import normalize

from adaptiveembed.data.media import Audio, Image, Text
from adaptiveembed.encoders.pretrained.sounds import at_rate
from adaptiveembed.structure.direction import Modality
from tests.encoders.items import tone
from tests.encoders.pretrained.items import PICTURES, SHORT_AND_LONG_TEXTS, noise

CLOSE = {"rtol": 0, "atol": 1e-4}

TEXTS = [Text(text) for text in SHORT_AND_LONG_TEXTS]
IMAGES = [Image(pixels) for pixels in PICTURES]
LONGEST = 48_000  # samples that the tiny CLAP hears


@pytest.fixture(scope="module")
def official(checkpoint):
    """The official processor and model of a tiny checkpoint."""
    import transformers

    from tests.encoders.pretrained.checkpoints import quiet

    def loaded(name, model_class):
        with quiet():
            return (
                transformers.AutoProcessor.from_pretrained(checkpoint(name)),
                getattr(transformers, model_class).from_pretrained(checkpoint(name)).eval(),
            )

    return loaded


def pictures():
    return [Pictures.fromarray(pixels) for pixels in PICTURES]


def assert_states(encoded, rows):
    """That the real states of every item are these rows."""
    assert encoded.mask.sum(dim=1).tolist() == [len(row) for row in rows]
    for states, mask, row in zip(encoded.hidden_states, encoded.mask, rows, strict=True):
        torch.testing.assert_close(states[mask], row, **CLOSE)


# CLIP.


@torch.no_grad()
def test_clip_says_of_texts_what_the_official_path_says(load, official):
    processor, model = official("clip", "CLIPModel")
    encoded = load("clip", Modality.TEXT).encode(TEXTS)
    rows = []
    for text, feature in zip(SHORT_AND_LONG_TEXTS, encoded.global_feature, strict=True):
        inputs = processor(
            text=[text], return_tensors="pt", truncation=True, padding=True, max_length=77
        )
        expected = model.get_text_features(**inputs).pooler_output
        torch.testing.assert_close(feature, normalize(expected)[0], **CLOSE)
        states = model.text_model(**inputs).last_hidden_state[0]
        rows.append(states @ model.text_projection.weight.T)
    assert_states(encoded, rows)


@torch.no_grad()
def test_clip_says_of_images_what_the_official_path_says(load, official):
    processor, model = official("clip", "CLIPModel")
    encoded = load("clip", Modality.IMAGE).encode(IMAGES)
    inputs = processor(images=pictures(), return_tensors="pt")
    expected = model.get_image_features(**inputs).pooler_output
    torch.testing.assert_close(encoded.global_feature, normalize(expected), **CLOSE)
    states = model.vision_model(**inputs).last_hidden_state
    states = model.vision_model.post_layernorm(states) @ model.visual_projection.weight.T
    assert_states(encoded, states)


def test_clip_reads_75_tokens_of_a_text_between_its_marks(load):
    encoder = load("clip", Modality.TEXT)
    words = ["dog"] * 300
    short = encoder.encode([Text(" ".join(words[:100]))])
    long = encoder.encode([Text(" ".join([*words, "cat"]))])
    assert short.mask.sum() == 77
    torch.testing.assert_close(short.global_feature, long.global_feature)
    other = encoder.encode([Text(" ".join(["cat", *words]))])
    assert not torch.allclose(other.global_feature, long.global_feature)


# SigLIP.


@torch.no_grad()
def test_siglip_says_of_texts_what_the_official_path_says(load, official):
    processor, model = official("siglip", "SiglipModel")
    encoded = load("siglip", Modality.TEXT).encode(TEXTS)
    inputs = processor(
        text=list(SHORT_AND_LONG_TEXTS),
        padding="max_length",
        max_length=64,
        truncation=True,
        return_tensors="pt",
    )
    ids = inputs["input_ids"]
    assert ids.shape == (len(TEXTS), 64)
    expected = model.get_text_features(input_ids=ids).pooler_output
    torch.testing.assert_close(encoded.global_feature, normalize(expected), **CLOSE)
    states = model.text_model(input_ids=ids).last_hidden_state
    assert_states(encoded, states @ model.text_model.head.weight.T + model.text_model.head.bias)


@torch.no_grad()
def test_siglip_says_of_images_what_the_official_path_says(load, official):
    processor, model = official("siglip", "SiglipModel")
    encoded = load("siglip", Modality.IMAGE).encode(IMAGES)
    inputs = processor(images=pictures(), return_tensors="pt")
    expected = model.get_image_features(**inputs).pooler_output
    torch.testing.assert_close(encoded.global_feature, normalize(expected), **CLOSE)
    assert_states(encoded, model.vision_model(**inputs).last_hidden_state)


# CLAP.


@torch.no_grad()
def clap_by_hand(processor, model, sounds):
    """Features and states of each sound, given alone to the official extractor and model."""
    features, states = [], []
    for sound in sounds:
        inputs = processor(audio=sound.samples, sampling_rate=sound.rate, return_tensors="pt")
        output = model.audio_model(inputs["input_features"], is_longer=inputs["is_longer"])
        features.append(normalize(model.audio_projection(output.pooler_output))[0])
        cells = output.last_hidden_state[0]
        rows = [
            cells[:, band, time] for band in range(cells.shape[1]) for time in range(cells.shape[2])
        ]
        states.append(model.audio_projection(torch.stack(rows)))
    return torch.stack(features), states


@pytest.mark.parametrize("name", ["clap", "clap-fused"])
def test_clap_says_of_short_sounds_what_the_official_path_says_of_each(name, load, official):
    processor, model = official(name, "ClapModel")
    lengths = (1.0, 0.3, 0.6, 0.99, 1e-4)
    sounds = [noise(seconds, 48_000, seed) for seed, seconds in enumerate(lengths)]
    encoded = load(name, Modality.AUDIO).encode(sounds)
    features, states = clap_by_hand(processor, model, sounds)
    torch.testing.assert_close(encoded.global_feature, features, **CLOSE)
    assert_states(encoded, states)


@pytest.mark.parametrize("padding", ["repeatpad", "repeat", "pad"])
def test_clap_fills_up_short_sounds_as_its_extractor_is_told(padding, official):
    from adaptiveembed.encoders.pretrained.sounds import clap_features

    extractor = official("clap", "ClapModel")[0].feature_extractor
    extractor.padding = padding
    for seconds in (0.3, 0.6, 1.0):
        samples = noise(seconds, 48_000).samples
        expected = extractor(samples, sampling_rate=48_000)["input_features"][0]
        np.testing.assert_allclose(clap_features(samples, extractor), expected, atol=1e-4)


def test_clap_hears_the_middle_of_a_long_sound(load, official, monkeypatch):
    processor, model = official("clap", "ClapModel")
    sounds = [noise(2.5, 48_000), noise(1.001, 48_000, seed=1)]
    encoded = load("clap", Modality.AUDIO).encode(sounds)
    monkeypatch.setattr(np.random, "randint", lambda low, high: (low + high - 1) // 2)
    features, states = clap_by_hand(processor, model, sounds)
    torch.testing.assert_close(encoded.global_feature, features, **CLOSE)
    assert_states(encoded, states)
    middle = [
        Audio(sound.samples[(len(sound.samples) - LONGEST) // 2 :][:LONGEST], 48_000)
        for sound in sounds
    ]
    again = load("clap", Modality.AUDIO).encode(middle)
    torch.testing.assert_close(again.global_feature, encoded.global_feature)


def test_a_fused_clap_hears_the_whole_and_the_middle_place_of_each_third(
    load, official, monkeypatch
):
    processor, model = official("clap-fused", "ClapModel")
    # the last two have one and two places more than thirds need, or fewer
    sounds = [noise(seconds, 48_000, seed) for seed, seconds in enumerate((2.5, 1.015, 1.025, 1.3))]
    encoded = load("clap-fused", Modality.AUDIO).encode(sounds)
    monkeypatch.setattr(np.random, "choice", lambda places: places[len(places) // 2])
    features, states = clap_by_hand(processor, model, sounds)
    torch.testing.assert_close(encoded.global_feature, features, **CLOSE)
    assert_states(encoded, states)


@pytest.mark.parametrize("name", ["clap", "clap-fused"])
def test_clap_neither_follows_nor_moves_the_generator_that_numpy_shares(name, load):
    encoder = load(name, Modality.AUDIO)
    batch = [noise(2.5, 48_000), noise(0.5, 48_000)]
    found = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002 - it is this generator that must not matter
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        found.append(encoder.encode(batch).global_feature)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert torch.equal(*found)


@torch.no_grad()
def test_clap_says_of_texts_what_the_official_path_says(load, official):
    processor, model = official("clap", "ClapModel")
    encoded = load("clap", Modality.TEXT).encode(TEXTS)
    inputs = processor(
        text=list(SHORT_AND_LONG_TEXTS),
        padding=True,
        truncation=True,
        max_length=64,
        return_tensors="pt",
    )
    expected = model.get_text_features(**inputs).pooler_output
    torch.testing.assert_close(encoded.global_feature, expected, **CLOSE)
    states = model.text_model(**inputs).last_hidden_state
    dense = model.text_model.pooler.dense
    states = model.text_projection(torch.tanh(states @ dense.weight.T + dense.bias))
    masks = inputs["attention_mask"].bool()
    assert_states(encoded, [row[mask] for row, mask in zip(states, masks, strict=True)])


# Sounds at another rate.


@pytest.mark.parametrize(("rate", "wanted"), [(8000, 48_000), (44_100, 48_000), (48_000, 16_000)])
def test_a_tone_at_another_rate_is_the_same_tone(rate, wanted):
    found = at_rate(tone(440, seconds=0.5, rate=rate), wanted)
    expected = tone(440, seconds=0.5, rate=wanted).samples
    assert len(found) == len(expected)
    inside = slice(wanted // 50, -wanted // 50)
    np.testing.assert_allclose(found[inside], expected[inside], atol=5e-3)


@pytest.mark.parametrize("samples", [1, 2, 5, 4799, 48_001])
@pytest.mark.parametrize(("rate", "wanted"), [(48_000, 16_000), (16_000, 48_000), (11_025, 16_000)])
def test_a_sound_at_another_rate_lasts_as_long(samples, rate, wanted):
    found = at_rate(Audio(np.ones(samples, np.float32), rate), wanted)
    assert len(found) == max(1, round(samples * wanted / rate))
    assert found.dtype == np.float32


def test_a_sound_at_the_wanted_rate_stays_as_it_is():
    sound = noise(0.1, 16_000)
    assert at_rate(sound, 16_000) is sound.samples

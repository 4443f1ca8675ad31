"""Whisper's encoder and AST say what the official extractors and models say."""

import pytest
import torch
from torch.nn.functional import normalize

from adaptiveembed.data.media import Audio
from adaptiveembed.structure.direction import Modality
from tests.encoders.pretrained.checkpoints import quiet
from tests.encoders.pretrained.items import noise

CLOSE = {"rtol": 0, "atol": 1e-4}
RATE = 16_000
SOUNDS = [noise(seconds, RATE, seed) for seed, seconds in enumerate((0.5, 2.0, 1e-4, 5.0, 0.333))]


@pytest.fixture(scope="module")
def official(checkpoint):
    import transformers

    def loaded(name, model_class):
        with quiet():
            return (
                transformers.AutoFeatureExtractor.from_pretrained(checkpoint(name)),
                getattr(transformers, model_class).from_pretrained(checkpoint(name)).eval(),
            )

    return loaded


@torch.no_grad()
def test_whisper_says_what_the_official_encoder_says_where_it_hears_something(load, official):
    extractor, model = official("whisper", "WhisperModel")
    encoded = load("whisper", Modality.AUDIO).encode(SOUNDS)
    for place, sound in enumerate(SOUNDS):
        inputs = extractor(sound.samples, sampling_rate=RATE, return_tensors="pt")
        states = model.encoder(inputs["input_features"]).last_hidden_state[0]
        # one state for every 20 ms that begins within the sound, of at most 2 s
        heard = [row for time, row in enumerate(states) if time * 320 < len(sound.samples)]
        expected = torch.stack(heard)
        torch.testing.assert_close(encoded.hidden_states[place][encoded.mask[place]], expected)
        mean = sum(heard) / len(heard)
        torch.testing.assert_close(encoded.global_feature[place], normalize(mean, dim=0), **CLOSE)
    assert encoded.mask.sum(dim=1).tolist() == [25, 100, 1, 100, 17]


def test_whisper_hears_the_first_seconds_of_a_long_sound(load):
    encoder = load("whisper", Modality.AUDIO)
    long = noise(5.0, RATE)
    first = encoder.encode([Audio(long.samples[: 2 * RATE], RATE)])
    torch.testing.assert_close(encoder.encode([long]).global_feature, first.global_feature)


@torch.no_grad()
def test_ast_says_what_the_official_classifier_sees_before_it_decides(load, official):
    extractor, model = official("ast", "ASTForAudioClassification")
    sounds = [one for one in SOUNDS if len(one.samples) >= 400]
    encoded = load("ast", Modality.AUDIO).encode(sounds)
    inputs = extractor([one.samples for one in sounds], sampling_rate=RATE, return_tensors="pt")
    output = model.audio_spectrogram_transformer(**inputs)
    tokens = output.last_hidden_state
    torch.testing.assert_close(encoded.hidden_states, tokens, **CLOSE)
    pooled = (tokens[:, 0] + tokens[:, 1]) / 2
    torch.testing.assert_close(encoded.global_feature, normalize(pooled), **CLOSE)
    assert encoded.mask.all()


def test_ast_hears_a_sound_shorter_than_its_window_with_silence_behind(load):
    encoder = load("ast", Modality.AUDIO)
    short = noise(0.01, RATE)
    filled = Audio(torch.cat([torch.tensor(short.samples), torch.zeros(240)]).numpy(), RATE)
    torch.testing.assert_close(
        encoder.encode([short]).global_feature, encoder.encode([filled]).global_feature
    )

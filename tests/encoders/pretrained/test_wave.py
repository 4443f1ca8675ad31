"""WAVE says what its parts say, put together by hand for one item at a time."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import gelu, normalize, pad

from adaptiveembed.data.media import Audio, Text
from adaptiveembed.encoders.pretrained.beats import Beats, beats_sizes, beats_tensors, spectrum
from adaptiveembed.encoders.pretrained.checkpoint import stored_tensors
from adaptiveembed.encoders.pretrained.settings import PretrainedSettings
from adaptiveembed.encoders.pretrained.wave import part_of
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from tests.encoders.pretrained.checkpoints import quiet
from tests.encoders.pretrained.items import SHORT_AND_LONG_TEXTS, noise
from tests.encoders.pretrained.wave_checkpoint import HEARD, wave_tensors

CLOSE = {"rtol": 0, "atol": 1e-4}
RATE = 16_000
SOUNDS = [noise(seconds, RATE, seed) for seed, seconds in enumerate((1.0, 2.37, 0.4, 4.0, 3.001))]


@pytest.fixture(scope="module")
def official(checkpoint):
    """The stock thinker, tokenizer and extractor of transformers."""
    import transformers

    folder = checkpoint("wave")
    with quiet():
        return (
            transformers.Qwen2_5OmniThinkerForConditionalGeneration.from_pretrained(folder).eval(),
            transformers.AutoTokenizer.from_pretrained(folder),
            transformers.WhisperFeatureExtractor.from_pretrained(folder),
        )


def heard_by_beats(samples, states):
    tensors = wave_tensors()
    named = beats_tensors(part_of(tensors, "beats."))
    named = {name: one for name, one in named.items() if not name.startswith("predictor.")}
    beats = Beats(beats_sizes(named)).eval()
    beats.load_state_dict(named)
    found = beats(spectrum(samples)[None])[0]
    found = pad(found, (0, 0, 0, max(0, 2 * states - len(found))))
    means = torch.stack([(found[2 * at] + found[2 * at + 1]) / 2 for at in range(states)])
    normed = torch.nn.functional.layer_norm(
        means, means.shape[1:], tensors["beats_ln.weight"], tensors["beats_ln.bias"]
    )
    inner = gelu(normed @ tensors["beats_proj.0.weight"].T + tensors["beats_proj.0.bias"])
    return inner @ tensors["beats_proj.2.weight"].T + tensors["beats_proj.2.bias"]


def sound_by_hand(thinker, words, extractor, samples):
    """The feature and the states of one sound, filled up to the longest as published code does."""
    samples = np.pad(samples, (0, max(0, RATE - len(samples))))
    inputs = extractor(
        samples,
        sampling_rate=RATE,
        padding="max_length",
        return_attention_mask=True,
        return_tensors="pt",
    )
    tower = thinker.get_audio_features(inputs["input_features"], inputs["attention_mask"])
    tower = tower.last_hidden_state
    beats = heard_by_beats(samples, len(tower))
    heard = [row for both in zip(tower, beats, strict=True) for row in both]
    prompt = f"<|audio_bos|>{HEARD * len(heard)}<|audio_eos|>Please describe the audio.<|im_end|>"
    tokens = words(prompt, return_tensors="pt")["input_ids"]
    embedded = thinker.get_input_embeddings()(tokens)[0]
    rows = iter(heard)
    hearing = words.convert_tokens_to_ids(HEARD)
    rows = [
        next(rows) if token == hearing else row
        for token, row in zip(tokens[0], embedded, strict=True)
    ]
    output = thinker.model(inputs_embeds=torch.stack(rows)[None], output_hidden_states=True)
    last = torch.cat([states[0, -1] for states in output.hidden_states[1:]])
    head = wave_tensors()
    inner = gelu(head["classify_linear.0.weight"] @ last + head["classify_linear.0.bias"])
    feature = head["classify_linear.2.weight"] @ inner + head["classify_linear.2.bias"]
    return normalize(feature, dim=0), output.last_hidden_state[0]


@torch.no_grad()
def test_a_sound_is_heard_twice_and_pooled_over_all_layers(load, official):
    encoded = load("wave", Modality.AUDIO).encode(SOUNDS)
    for place, sound in enumerate(SOUNDS):
        feature, states = sound_by_hand(*official, sound.samples)
        torch.testing.assert_close(encoded.global_feature[place], feature, **CLOSE)
        found = encoded.hidden_states[place][encoded.mask[place]]
        torch.testing.assert_close(found, states, **CLOSE)


@torch.no_grad()
def test_a_text_is_its_last_token_without_template_and_head(load, official):
    thinker, words, _ = official
    encoded = load("wave", Modality.TEXT).encode([Text(text) for text in SHORT_AND_LONG_TEXTS])
    for place, text in enumerate(SHORT_AND_LONG_TEXTS):
        tokens = words(f"{text}<|im_end|>", return_tensors="pt")["input_ids"]
        inputs = thinker.get_input_embeddings()(tokens)
        states = thinker.model(inputs_embeds=inputs).last_hidden_state[0]
        torch.testing.assert_close(encoded.global_feature[place], normalize(states[-1], dim=0))
        found = encoded.hidden_states[place][encoded.mask[place]]
        torch.testing.assert_close(found, states, **CLOSE)


def test_a_long_text_is_cut_and_keeps_its_end(load):
    encoder = load("wave", Modality.TEXT)
    long = encoder.encode([Text("dog " * 2000)])
    assert long.mask.sum() == 512
    other = encoder.encode([Text("dog " * 2000 + "cat")])
    torch.testing.assert_close(long.global_feature, other.global_feature)


def test_the_first_seconds_of_a_long_sound_are_heard(load):
    encoder = load("wave", Modality.AUDIO)
    long = noise(6.0, RATE)
    first = Audio(long.samples[: 4 * RATE], RATE)
    torch.testing.assert_close(
        encoder.encode([long]).global_feature, encoder.encode([first]).global_feature
    )


@pytest.fixture
def copied(checkpoint, tmp_path):
    return shutil.copytree(checkpoint("wave"), tmp_path / "copy")


def same_features(load, folder):
    batch = SOUNDS[:1]
    expected = load("wave", Modality.AUDIO).encode(batch).global_feature
    found = load_encoder(f"wave:{folder}", Modality.AUDIO).encode(batch).global_feature
    torch.testing.assert_close(found, expected)


def test_weights_in_a_file_of_pytorch_are_read(load, copied):
    weights = copied / "model.safetensors"
    torch.save(load_file(weights), copied / "pytorch_model.bin")
    weights.unlink()
    same_features(load, copied)


def test_weights_in_several_files_are_read(load, copied):
    weights = copied / "model.safetensors"
    tensors = load_file(weights)
    names = sorted(tensors)
    places = {}
    for part, own in enumerate((names[::2], names[1::2])):
        file = f"model-{part + 1:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in own}, copied / file, metadata={"format": "pt"})
        places |= dict.fromkeys(own, file)
    weights.unlink()
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (copied / "model.safetensors.index.json").write_text(json.dumps(index))
    same_features(load, copied)


class Trap:
    """What would run when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("code of a checkpoint has run",))


def test_a_file_of_pytorch_that_would_run_code_is_refused(copied):
    weights = copied / "model.safetensors"
    torch.save({**load_file(weights), "beats.trap": Trap()}, copied / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(EncoderError, match="cannot be loaded as Qwen2_5OmniThinker"):
        load_encoder(f"wave:{copied}", Modality.AUDIO)
    with pytest.raises(EncoderError, match=r"pytorch_model\.bin cannot be read"):
        stored_tensors(PretrainedSettings(str(copied)), ("beats.",))


def test_a_table_that_is_stored_once_is_enough(load, copied):
    weights = copied / "model.safetensors"
    tensors = load_file(weights)
    for layer in (1, 2):
        del tensors[f"beats.encoder.layers.{layer}.self_attn.relative_attention_bias.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    same_features(load, copied)

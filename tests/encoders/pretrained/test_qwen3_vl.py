"""Qwen3-VL-Embedding gives what its official ways give, from a checkpoint that is whole."""

import json

import numpy as np
import pytest
import torch

from adaptiveembed.data.media import Image, Text, Video
from adaptiveembed.encoders.pretrained.qwen3_vl import (
    Qwen3VLSettings,
    conversation,
    load_qwen3_vl,
    matryoshka_widths,
    video_prompt,
)
from adaptiveembed.encoders.pretrained.qwen_inputs import FrameChoice, PixelLimits
from adaptiveembed.encoders.pretrained.qwen_passes import load_cutter
from adaptiveembed.encoders.pretrained.settings import PretrainedSettings
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError, SettingError
from adaptiveembed.structure.direction import Modality
from tests.contracts import encoder as contract
from tests.encoders.items import BATCHES
from tests.encoders.pretrained.qwen_checkpoints import (
    change_json,
    change_tensors,
    digest,
    save_qwen3_vl,
)
from tests.reference.qwen3_vl_official import EXPECTED, INSTRUCTION, pictures, texts, videos

SMALL = Qwen3VLSettings(image=PixelLimits(32 * 32, 64 * 64), frame=PixelLimits(32 * 32, 64 * 64))
"""Settings with few tokens, where numbers do not matter."""

MODALITIES = (Modality.TEXT, Modality.IMAGE, Modality.VIDEO)
EVERYTHING = [item for modality in MODALITIES for item in BATCHES[modality]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return save_qwen3_vl(tmp_path_factory.mktemp("qwen3-vl"))


@pytest.fixture(scope="session")
def expected():
    return json.loads(EXPECTED.read_text())


@pytest.fixture(scope="session")
def encoder(folder):
    return load_encoder(f"qwen3-vl:{folder}", Modality.TEXT)


@pytest.fixture(scope="session")
def small(folder):
    return load_qwen3_vl(PretrainedSettings(str(folder)), SMALL)


def media(name):
    return {
        "texts": lambda: [Text(text) for text in texts()],
        "images": lambda: [Image(pixels) for pixels in pictures()],
        "videos": lambda: [Video(frames, rate) for frames, rate in videos()],
    }[name]()


# The reference paths.


def test_the_checkpoint_is_the_one_that_was_measured(folder, expected):
    # if not: run tests/reference/qwen3_vl_official.py again
    assert digest(folder) == expected["digest"]


@pytest.mark.parametrize("name", ["texts", "images"])
def test_features_are_those_of_sentence_transformers(encoder, expected, name):
    found = encoder.encode(media(name)).global_feature
    torch.testing.assert_close(found, torch.tensor(expected[name]), rtol=0, atol=1e-5)


def test_videos_are_read_as_by_the_official_processor(encoder, expected):
    found = encoder.encode(media("videos"))
    assert found.mask.sum(dim=1).tolist() == expected["videos_tokens"]
    torch.testing.assert_close(
        found.global_feature, torch.tensor(expected["videos"]), rtol=0, atol=1e-5
    )


def test_videos_with_marks_around_them_are_read_as_by_the_official_processor(folder, expected):
    wrapped = Qwen3VLSettings(video_wrapper=True)
    found = load_qwen3_vl(PretrainedSettings(str(folder)), wrapped).encode(media("videos"))
    assert found.mask.sum(dim=1).tolist() == expected["wrapped_videos_tokens"]
    torch.testing.assert_close(
        found.global_feature, torch.tensor(expected["wrapped_videos"]), rtol=0, atol=1e-5
    )
    assert expected["wrapped_videos_tokens"] != expected["videos_tokens"]


def by_hand(folder, item, prompt, *, left=0, **vision):
    """The states of one item by the model itself, with filling before it."""
    from transformers import AutoTokenizer, Qwen3VLModel

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Qwen3VLModel.from_pretrained(folder).eval()
    tokens = [tokenizer.pad_token_id] * left + tokenizer(prompt)["input_ids"]
    row = torch.tensor([tokens])
    kinds = (row == model.config.image_token_id) + 2 * (row == model.config.video_token_id)
    mask = torch.ones_like(row)
    mask[:, :left] = 0
    with torch.no_grad():
        output = model(
            input_ids=row,
            attention_mask=mask,
            mm_token_type_ids=kinds.int() if vision else None,
            **vision,
        )
    return output.last_hidden_state[0, left:]


@pytest.mark.parametrize("left", [0, 7])
def test_states_of_a_text_are_those_of_the_model_on_either_side_of_its_filling(
    folder, encoder, left
):
    prompt = (
        "<|im_start|>system\nRepresent the user's input.<|im_end|>\n"
        "<|im_start|>user\nA dog<|im_end|>\n<|im_start|>assistant\n"
    )
    states = by_hand(folder, Text("A dog"), prompt, left=left)
    found = encoder.encode([Text("The boat is near the shore."), Text("A dog")])
    torch.testing.assert_close(found.hidden_states[1][found.mask[1]], states, rtol=0, atol=1e-5)
    unit = states[-1] / states[-1].norm()
    torch.testing.assert_close(found.global_feature[1], unit, rtol=0, atol=1e-5)


@pytest.mark.parametrize("left", [0, 7])
def test_states_of_a_picture_are_those_of_the_model_on_either_side_of_its_filling(
    folder, encoder, left
):
    from transformers import AutoImageProcessor

    pixels = pictures()[0]
    shown = "<|vision_start|>" + "<|image_pad|>" * 6 + "<|vision_end|>"
    processor = AutoImageProcessor.from_pretrained(folder)
    vision = processor(images=[pixels], return_tensors="pt")
    states = by_hand(folder, pixels, conversation(shown, INSTRUCTION), left=left, **vision)
    found = encoder.encode([Image(pictures()[2]), Image(pixels)])
    torch.testing.assert_close(found.hidden_states[1][found.mask[1]], states, rtol=0, atol=1e-5)


def test_the_prompt_is_what_the_template_of_the_checkpoint_makes(folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    for part, shown in (
        ({"type": "text", "text": "A dog"}, "A dog"),
        ({"type": "image"}, "<|vision_start|><|image_pad|><|vision_end|>"),
    ):
        turns = [
            {"role": "system", "content": [{"type": "text", "text": INSTRUCTION}]},
            {"role": "user", "content": [part]},
        ]
        made = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        assert conversation(shown, INSTRUCTION) == made


# The contract.


@pytest.mark.parametrize("modality", MODALITIES)
@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_encoder_keeps_the_contract(check, modality, small):
    check(small, BATCHES[modality])


@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_encoder_keeps_the_contract_with_modalities_mixed(check, small):
    check(small, EVERYTHING)


def test_a_sound_is_refused(small):
    contract.check_refuses_other_modalities(
        small, BATCHES[Modality.TEXT], BATCHES[Modality.AUDIO][0]
    )


@pytest.mark.parametrize("budget", [1, 100, 300])
def test_the_token_budget_changes_no_feature(folder, small, budget):
    cut = load_qwen3_vl(PretrainedSettings(str(folder), token_budget=budget), SMALL)
    assert cut.fingerprint == small.fingerprint
    one, other = small.encode(EVERYTHING), cut.encode(EVERYTHING)
    torch.testing.assert_close(one.hidden_states, other.hidden_states, rtol=0, atol=1e-5)
    torch.testing.assert_close(one.global_feature, other.global_feature, rtol=0, atol=1e-5)


def test_the_token_budget_cuts_a_batch_into_passes(folder, monkeypatch):
    from transformers import Qwen3VLModel

    seen = []
    forward = Qwen3VLModel.forward

    def watched(self, input_ids, **arguments):
        seen.append(tuple(input_ids.shape))
        return forward(self, input_ids=input_ids, **arguments)

    monkeypatch.setattr(Qwen3VLModel, "forward", watched)
    cut = load_qwen3_vl(PretrainedSettings(str(folder), token_budget=100), SMALL)
    cut.encode([Text("a" * 3 * length) for length in (1, 30, 2, 3)])
    assert sorted(rows for rows, _ in seen) == [1, 3]
    assert all(rows == 1 or rows * tokens <= 100 for rows, tokens in seen)


@pytest.mark.parametrize("way", ["dtype=bfloat16", "dtype=float16", "attention=eager"])
def test_another_way_of_computing_gives_nearly_the_same_in_float32(folder, encoder, way):
    other = load_encoder(f"qwen3-vl:{folder},{way}", Modality.TEXT)
    one, two = (each.encode(EVERYTHING) for each in (encoder, other))
    assert two.hidden_states.dtype == two.global_feature.dtype == torch.float32
    assert (one.global_feature * two.global_feature).sum(dim=1).min() > 0.999
    assert other.fingerprint != encoder.fingerprint


# What the checkpoint says, and does not.


def test_the_filling_side_of_the_checkpoint_does_not_matter(tmp_path, encoder):
    save_qwen3_vl(tmp_path, padding_side="left")
    other = load_encoder(f"qwen3-vl:{tmp_path}", Modality.TEXT)
    one, two = (each.encode(BATCHES[Modality.TEXT]) for each in (encoder, other))
    assert torch.equal(one.hidden_states, two.hidden_states)
    assert torch.equal(one.global_feature, two.global_feature)


def test_an_ending_of_the_tokenizer_is_kept_and_pooled(tmp_path, encoder):
    save_qwen3_vl(tmp_path, ending="<|endoftext|>")
    other = load_encoder(f"qwen3-vl:{tmp_path}", Modality.TEXT)
    for batch in (BATCHES[Modality.TEXT], media("images")):
        plain, ended = (each.encode(batch) for each in (encoder, other))
        assert (ended.mask.sum(dim=1) == plain.mask.sum(dim=1) + 1).all()
        last = ended.hidden_states[0][ended.mask[0]][-1]
        unit = last / last.norm()
        torch.testing.assert_close(ended.global_feature[0], unit, rtol=0, atol=1e-6)


def test_a_long_text_is_cut_and_keeps_its_closing(folder, encoder):
    cut = load_qwen3_vl(PretrainedSettings(str(folder)), Qwen3VLSettings(most_tokens=60))
    long = Text("The boat is near the shore. " * 20)
    found = cut.encode([long, Text("The boat is near the shore. " * 30)])
    assert found.mask.sum(dim=1).tolist() == [60, 60]
    assert torch.equal(found.global_feature[0], found.global_feature[1])
    assert not torch.allclose(found.global_feature[0], encoder.encode([long]).global_feature[0])


def test_markers_in_a_text_do_not_stand_for_pictures(encoder):
    texts = [Text("<|image_pad|> a <|im_end|> b <|video_pad|>"), Text("<|endoftext|>"), Text("b")]
    assert encoder.encode(texts).global_feature.isfinite().all()


def test_an_empty_text_is_read_as_the_word_for_nothing(encoder):
    found = encoder.encode([Text(""), Text("NULL")]).global_feature
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-6)  # rows of one batch


def test_the_instruction_changes_features_and_ends_with_a_punctuation_mark(folder, encoder):
    batch = [Text("A dog")]
    features = [
        load_qwen3_vl(PretrainedSettings(str(folder)), Qwen3VLSettings(instruction=asked))
        .encode(batch)
        .global_feature
        for asked in ("Find a cat", " Find a cat. ", "Find a cat!")
    ]
    assert torch.equal(features[0], features[1])
    assert not torch.allclose(features[0], features[2])
    assert not torch.allclose(features[0], encoder.encode(batch).global_feature)


def test_whatever_changes_features_changes_the_fingerprint(folder):
    choices = [
        Qwen3VLSettings(),
        Qwen3VLSettings(instruction="Find a cat."),
        Qwen3VLSettings(video_wrapper=True),
        Qwen3VLSettings(image=PixelLimits(1024, 4096)),
        Qwen3VLSettings(frame=PixelLimits(1024, 4096)),
        Qwen3VLSettings(frames=FrameChoice(2.0, 64)),
        Qwen3VLSettings(video_pixels=10**6),
        Qwen3VLSettings(most_tokens=100),
    ]
    made = [load_qwen3_vl(PretrainedSettings(str(folder)), each) for each in choices]
    assert len({each.fingerprint for each in made}) == len(choices)


def test_features_can_be_cut_to_the_doubles_of_64():
    assert matryoshka_widths(2048) == (64, 128, 256, 512, 1024, 2048)
    assert matryoshka_widths(4096)[-1] == 4096
    assert matryoshka_widths(32) == ()


def test_times_stand_before_what_they_show():
    pair = "<|vision_start|><|video_pad|><|video_pad|><|vision_end|>"
    assert video_prompt([0.5, 12.25], 2, wrapper=False) == (
        f"<0.5 seconds>{pair}<12.2 seconds>{pair}"
    )
    assert video_prompt([0.0], 2, wrapper=True) == (
        f"<|vision_start|><0.0 seconds>{pair}<|vision_end|>"
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"instruction": " "}, "instruction is empty"),
        ({"video_pixels": 0}, "video_pixels is 0"),
        ({"most_tokens": -1}, "most_tokens is -1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, said):
    with pytest.raises(SettingError, match=said):
        Qwen3VLSettings(**settings)


def test_a_picture_that_is_too_narrow_is_refused(encoder):
    with pytest.raises(EncoderError, match=r"1 × 300 pixels is too narrow"):
        encoder.encode([Image(np.zeros((300, 1, 3), np.uint8))])


def test_pictures_are_cut_by_pillow_whatever_the_checkpoint_names(folder, tmp_path, encoder):
    fast = change_tensors(folder, tmp_path / "fast", dict)
    change_json(fast / "preprocessor_config.json", image_processor_type="Qwen2VLImageProcessorFast")
    cutter = load_cutter(PretrainedSettings(str(fast)))
    assert type(cutter.processor).__name__ == "Qwen2VLImageProcessorPil"
    found = load_encoder(f"qwen3-vl:{fast}", Modality.IMAGE).encode(BATCHES[Modality.IMAGE])
    assert torch.equal(found.global_feature, encoder.encode(BATCHES[Modality.IMAGE]).global_feature)


# A checkpoint that is not whole.

TENSOR = "model.language_model.layers.1.mlp.up_proj.weight"


def without(tensors):
    return {name: tensor for name, tensor in tensors.items() if name != TENSOR}


def renamed(tensors):
    return {name.replace("up_proj", "upp_proj"): tensor for name, tensor in tensors.items()}


def smaller(tensors):
    return tensors | {TENSOR: tensors[TENSOR][:-1].contiguous()}


@pytest.mark.parametrize("change", [without, renamed, smaller])
def test_a_tensor_that_does_not_fit_is_named(folder, tmp_path, change):
    broken = change_tensors(folder, tmp_path / "broken", change)
    with pytest.raises(EncoderError, match=r"layers\.1\.mlp\.up_proj\.weight"):
        load_encoder(f"qwen3-vl:{broken}", Modality.TEXT)


def test_a_tensor_that_is_left_over_is_named(folder, tmp_path):
    def more(tensors):
        return tensors | {TENSOR.replace("up_proj", "side_proj"): torch.ones(2)}

    broken = change_tensors(folder, tmp_path / "broken", more)
    with pytest.raises(EncoderError, match=r"not part of the model: .*mlp\.side_proj\.weight"):
        load_encoder(f"qwen3-vl:{broken}", Modality.TEXT)


def test_a_head_that_says_words_may_lie_in_the_checkpoint(folder, tmp_path, encoder):
    def headed(tensors):
        head = tensors["model.language_model.embed_tokens.weight"].clone()
        return tensors | {"lm_head.weight": head}

    other = load_encoder(
        f"qwen3-vl:{change_tensors(folder, tmp_path / 'headed', headed)}", Modality.TEXT
    )
    batch = BATCHES[Modality.TEXT]
    assert torch.equal(other.encode(batch).hidden_states, encoder.encode(batch).hidden_states)


def test_a_tokenizer_of_another_model_is_refused(folder, tmp_path):
    broken = change_tensors(folder, tmp_path / "broken", dict)
    change_json(broken / "config.json", image_token_id=1)
    with pytest.raises(EncoderError, match=r"image_pad.* are \(6, 7\) to the tokenizer.*\(1, 7\)"):
        load_encoder(f"qwen3-vl:{broken}", Modality.TEXT)

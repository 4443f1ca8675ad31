"""VLM2Vec-V2 reads what it was trained to read, with its adapter merged whole."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from adaptiveembed.data.media import Image, Text, Video
from adaptiveembed.encoders.pretrained.adapters import base_of
from adaptiveembed.encoders.pretrained.qwen_inputs import FrameChoice, PixelLimits
from adaptiveembed.encoders.pretrained.settings import PretrainedSettings
from adaptiveembed.encoders.pretrained.vlm2vec import (
    FOR_VIDEOS,
    VLM2VecSettings,
    current_name,
    load_vlm2vec,
)
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError, SettingError
from adaptiveembed.structure.direction import Modality
from tests.contracts import encoder as contract
from tests.encoders.items import BATCHES, picture
from tests.encoders.pretrained.qwen_checkpoints import (
    change_json,
    change_tensors,
    save_adapter,
    save_qwen2_vl,
)

MODALITIES = (Modality.TEXT, Modality.IMAGE, Modality.VIDEO)
EVERYTHING = [item for modality in MODALITIES for item in BATCHES[modality]]
CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return save_qwen2_vl(tmp_path_factory.mktemp("qwen2-vl"))


@pytest.fixture(scope="session")
def adapter(tmp_path_factory, base):
    return save_adapter(tmp_path_factory.mktemp("adapter"), base)


@pytest.fixture(scope="session")
def encoder(adapter):
    return load_encoder(f"vlm2vec:{adapter}", Modality.VIDEO)


def unmerged(base, adapter):
    """The model with the adapter beside it, as peft runs it."""
    import warnings

    from peft import PeftModel
    from transformers import Qwen2VLForConditionalGeneration

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        model = Qwen2VLForConditionalGeneration.from_pretrained(base)
        return PeftModel.from_pretrained(model, adapter).eval()


def by_hand(base, model, prompt, *, left=0, **vision):
    """The states of one prompt, with filling before it and one position behind the other."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    row = tokenizer(prompt)["input_ids"]
    tokens = torch.tensor([[tokenizer.pad_token_id] * left + row])
    mask = torch.tensor([[0] * left + [1] * len(row)])
    positions = torch.tensor([0] * left + [*range(len(row))]).expand(3, 1, -1)
    with torch.no_grad():
        output = model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            output_hidden_states=True,
            **vision,
        )
    return output.hidden_states[-1][0, left:]


def check_item(encoder, item, states):
    """That the item has these states beside another one, and the last as its feature."""
    others = {Text: Text("The boat"), Image: Image(picture(9)), Video: BATCHES["video"][1]}
    found = encoder.encode([others[type(item)], item])
    torch.testing.assert_close(found.hidden_states[1][found.mask[1]], states, **CLOSE)
    unit = states[-1] / states[-1].norm()
    torch.testing.assert_close(found.global_feature[1], unit, **CLOSE)


def patches_of(base, pixels):
    """The patches of one picture by the official processor, and their grid."""
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(base)
    made = processor(images=[pixels], return_tensors="pt")
    return made["pixel_values"], made["image_grid_thw"]


# The reference paths.


@pytest.mark.parametrize("left", [0, 6])
@pytest.mark.parametrize("dora", [True, False])
def test_a_text_has_the_states_that_the_adapter_gives_its_prompt(
    base, adapter, tmp_path, dora, left
):
    folder = adapter if dora else save_adapter(tmp_path, base, dora=False)
    prompt = "Find me an everyday image that matches the given caption. A dog"
    states = by_hand(base, unmerged(base, folder), prompt, left=left)
    check_item(load_encoder(f"vlm2vec:{folder}", Modality.TEXT), Text("A dog"), states)


@pytest.mark.parametrize("left", [0, 6])
def test_a_picture_stands_before_its_prompt_without_marks(base, adapter, encoder, left):
    pixels = picture(3, 84, 56)
    values, grid = patches_of(base, pixels)
    prompt = "<|image_pad|>" * 6 + " Find an image caption describing the given image."
    states = by_hand(
        base, unmerged(base, adapter), prompt, left=left, pixel_values=values, image_grid_thw=grid
    )
    check_item(encoder, Image(pixels), states)


def test_a_video_stands_before_its_prompt_and_is_seen_two_frames_at_a_time(base, adapter, encoder):
    frames = [picture(seed, 84, 56) for seed in (1, 2, 3)]
    cut = [patches_of(base, pixels)[0].reshape(-1, 3, 2, 14 * 14) for pixels in frames]
    pairs = [(cut[0], cut[1]), (cut[2], cut[2])]
    values = torch.cat([torch.stack((one[:, :, 0], two[:, :, 0]), dim=2) for one, two in pairs])
    prompt = "<|video_pad|>" * 12 + " Understand the content of the provided video."
    states = by_hand(
        base,
        unmerged(base, adapter),
        prompt,
        pixel_values_videos=values.flatten(1),
        video_grid_thw=torch.tensor([[2, 6, 4]]),
    )
    check_item(encoder, Video(np.stack(frames), 1.0), states)


def test_the_adapter_matters(base, encoder):
    bare = load_encoder(f"vlm2vec:{base}", Modality.TEXT)
    batch = BATCHES[Modality.TEXT]
    one, other = (each.encode(batch).global_feature for each in (bare, encoder))
    assert (one - other).abs().max() > 1e-2
    assert bare.fingerprint != encoder.fingerprint


def test_a_whole_model_needs_no_adapter(base):
    assert base_of(PretrainedSettings(str(base))) is None
    states = by_hand(base, whole_model(base), f"{FOR_VIDEOS} A dog")
    settings = VLM2VecSettings(text_prompt=FOR_VIDEOS)
    check_item(load_vlm2vec(PretrainedSettings(str(base)), settings), Text("A dog"), states)


def whole_model(base):
    from transformers import Qwen2VLForConditionalGeneration

    return Qwen2VLForConditionalGeneration.from_pretrained(base).eval()


# The names that tensors had before, and have now.


def named_as_before(name):
    """As models and adapters were published."""
    return name.replace("model.visual.", "visual.").replace("model.language_model.", "model.")


def named_as_now(name):
    """As transformers names them in memory, which it has saved for a while too."""
    prefix = name.startswith("base_model.model.") * "base_model.model."
    return prefix + current_name(name.removeprefix(prefix))


@pytest.mark.parametrize("names", [*product([named_as_before, named_as_now], repeat=2)])
def test_tensors_may_have_the_names_of_any_time(base, adapter, encoder, tmp_path, names):
    of_base, of_adapter = names

    def rename(folder, target, rename_one):
        def change(tensors):
            return {rename_one(name): tensor for name, tensor in tensors.items()}

        return change_tensors(folder, target, change)

    other_base = rename(base, tmp_path / "base", of_base)
    other = rename(adapter, tmp_path / "adapter", of_adapter)
    change_json(other / "adapter_config.json", base_model_name_or_path=str(other_base))
    found = load_encoder(f"vlm2vec:{other}", Modality.TEXT).encode(EVERYTHING)
    assert torch.equal(found.hidden_states, encoder.encode(EVERYTHING).hidden_states)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("visual.blocks.0.norm1.weight", "model.visual.blocks.0.norm1.weight"),
        ("model.layers.0.mlp.up_proj.weight", "model.language_model.layers.0.mlp.up_proj.weight"),
        ("model.embed_tokens.weight", "model.language_model.embed_tokens.weight"),
        ("lm_head.weight", "lm_head.weight"),
    ],
)
def test_published_names_become_the_ones_of_now(before, now):
    assert current_name(before) == current_name(now) == now


def test_a_file_of_ones_own_asks_otherwise(base, tmp_path, monkeypatch):
    source = (
        "from adaptiveembed.encoders.pretrained.settings import PretrainedSettings\n"
        "from adaptiveembed.encoders.pretrained.vlm2vec import *\n"
        "def videos():\n"
        "    inputs = VLM2VecSettings(text_prompt=FOR_VIDEOS)\n"
        f"    return load_vlm2vec(PretrainedSettings({str(base)!r}), inputs)\n"
    )
    (tmp_path / "vlm2vec_of_ones_own.py").write_text(source)
    monkeypatch.setattr("sys.path", __import__("sys").path.copy())
    monkeypatch.chdir(tmp_path)
    found = load_encoder("vlm2vec_of_ones_own:videos", Modality.TEXT)
    states = by_hand(base, whole_model(base), f"{FOR_VIDEOS} A dog")
    check_item(found, Text("A dog"), states)


# The contract.


@pytest.mark.parametrize("batch", [*(BATCHES[each] for each in MODALITIES), EVERYTHING])
@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_encoder_keeps_the_contract(check, batch, encoder):
    check(encoder, batch)


def test_a_sound_is_refused(encoder):
    contract.check_refuses_other_modalities(
        encoder, BATCHES[Modality.TEXT], BATCHES[Modality.AUDIO][0]
    )


@pytest.mark.parametrize("budget", [1, 90])
def test_the_token_budget_changes_no_feature(adapter, encoder, budget):
    cut = load_vlm2vec(PretrainedSettings(str(adapter), token_budget=budget))
    one, other = encoder.encode(EVERYTHING), cut.encode(EVERYTHING)
    torch.testing.assert_close(one.hidden_states, other.hidden_states, **CLOSE)
    assert cut.fingerprint == encoder.fingerprint


@pytest.mark.parametrize("way", ["dtype=bfloat16", "dtype=float16", "attention=eager"])
def test_another_way_of_computing_gives_nearly_the_same_in_float32(adapter, encoder, way):
    other = load_encoder(f"vlm2vec:{adapter},{way}", Modality.TEXT)
    one, two = (each.encode(EVERYTHING) for each in (encoder, other))
    assert two.hidden_states.dtype == two.global_feature.dtype == torch.float32
    assert (one.global_feature * two.global_feature).sum(dim=1).min() > 0.999
    assert other.fingerprint != encoder.fingerprint


def test_a_long_text_is_read_as_far_as_its_limit(adapter):
    settings = VLM2VecSettings(most_tokens=50)
    cut = load_vlm2vec(PretrainedSettings(str(adapter)), settings)
    found = cut.encode([Text("The boat is near the shore. " * times) for times in (20, 30)])
    assert found.mask.sum(dim=1).tolist() == [50, 50]
    assert torch.equal(found.global_feature[0], found.global_feature[1])


def test_whatever_changes_features_changes_the_fingerprint(base, adapter, tmp_path):
    choices = [
        VLM2VecSettings(),
        VLM2VecSettings(text_prompt=FOR_VIDEOS),
        VLM2VecSettings(image_prompt="Find a cat."),
        VLM2VecSettings(video_prompt="Find a cat."),
        VLM2VecSettings(pixels=PixelLimits(28**2, 10 * 28**2)),
        VLM2VecSettings(frames=FrameChoice(1.0, 8)),
        VLM2VecSettings(most_tokens=50),
    ]
    found = [load_vlm2vec(PretrainedSettings(str(adapter)), each).fingerprint for each in choices]
    # the same adapter, whose base is another model at the same place
    moved = change_tensors(base, tmp_path / "base", dict)
    other = change_tensors(adapter, tmp_path / "adapter", dict)
    change_json(other / "adapter_config.json", base_model_name_or_path=str(moved))
    found.append(load_vlm2vec(PretrainedSettings(str(other))).fingerprint)
    change_tensors_in_place(moved)
    found.append(load_vlm2vec(PretrainedSettings(str(other))).fingerprint)
    assert len(set(found)) == len(choices) + 2


def change_tensors_in_place(folder):
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["visual.merger.mlp.0.bias"] += 1
    save_file(tensors, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"text_prompt": ""}, "text_prompt is empty"),
        ({"image_prompt": " "}, "image_prompt is empty"),
        ({"video_prompt": ""}, "video_prompt is empty"),
        ({"most_tokens": 0}, "most_tokens is 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, said):
    with pytest.raises(SettingError, match=said):
        VLM2VecSettings(**settings)


# Checkpoints that are not whole.

IN_BASE = "layers.1.mlp.up_proj.weight"
IN_ADAPTER = "layers.1.self_attn.v_proj.lora_A.weight"


def without(tensors, wanted):
    return {name: tensor for name, tensor in tensors.items() if not name.endswith(wanted)}


def renamed(tensors, wanted):
    part = wanted.split(".")[-2]
    other = wanted.replace(part, f"{part}_2")
    return {name.replace(wanted, other): tensor for name, tensor in tensors.items()}


def smaller(tensors, wanted):
    return {
        name: tensor[:-1].contiguous() if name.endswith(wanted) else tensor
        for name, tensor in tensors.items()
    }


@pytest.mark.parametrize("change", [without, renamed, smaller])
def test_a_tensor_of_the_model_that_does_not_fit_is_named(base, adapter, tmp_path, change):
    broken = change_tensors(base, tmp_path / "base", lambda each: change(each, IN_BASE))
    other = change_tensors(adapter, tmp_path / "adapter", dict)
    change_json(other / "adapter_config.json", base_model_name_or_path=str(broken))
    with pytest.raises(EncoderError, match=r"layers\.1\.mlp\.up_proj\.weight"):
        load_encoder(f"vlm2vec:{other}", Modality.TEXT)


@pytest.mark.parametrize("change", [without, renamed, smaller])
def test_a_tensor_of_the_adapter_that_does_not_fit_is_named(adapter, tmp_path, change):
    broken = change_tensors(adapter, tmp_path / "broken", lambda each: change(each, IN_ADAPTER))
    with pytest.raises(EncoderError, match=r"layers\.1\.self_attn\.v_proj\.lora_A"):
        load_encoder(f"vlm2vec:{broken}", Modality.TEXT)


def test_a_tensor_that_the_model_does_not_have_is_named(adapter, tmp_path):
    def more(tensors):
        return tensors | {"base_model.model.model.language_model.norm.lora_A.weight": torch.ones(2)}

    broken = change_tensors(adapter, tmp_path / "broken", more)
    with pytest.raises(EncoderError, match=r"norm\.lora_A"):
        load_encoder(f"vlm2vec:{broken}", Modality.TEXT)


def test_the_base_is_run_as_the_adapter_is_asked_to_run(adapter, tmp_path):
    other = change_tensors(adapter, tmp_path / "other", dict)
    change_json(other / "adapter_config.json", base_model_name_or_path="a/b", revision="v2")
    asked = PretrainedSettings(str(other), token_budget=7, local_files_only=True)
    assert base_of(asked) == replace(asked, source="a/b", revision="v2")


def test_an_adapter_without_safetensors_is_refused(adapter, tmp_path):
    broken = change_tensors(adapter, tmp_path / "broken", dict)
    (broken / "adapter_model.safetensors").unlink()
    with pytest.raises(EncoderError, match=r"has no adapter_model\.safetensors that can be read"):
        load_encoder(f"vlm2vec:{broken}", Modality.TEXT)


def test_a_base_that_is_not_there_is_named(adapter, tmp_path):
    broken = change_tensors(adapter, tmp_path / "broken", dict)
    change_json(broken / "adapter_config.json", base_model_name_or_path="/nowhere/qwen2-vl")
    assert json.loads((broken / "adapter_config.json").read_text())["peft_type"] == "LORA"
    with pytest.raises(EncoderError, match="/nowhere/qwen2-vl"):
        load_encoder(f"vlm2vec:{broken}", Modality.TEXT)

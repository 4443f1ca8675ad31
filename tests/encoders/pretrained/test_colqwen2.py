"""ColQwen2 gives a vector for every token, with pictures where they were when it was trained."""

import pytest
import torch

from adaptiveembed.data.media import Image, Text
from adaptiveembed.encoders.pretrained.colqwen2 import load_colqwen2, mean_states
from adaptiveembed.encoders.pretrained.settings import PretrainedSettings
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from tests.contracts import encoder as contract
from tests.encoders.items import BATCHES, TEXTS, picture
from tests.encoders.pretrained.qwen_checkpoints import change_json, change_tensors, save_colqwen2

MODALITIES = (Modality.TEXT, Modality.IMAGE)
EVERYTHING = [item for modality in MODALITIES for item in BATCHES[modality]]
CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return save_colqwen2(tmp_path_factory.mktemp("colqwen2"))


@pytest.fixture(scope="session")
def encoder(folder):
    return load_encoder(f"colqwen2:{folder}", Modality.IMAGE)


@pytest.fixture(scope="session")
def official(folder):
    from transformers import ColQwen2ForRetrieval, ColQwen2Processor

    processor = ColQwen2Processor.from_pretrained(folder)
    return processor, ColQwen2ForRetrieval.from_pretrained(folder).eval()


def slow_positions(tokens, image_token, rows, columns):
    """Time, row and column of every token of one item, as the model was trained with them."""
    positions, place, seen = [], 0, 0
    for token in tokens:
        if token == image_token:
            positions.append((place, place + seen // columns, place + seen % columns))
            seen += 1
            if seen == rows * columns:
                place += max(rows, columns)
        else:
            positions.append((place, place, place))
            place += 1
    return torch.tensor(positions).T[:, None]


def official_vectors(official, image, *, left=0, restored=True):
    """The vectors of one picture by the official processor and model, with filling before it."""
    processor, model = official
    inputs = processor(images=[image])
    row = inputs["input_ids"][0].tolist()
    grid = inputs["image_grid_thw"][0] // 2
    positions = slow_positions(row, processor.image_token_id, int(grid[1]), int(grid[2]))
    filling = torch.full((1, left), processor.tokenizer.pad_token_id)
    positions = torch.cat((torch.zeros(3, 1, left, dtype=torch.long), positions), dim=2)
    inputs["input_ids"] = torch.cat((filling, inputs["input_ids"]), dim=1)
    inputs["attention_mask"] = torch.tensor([[0] * left + [1] * len(row)])
    with torch.no_grad():
        output = model(**inputs, **({"position_ids": positions} if restored else {}))
    return output.embeddings[0, left:]


def real_states(encoded, place):
    return encoded.hidden_states[place][encoded.mask[place]]


def test_vectors_of_texts_are_the_official_ones(encoder, official):
    processor, model = official
    with torch.no_grad():
        expected = [model(**processor(text=[text])).embeddings[0] for text in TEXTS]
    found = encoder.encode([Text(text) for text in TEXTS])
    for place, vectors in enumerate(expected):
        torch.testing.assert_close(real_states(found, place), vectors, **CLOSE)


@pytest.mark.parametrize("left", [0, 5])
@pytest.mark.parametrize("shape", [(56, 84), (84, 56), (200, 90)])
def test_vectors_of_pictures_are_the_official_ones_with_positions_restored(
    encoder, official, shape, left
):
    image = picture(3, *shape)
    expected = official_vectors(official, image, left=left)
    found = encoder.encode([Image(picture(1)), Image(image)])
    torch.testing.assert_close(real_states(found, 1), expected, **CLOSE)


def test_the_model_left_to_itself_gives_pictures_the_positions_of_text(official):
    # when this fails, transformers restores them, and there is nothing to restore here
    image = picture(3, 84, 84)
    alone = official_vectors(official, image, restored=False)
    assert (alone - official_vectors(official, image)).abs().max() > 1e-3


def test_the_score_of_the_official_processor_is_that_of_the_states(encoder, official):
    from adaptiveembed.similarity.maxsim import maxsim_matrix

    processor, _ = official
    texts, images = (encoder.encode(BATCHES[modality]) for modality in MODALITIES)
    expected = processor.score_retrieval(texts.hidden_states, images.hidden_states)
    found = [
        [
            maxsim_matrix(real_states(texts, row)[None], real_states(images, column)[None]).item()
            for column in range(len(images))
        ]
        for row in range(len(texts))
    ]
    torch.testing.assert_close(torch.tensor(found), expected, rtol=0, atol=1e-4)


def test_every_state_has_length_one_and_the_feature_is_the_direction_of_their_mean(encoder):
    found = encoder.encode(EVERYTHING)
    for place in range(len(EVERYTHING)):
        states = real_states(found, place)
        torch.testing.assert_close(states.norm(dim=1), torch.ones(len(states)), **CLOSE)
        mean = states.mean(dim=0)
        torch.testing.assert_close(found.global_feature[place], mean / mean.norm(), **CLOSE)


def test_the_mean_looks_at_real_tokens_only():
    states = torch.tensor([[[1.0, 0.0], [0.0, 3.0]], [[2.0, 2.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True], [True, False]])
    assert mean_states(states, mask).tolist() == [[0.5, 1.5], [2.0, 2.0]]


def test_the_prompts_of_the_checkpoint_are_used(folder, tmp_path):
    from transformers import ColQwen2Processor

    other = change_tensors(folder, tmp_path / "other", dict)
    change_json(
        other / "processor_config.json",
        query_prefix="Find: ",
        visual_prompt_prefix="<|vision_start|><|image_pad|><|vision_end|>!",
    )
    processor = ColQwen2Processor.from_pretrained(other)
    found = load_encoder(f"colqwen2:{other}", Modality.TEXT).encode(EVERYTHING)
    texts = [len(processor(text=[text])["input_ids"][0]) for text in TEXTS]
    images = [
        len(processor(images=[item.pixels], input_data_format="channels_last")["input_ids"][0])
        for item in BATCHES[Modality.IMAGE]
    ]
    assert processor.query_prefix == "Find: "
    assert found.mask.sum(dim=1).tolist() == texts + images


# The contract.


@pytest.mark.parametrize("batch", [*(BATCHES[each] for each in MODALITIES), EVERYTHING])
@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_encoder_keeps_the_contract(check, batch, encoder):
    check(encoder, batch)


@pytest.mark.parametrize("modality", [Modality.VIDEO, Modality.AUDIO])
def test_other_media_are_refused(encoder, modality):
    contract.check_refuses_other_modalities(encoder, BATCHES[Modality.TEXT], BATCHES[modality][0])


@pytest.mark.parametrize("budget", [1, 60])
def test_the_token_budget_changes_no_feature(folder, encoder, budget):
    cut = load_colqwen2(PretrainedSettings(str(folder), token_budget=budget))
    one, other = encoder.encode(EVERYTHING), cut.encode(EVERYTHING)
    torch.testing.assert_close(one.hidden_states, other.hidden_states, **CLOSE)
    assert cut.fingerprint == encoder.fingerprint


@pytest.mark.parametrize("way", ["dtype=bfloat16", "dtype=float16", "attention=eager"])
def test_another_way_of_computing_gives_nearly_the_same_in_float32(folder, encoder, way):
    other = load_encoder(f"colqwen2:{folder},{way}", Modality.TEXT)
    one, two = (each.encode(EVERYTHING) for each in (encoder, other))
    assert two.hidden_states.dtype == two.global_feature.dtype == torch.float32
    assert (one.global_feature * two.global_feature).sum(dim=1).min() > 0.999
    assert other.fingerprint != encoder.fingerprint


def test_markers_in_a_text_do_not_stand_for_pictures(encoder):
    found = encoder.encode([Text("<|image_pad|> a <|video_pad|>"), Text("b")])
    assert found.global_feature.isfinite().all()


# A checkpoint that is not whole.

TENSOR = "vlm.visual.blocks.1.attn.proj.weight"


def without(tensors):
    return {name: tensor for name, tensor in tensors.items() if not name.endswith(TENSOR[4:])}


def renamed(tensors):
    return {
        name.replace("blocks.1.attn.proj.weight", "blocks.1.attn.other.weight"): tensor
        for name, tensor in tensors.items()
    }


def smaller(tensors):
    return {
        name: tensor[:-1].contiguous() if name.endswith(TENSOR[4:]) else tensor
        for name, tensor in tensors.items()
    }


@pytest.mark.parametrize("change", [without, renamed, smaller])
def test_a_tensor_that_does_not_fit_is_named(folder, tmp_path, change):
    broken = change_tensors(folder, tmp_path / "broken", change)
    with pytest.raises(EncoderError, match=r"visual\.blocks\.1\.attn\.proj\.weight"):
        load_encoder(f"colqwen2:{broken}", Modality.TEXT)

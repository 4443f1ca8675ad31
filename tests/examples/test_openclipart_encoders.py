"""The encoders of the open clip art recipe, with small or random weights."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel

from adaptiveembed.data.media import Image, Text
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from examples.openclipart import prepare
from examples.openclipart.encoders import EfficientNetLite0, Lite0, MiniLM, square
from tests.contracts import encoder as contract
from tests.examples import lite0

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*SPECIAL, "a", "red", "green", "boat", "flag", "cat", "tree", "small", "##s", "on", "of"]
TEXTS = [Text("a red boat"), Text("Small GREEN flags of a tree on a boat"), Text("cats")]


def pictures():
    numbers = np.random.default_rng(0)
    shapes = [(256, 256, 3), (40, 90, 3), (300, 7, 3)]
    return [Image(numbers.integers(0, 256, shape, dtype=np.uint8)) for shape in shapes]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """What ``prepare.py`` leaves behind, without a download."""
    folder = tmp_path_factory.mktemp("openclipart")
    save_minilm(folder / "models/minilm")
    save_lite0(folder / "models/efficientnet_lite0")
    return folder


def save_minilm(folder):
    folder.mkdir(parents=True)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.4,
    )
    config.to_json_file(folder / "config.json")
    torch.manual_seed(0)
    save_file(BertModel(config, add_pooling_layer=False).state_dict(), folder / "model.safetensors")
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As published: fixed lengths, which the encoder must not keep.
    tokenizer.enable_padding(length=64)
    tokenizer.save(str(folder / "tokenizer.json"))


def save_lite0(folder):
    folder.mkdir(parents=True)
    prepare.save_lite0(lite0.random_weights(seed=0), folder)


@pytest.fixture(scope="module")
def minilm(prepared):
    return MiniLM(prepared / "models/minilm")


@pytest.fixture(scope="module")
def efficientnet(prepared):
    return EfficientNetLite0(prepared / "models/efficientnet_lite0")


@pytest.mark.parametrize("check", contract.CHECKS)
def test_minilm_keeps_the_contract(check, minilm):
    check(minilm, TEXTS)


@pytest.mark.parametrize("check", contract.CHECKS)
def test_efficientnet_keeps_the_contract(check, efficientnet):
    check(efficientnet, pictures())


def test_other_modalities_are_refused(minilm, efficientnet):
    contract.check_refuses_other_modalities(minilm, TEXTS, pictures()[0])
    contract.check_refuses_other_modalities(efficientnet, pictures(), TEXTS[0])


@pytest.mark.parametrize(("name", "modality"), [("MiniLM", "text"), ("EfficientNetLite0", "image")])
def test_both_are_found_by_module_and_name(name, modality, prepared, monkeypatch):
    monkeypatch.setenv("OPENCLIPART", str(prepared))
    names = [f"examples.openclipart.encoders:{name}"] * 2
    one, again = (load_encoder(name, Modality(modality)) for name in names)
    assert one.fingerprint == again.fingerprint


def test_unprepared_weights_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLIPART", str(tmp_path))
    with pytest.raises(EncoderError, match=r"prepare\.py FOLDER"):
        MiniLM()


def test_a_text_points_where_the_mean_of_its_tokens_does(minilm):
    encoded = minilm.encode(TEXTS)
    for item in range(len(TEXTS)):
        mean = encoded.hidden_states[item][encoded.mask[item]].mean(dim=0)
        torch.testing.assert_close(encoded.global_feature[item], mean / mean.norm())


def test_a_text_has_a_state_for_each_token_and_two_around_them(minilm):
    # "flags" and "cats" are two pieces each
    assert minilm.encode(TEXTS).mask.sum(dim=1).tolist() == [5, 12, 4]


def test_long_texts_are_cut(prepared):
    short = MiniLM(prepared / "models/minilm", most_tokens=6)
    assert short.encode(TEXTS).mask.sum(dim=1).tolist() == [5, 6, 4]


def test_lite0_is_the_published_network():
    weights = lite0.random_weights(seed=1)
    network = Lite0()
    network.load_state_dict(prepare.folded_tensors(weights))
    batch = torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found, expected = network(batch), lite0.features(weights, batch)
    assert found.shape == (2, 1280, 7, 7)
    # the random network is neither dead nor saturated, so that the comparison means something
    assert 0.2 < (expected > 0).float().mean() < 0.98
    assert (expected < 6).float().mean() > 0.5
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("regions", [1, 4, 7])
def test_a_picture_has_a_state_for_each_region(regions, prepared):
    encoder = EfficientNetLite0(prepared / "models/efficientnet_lite0", regions=regions)
    encoded = encoder.encode(pictures()[:1])
    assert encoded.hidden_states.shape == (1, regions**2, 1280)


def test_a_picture_points_where_the_mean_of_its_places_does(prepared):
    encoder = EfficientNetLite0(prepared / "models/efficientnet_lite0", regions=7)
    encoded = encoder.encode(pictures()[:1])
    mean = encoded.hidden_states.mean(dim=1)
    torch.testing.assert_close(encoded.global_feature, mean / mean.norm())


def test_settings_and_weights_change_the_fingerprint(prepared, minilm, efficientnet, tmp_path):
    save_lite0(tmp_path / "other")
    tensors = load_file(tmp_path / "other/model.safetensors")
    tensors["head.bias"][0] += 1
    save_file(tensors, tmp_path / "other/model.safetensors")
    fingerprints = {
        minilm.fingerprint,
        MiniLM(prepared / "models/minilm", most_tokens=5).fingerprint,
        efficientnet.fingerprint,
        EfficientNetLite0(prepared / "models/efficientnet_lite0", regions=2).fingerprint,
        EfficientNetLite0(tmp_path / "other").fingerprint,
    }
    assert len(fingerprints) == 5


def without(tensors, name):
    del tensors[name]


def renamed(tensors, name):
    tensors["other"] = tensors.pop(name)


def reshaped(tensors, name):
    tensors[name] = tensors[name][1:].clone()


@pytest.mark.parametrize("damage", [without, renamed, reshaped])
@pytest.mark.parametrize(
    ("encoder", "tensor"),
    [
        (MiniLM, "embeddings.LayerNorm.weight"),
        (EfficientNetLite0, "blocks.3.expand.bias"),
    ],
)
def test_weights_of_another_model_are_refused(encoder, tensor, damage, prepared, tmp_path):
    model = {MiniLM: "minilm", EfficientNetLite0: "efficientnet_lite0"}[encoder]
    for file in (prepared / "models" / model).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(tmp_path / "model.safetensors")
    damage(tensors, tensor)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(EncoderError, match=tensor):
        encoder(tmp_path)


def test_a_picture_stands_whole_in_a_white_square():
    black = np.zeros((50, 100, 3), dtype=np.uint8)
    framed = square(black, side=20)
    assert framed.shape == (20, 20, 3)
    assert (framed[5:15] == 0).all()
    assert (framed[:5] == 255).all()
    assert (framed[15:] == 255).all()


def test_a_line_of_pixels_is_not_lost():
    assert (square(np.zeros((1, 1000, 3), dtype=np.uint8), side=20) == 0).any()

"""A sentence-transformers model says what its own library says, and the states beside it."""

import pytest
import torch
from torch.nn.functional import normalize

from adaptiveembed.data.media import Text
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from tests.encoders.pretrained.checkpoints import quiet
from tests.encoders.pretrained.items import SHORT_AND_LONG_TEXTS

CLOSE = {"rtol": 0, "atol": 1e-4}
TEXTS = [Text(text) for text in SHORT_AND_LONG_TEXTS]
PLAIN, DENSE = "sentence-transformers", "sentence-transformers-dense"


@pytest.fixture(scope="module")
def official(checkpoint):
    from sentence_transformers import SentenceTransformer

    def loaded(name):
        with quiet():
            return SentenceTransformer(str(checkpoint(name)), device="cpu")

    return loaded


@pytest.mark.parametrize("name", [PLAIN, DENSE])
def test_an_embedding_is_that_of_the_library(name, load, official):
    encoded = load(name, Modality.TEXT).encode(TEXTS)
    expected = official(name).encode(list(SHORT_AND_LONG_TEXTS), convert_to_tensor=True)
    torch.testing.assert_close(encoded.global_feature, expected, **CLOSE)


def test_states_are_the_token_embeddings_of_the_library(load, official):
    encoded = load(PLAIN, Modality.TEXT).encode(TEXTS)
    expected = official(PLAIN).encode(
        list(SHORT_AND_LONG_TEXTS), output_value="token_embeddings", convert_to_numpy=False
    )
    for states, mask, row in zip(encoded.hidden_states, encoded.mask, expected, strict=True):
        torch.testing.assert_close(states[mask], row, **CLOSE)


@torch.no_grad()
def test_states_go_through_the_dense_layer_of_the_embedding(load, official):
    encoded = load(DENSE, Modality.TEXT).encode(TEXTS)
    model = official(DENSE)
    layer = model[2].linear
    expected = model.encode(
        list(SHORT_AND_LONG_TEXTS), output_value="token_embeddings", convert_to_numpy=False
    )
    for states, mask, row in zip(encoded.hidden_states, encoded.mask, expected, strict=True):
        through = torch.tanh(row @ layer.weight.T + layer.bias)
        torch.testing.assert_close(states[mask], through, **CLOSE)


def test_the_default_prompt_stands_before_every_text(checkpoint, tmp_path, official, load):
    model = official(PLAIN)
    model.prompts, model.default_prompt_name = {"query": "a photo of "}, "query"
    with quiet():
        model.save(str(tmp_path / "prompted"), create_model_card=False)
    encoder = load_encoder(f"{PLAIN}:{tmp_path / 'prompted'}", Modality.TEXT)
    plain = load(PLAIN, Modality.TEXT)
    found = encoder.encode([Text("two cats")]).global_feature
    torch.testing.assert_close(
        found, plain.encode([Text("a photo of two cats")]).global_feature, **CLOSE
    )
    assert encoder.fingerprint != plain.fingerprint


def test_a_model_without_tokens_has_one_state(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from tests.encoders.pretrained.checkpoints import word_pieces

    torch.manual_seed(0)
    table = StaticEmbedding(word_pieces().backend_tokenizer, embedding_dim=12)
    model = SentenceTransformer(modules=[table], device="cpu")
    model.save(str(tmp_path / "static"), create_model_card=False)
    encoder = load_encoder(f"{PLAIN}:{tmp_path / 'static'}", Modality.TEXT)
    encoded = encoder.encode([Text("a dog runs"), Text("the piano")])
    expected = model.encode(["a dog runs", "the piano"], convert_to_tensor=True)
    torch.testing.assert_close(encoded.global_feature, normalize(expected), **CLOSE)
    torch.testing.assert_close(encoded.hidden_states[:, 0], expected, **CLOSE)
    assert encoded.mask.shape == (2, 1)


def test_a_folder_that_the_library_cannot_read_is_refused(tmp_path):
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(EncoderError, match="cannot be loaded by sentence-transformers"):
        load_encoder(f"{PLAIN}:{tmp_path}", Modality.TEXT)

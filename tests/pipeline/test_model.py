"""A trained model encodes, allocates, scores and explains, and refuses what it cannot mean."""

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage

from adaptiveembed.data.media import Image, Text
from adaptiveembed.errors import (
    AdaptiveEmbedError,
    EmptyBatchError,
    EncoderError,
    LayoutMismatchError,
    SettingError,
    ShapeError,
)
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts, as_items, common_modality
from adaptiveembed.similarity.setsim import setsim_pairs
from adaptiveembed.structure.candidates import CAES, CandidateSets, activate
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection
from tests.pipeline.tiny import Cells, Words, facts, picture_of, text_of
from tests.plain import answers

TEXTS = [text_of(*one) for one in facts(7)]
PICTURES = [picture_of(*one) for one in facts(7)]


@pytest.fixture(scope="module")
def queries(model):
    return model.encode_query(TEXTS)


@pytest.fixture(scope="module")
def documents(model):
    return model.encode_document(PICTURES)


def test_queries_have_selections_of_the_space_and_documents_have_all_vectors(
    model, queries, documents
):
    assert isinstance(queries, CAES)
    assert set(queries.selections) <= set(model.facts.recipe.space.nodes)
    assert isinstance(documents, CandidateSets)
    assert documents.vectors.shape == (7, 8, 16)


def test_a_picture_is_the_same_from_a_file_from_pillow_from_pixels_and_encoded(
    model, documents, tmp_path
):
    paths = [tmp_path / f"{place}.png" for place in range(7)]
    for path, picture in zip(paths, PICTURES, strict=True):
        picture.save(path)
    media = [Image(np.asarray(one)) for one in PICTURES]
    for given in (paths, media):
        torch.testing.assert_close(
            model.encode_document(given).vectors, documents.vectors, rtol=0, atol=0
        )
    encoded = model.encode_document(Cells().encode(media), modality="image")
    assert torch.equal(encoded.vectors, documents.vectors)


def test_a_text_is_the_same_as_a_str_as_media_and_encoded(model, queries):
    encoded = Words().encode([Text(one) for one in TEXTS])
    for given in (list(map(Text, TEXTS)), tuple(TEXTS)):
        assert torch.equal(model.encode_query(given).candidates.vectors, queries.candidates.vectors)
    found = model.encode_query(encoded, modality=Modality.TEXT)
    assert torch.equal(found.candidates.vectors, queries.candidates.vectors)
    assert found.selections == queries.selections


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_query_alone_is_the_query_in_a_batch(model, queries, batch_size):
    found = model.encode_query(TEXTS, batch_size=batch_size)
    assert found.selections == queries.selections
    for place, text in enumerate(TEXTS):
        alone = model.encode_query(text)
        assert len(alone) == 1
        assert alone.selections[0] == queries.selections[place]
        torch.testing.assert_close(
            alone.candidates.vectors[0], queries.candidates.vectors[place], rtol=0, atol=1e-6
        )


def test_either_modality_asks(model, queries, documents):
    asked = model.encode_query(PICTURES)
    assert torch.equal(asked.candidates.vectors, documents.vectors)
    answers = model.encode_document(TEXTS)
    assert torch.equal(answers.vectors, queries.candidates.vectors)
    assert model.similarity(asked, answers).shape == (7, 7)


def test_similarity_is_setsim_at_the_positions_of_the_query(model, queries, documents):
    scores = model.similarity(queries, documents)
    pairwise = model.similarity_pairwise(queries, documents)
    assert scores.shape == (7, 7)
    torch.testing.assert_close(scores.diagonal(), pairwise, rtol=0, atol=1e-6)
    for place, selection in enumerate(queries.selections):
        own = activate(queries.candidates[place], selection).expand(7, -1, -1)
        expected = setsim_pairs(own, activate(documents, selection))
        torch.testing.assert_close(scores[place], expected, rtol=0, atol=1e-6)


def test_pairs_of_other_numbers_are_refused(model, queries, documents):
    with pytest.raises(ShapeError, match="7 queries and 3 documents"):
        model.similarity_pairwise(queries, documents[[0, 1, 2]])


def test_a_fixed_selection_a_capacity_and_a_threshold_replace_the_policy(model):
    layout = model.layout
    for given in ("2+2", Selection(layout, (2, 2))):
        found = model.encode_query(TEXTS, selection=given)
        assert set(found.selections) == {Selection(layout, (2, 2))}
    assert set(model.encode_query(TEXTS, capacity=2).selections) == {Selection(layout, (1, 1))}
    assert set(model.encode_query(TEXTS, threshold=1.0).capacities.tolist()) == {1}
    assert set(model.encode_query(TEXTS, threshold=0.0).capacities.tolist()) == {8}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"selection": "9+9"}, AdaptiveEmbedError, r"9\+9"),
        ({"selection": "1+0", "capacity": 1}, SettingError, "exclude each other"),
        ({"capacity": 5}, SettingError, "no selection has capacity 5; choose one of 1, 2, 4, 8"),
        ({"threshold": 1.5}, SettingError, "threshold is 1.5"),
    ],
)
def test_what_cannot_replace_the_policy_is_refused(model, given, error, message):
    with pytest.raises(error, match=message):
        model.encode_query(TEXTS, **given)


def test_an_explanation_agrees_with_the_allocation(model, queries):
    explained = model.explain(TEXTS)
    assert [one.selection for one in explained] == list(queries.selections)
    space, (direction, _) = model.facts.recipe.space, model.directions
    threshold = model.thresholds[direction]
    for one in explained:
        state = space.root
        for decision in one.decisions:
            assert decision.state == state
            odds = decision.expansions
            assert decision.stop + sum(odds.values()) == pytest.approx(1, abs=1e-5)
            assert len(decision.bank_ids) == model.facts.recipe.allocation.feedback.depth
            went_on = decision.chosen != state
            assert went_on == (max(odds.values()) > threshold)
            state = decision.chosen
        assert state == one.selection


def test_an_explanation_under_another_threshold_is_of_that_threshold(model):
    (explained,) = model.explain(TEXTS[0], threshold=0.0)
    assert explained.capacity == 8
    assert len(explained.decisions) == 3


def test_nothing_is_refused(model):
    for encode in (model.encode_query, model.encode_document, model.explain):
        with pytest.raises(EmptyBatchError, match="nothing to encode"):
            encode([])


def test_modalities_are_not_mixed_and_not_taken_for_others(model, tmp_path):
    with pytest.raises(SettingError, match="items of text and of image"):
        model.encode_query([TEXTS[0], PICTURES[0]])
    sound = tmp_path / "sound.wav"
    with pytest.raises(SettingError, match="this model is for text and image, got audio"):
        model.encode_query(sound)
    with pytest.raises(SettingError, match="encoded media do not say of what"):
        model.encode_query(Words().encode([Text("a")]))


def test_a_file_that_is_not_there_is_named(model, tmp_path):
    with pytest.raises(AdaptiveEmbedError, match=r"nowhere\.png"):
        model.encode_document(tmp_path / "nowhere.png")


def test_one_item_of_any_kind_is_a_list_of_one():
    picture = PillowImage.new("L", (3, 2))
    for one in ("a text", picture, Text("a")):
        assert as_items(one) == [one]
    assert common_modality([picture, Image(np.zeros((2, 2, 3), np.uint8))]) is Modality.IMAGE


def test_a_model_of_features_that_were_brought_along_says_that_it_cannot_encode():
    with pytest.raises(EncoderError, match="were brought along"):
        EncoderFacts(FEATURES, "f").load(Modality.TEXT)


def test_an_encoder_that_has_changed_is_refused():
    known = EncoderFacts("tests.pipeline.tiny:OtherWords", "words-1")
    with pytest.raises(EncoderError, match=r"words-2.*trained on features of words-1"):
        known.load(Modality.TEXT)


def test_bare_arrays_are_refused_with_the_reason(run):
    """In a process without type checks, which would refuse them before we do."""
    model = f"ae.AdaptiveEmbed.from_pretrained({str(run / 'model')!r})"
    arrays, generator, scores = answers(
        f"{model}.encode_query(np.zeros((2, 3)))",
        f"{model}.encode_query(one for one in ['a'])",
        f"{model}.similarity(np.zeros((2, 3)), np.zeros((2, 3)))",
    )
    assert arrays.startswith("DtypeError: got ndarray; a text is a str")
    assert generator.startswith("DtypeError: got generator; a text is a str")
    assert scores.startswith("DtypeError: queries are a CAES, got ndarray; use encode_query")


def test_a_selection_of_another_layout_is_refused(model):
    other = Selection(GroupLayout((2, 2)), (1, 1))
    with pytest.raises(LayoutMismatchError, match=r"2\+2"):
        model.encode_query(TEXTS, selection=other)

"""MTEB's own tasks run on a model, and score it as our evaluator does."""

import numpy as np
import pytest

pytest.importorskip("mteb")

import datasets
import mteb
from mteb.models import SearchProtocol
from mteb.models.model_meta import ScoringFunction

from adaptiveembed.adapters.exports import model_fingerprint
from adaptiveembed.adapters.mteb import MTEBSearch, media_of
from adaptiveembed.data.media import Audio
from adaptiveembed.errors import EmptyBatchError, SettingError
from adaptiveembed.evaluation.evaluate import evaluate
from adaptiveembed.evaluation.protocol import RetrievalTask
from adaptiveembed.metrics.measures import MEASURES
from adaptiveembed.pipeline.searching import Choice
from adaptiveembed.retrieval import Gallery, rank_table
from adaptiveembed.structure import Modality
from tests.adapters.models import IMAGE, PICTURES, TEXT, TEXTS, small_model

ASKED = range(0, 60, 2)
RELEVANT = {f"q{place}": [f"d{place}", f"d{(7 * place + 3) % 60}"] for place in ASKED}
"""Two positives for nearly every query; what is asked for is of no matter here."""
BOTH_HAVE = {
    "mAP": "map_at_1000",
    "MRR": "mrr_at_1000",
    "R@1": "recall_at_1",
    "R@5": "recall_at_5",
    "R@10": "recall_at_10",
    "nDCG": "ndcg_at_1000",
}
FEATURES = {TEXT: datasets.Value("string"), IMAGE: datasets.Image()}
ITEMS = {TEXT: TEXTS, IMAGE: PICTURES}


def rows(prefix, modality, places):
    content = {
        "id": [f"{prefix}{place}" for place in places],
        modality.value: [ITEMS[modality][place] for place in places],
    }
    features = {"id": datasets.Value("string"), modality.value: FEATURES[modality]}
    return datasets.Dataset.from_dict(content, features=datasets.Features(features))


TASKS = {
    (TEXT, IMAGE): "Flickr30kT2IRetrieval",
    (IMAGE, TEXT): "Flickr30kI2TRetrieval",
    (TEXT, TEXT): "SciFact",
}


def task_of(source=TEXT, target=IMAGE, *, top_ranked=None):
    """A task that MTEB ships, on other data."""
    task = mteb.get_task(TASKS[source, target])
    relevant = {query: dict.fromkeys(found, 1) for query, found in RELEVANT.items()}
    split = {
        "corpus": rows("d", target, range(60)),
        "queries": rows("q", source, ASKED),
        "relevant_docs": relevant,
        "top_ranked": top_ranked,
    }
    task.dataset = {"default": {"test": split}}
    task.data_loaded = True
    return task


def by_mteb(model, task):
    result = mteb.evaluate(
        model, task, cache=None, co2_tracker=False, encode_kwargs={"batch_size": 16}
    )
    (found,) = result[0].scores["test"]
    return found


def by_us(source, target, choice):
    model = small_model()
    documents = model.encode_document(list(ITEMS[target]))
    gallery = Gallery.from_candidates([f"d{place}" for place in range(60)], documents)
    queries = model.encode_query([ITEMS[source][place] for place in ASKED], **choice._asdict())
    direction = next(each for each in model.directions if each.source is source)
    relevant = list(map(list, map(dict.fromkeys, RELEVANT.values())))
    task = RetrievalTask.from_relevant(
        direction, tuple(RELEVANT), queries.candidates, gallery, relevant
    )
    found = evaluate([task], model.allocator(direction, **choice._asdict())).directions[0]
    assert found.selections == queries.selections
    return found


@pytest.mark.parametrize("choice", [Choice(), Choice(selection="1+0"), Choice(capacity=8)], ids=str)
@pytest.mark.parametrize(("source", "target"), [(TEXT, IMAGE), (IMAGE, TEXT)])
def test_scores_of_mteb_are_those_of_our_evaluator(source, target, choice):
    ours = by_us(source, target, choice)
    if choice == Choice():
        assert len(set(ours.selections)) > 1
    theirs = by_mteb(MTEBSearch(small_model(), "tests/small", choice), task_of(source, target))
    for measure, name in BOTH_HAVE.items():
        mean = MEASURES[measure](ours.ranks).mean()
        assert theirs[name] == pytest.approx(mean, abs=5.1e-6), measure  # they give five digits
    assert 0.05 < theirs["map_at_1000"] < 0.95


def test_equal_scores_stand_in_the_order_of_the_corpus_and_count_against_the_query_with_us():
    alike = datasets.Dataset.from_dict({"id": ["d0", "d1"], "text": [TEXTS[0], TEXTS[0]]})
    task, search = task_of(IMAGE, TEXT), MTEBSearch(small_model(), "tests/small")
    search.index(alike, **arguments(task))
    found = search.search(rows("q", IMAGE, [0]), top_k=2, **arguments(task))
    assert list(found["q0"]) == ["d0", "d1"]
    assert found["q0"]["d0"] > found["q0"]["d1"]
    asked = small_model().encode_query([PICTURES[0]])
    positive = np.array([[0]])
    (ranks,) = rank_table(search.gallery, asked.candidates, positive, asked.selections)
    assert ranks.tolist() == [[2]]


def test_it_is_a_search_model_of_a_similarity_of_its_own():
    found = MTEBSearch(small_model(), "tests/small", Choice(selection="1+0"))
    assert isinstance(found, SearchProtocol)
    meta = found.mteb_model_meta
    assert meta.similarity_fn_name is ScoringFunction.CUSTOM
    assert meta.name == "tests/small"
    assert meta.revision == model_fingerprint(small_model())
    assert set(meta.modalities) == {"text", "image"}
    assert meta.experiment_kwargs == {"selection": "1+0"}
    assert MTEBSearch(small_model(), "tests/small").mteb_model_meta.experiment_kwargs is None


def arguments(task):
    return {
        "task_metadata": task.metadata,
        "hf_split": "test",
        "hf_subset": "default",
        "encode_kwargs": {},
        "num_proc": None,
    }


def test_what_is_ranked_again_is_ranked_by_the_same_scores():
    task, search = task_of(), MTEBSearch(small_model(), "tests/small")
    corpus, queries = rows("d", IMAGE, range(60)), rows("q", TEXT, [4, 9, 11])
    search.index(corpus, **arguments(task))
    everything = search.search(queries, top_k=60, **arguments(task))
    given = {"q4": ["d8", "d3", "d59"], "q9": [], "q11": ["d11"]}
    found = search.search(queries, top_k=2, top_ranked=given, **arguments(task))
    assert [len(found[query]) for query in given] == [2, 0, 1]
    for query, scores in found.items():
        best = sorted(given[query], key=everything[query].get, reverse=True)[:2]
        assert list(scores) == best
        assert scores == {document: everything[query][document] for document in best}


def test_a_task_of_reranking_runs():
    chosen = {query: [*found, "d1", "d2"] for query, found in RELEVANT.items()}
    top_ranked = {query: list(dict.fromkeys(found)) for query, found in chosen.items()}
    found = by_mteb(MTEBSearch(small_model(), "tests/small"), task_of(top_ranked=top_ranked))
    assert found["recall_at_5"] == 1


def test_a_search_returns_no_more_than_it_was_asked_for():
    task, search = task_of(), MTEBSearch(small_model(), "tests/small")
    search.index(rows("d", IMAGE, range(60)), **arguments(task))
    found = search.search(rows("q", TEXT, ASKED), top_k=3, **arguments(task))
    assert set(found) == set(RELEVANT)
    assert {len(each) for each in found.values()} == {3}


def test_titles_and_instructions_are_read_as_mteb_joins_them():
    task, search = task_of(IMAGE, TEXT), MTEBSearch(small_model(), "tests/small")
    split = [text.split(" ", 1) for text in TEXTS]
    whole, titled = (
        datasets.Dataset.from_dict({"id": [f"d{place}" for place in range(60)], **columns})
        for columns in (
            {"text": list(TEXTS)},
            {"title": [one for one, _ in split], "text": [two for _, two in split]},
        )
    )
    search.index(whole, **arguments(task))
    expected = search.gallery
    search.index(titled, **arguments(task))
    assert np.array_equal(search.gallery.rows, expected.rows)


def test_a_task_of_other_modalities_is_refused():
    task, search = task_of(TEXT, TEXT), MTEBSearch(small_model(), "tests/small")
    message = "task SciFact is text→text and this model serves text→image and image→text"
    with pytest.raises(SettingError, match=message):
        search.index(rows("d", TEXT, range(60)), **arguments(task))


def test_nothing_is_found_before_something_is_indexed():
    with pytest.raises(EmptyBatchError, match="call index before search"):
        MTEBSearch(small_model(), "tests/small").search(
            rows("q", TEXT, ASKED), top_k=3, **arguments(task_of())
        )


def test_sounds_become_one_channel_and_videos_are_refused():
    stereo = np.stack([np.zeros(8), np.ones(8)])
    batch = {"audio": [{"array": stereo, "sampling_rate": 16_000}]}
    (found,) = media_of(batch, Modality.AUDIO)
    assert isinstance(found, Audio)
    assert found.rate == 16_000
    assert found.samples.tolist() == [0.5] * 8
    with pytest.raises(SettingError, match="videos of MTEB come without a rate"):
        media_of({"video": []}, Modality.VIDEO)

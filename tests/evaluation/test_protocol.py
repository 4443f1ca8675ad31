"""A task asks every query for items that are really in its gallery."""

import numpy as np
import pytest
import torch

from adaptiveembed.errors import (
    DtypeError,
    DuplicateIdError,
    EmptyBatchError,
    LayoutMismatchError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.evaluation.protocol import RetrievalTask, full_gallery, positive_indices
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.groups import GroupLayout

LAYOUT = GroupLayout((2, 1))
TEXT_TO_IMAGE = Direction(Modality.TEXT, Modality.IMAGE)


def candidate_sets(num_items, seed=0, layout=LAYOUT, dim=4):
    generator = torch.Generator().manual_seed(seed)
    return CandidateSets.normalized(
        torch.randn(num_items, layout.num_candidates, dim, generator=generator), layout
    )


@pytest.fixture
def gallery():
    return Gallery.from_candidates(("a", "b", "c"), candidate_sets(3))


def task(gallery, query_ids=("q1", "q2"), relevant=(("a",), ("c", "b")), queries=None):
    queries = queries or candidate_sets(2, seed=1)
    return RetrievalTask.from_relevant(TEXT_TO_IMAGE, query_ids, queries, gallery, relevant)


def test_relevant_ids_become_gallery_indices_padded_at_the_end(gallery):
    assert positive_indices([["b"], ["c", "a"]], gallery).tolist() == [[1, -1], [2, 0]]


def test_a_task_gives_its_relevant_ids_back(gallery):
    assert task(gallery).relevant == [["a"], ["c", "b"]]
    assert len(task(gallery)) == 2


def test_a_relevant_id_that_is_not_in_the_gallery_is_refused_by_name(gallery):
    with pytest.raises(UnknownIdError, match="'nowhere'"):
        task(gallery, relevant=(("a",), ("nowhere",)))


def test_a_query_without_relevant_ids_is_refused(gallery):
    with pytest.raises(EmptyBatchError, match=r"query 1 \(counted from 0\) has no relevant id"):
        task(gallery, relevant=(("a",), ()))


def test_a_relevant_id_named_twice_is_refused(gallery):
    with pytest.raises(
        DuplicateIdError, match=r"relevant ids of query 0 .* name 'a' more than once"
    ):
        task(gallery, relevant=(("a", "a"), ("b",)))


def test_query_ids_must_be_distinct(gallery):
    with pytest.raises(DuplicateIdError, match="query ids name 'q' more than once"):
        task(gallery, query_ids=("q", "q"))


def test_every_query_needs_an_id_and_positives(gallery):
    with pytest.raises(ShapeError, match="3 query ids, 2 queries and positives for 2"):
        task(gallery, query_ids=("q1", "q2", "q3"))
    with pytest.raises(ShapeError, match="2 query ids, 2 queries and positives for 1"):
        task(gallery, relevant=(("a",),))


def test_queries_of_another_layout_or_width_are_refused(gallery):
    with pytest.raises(LayoutMismatchError, match=r"layout 1\+2 and the gallery 2\+1"):
        task(gallery, queries=candidate_sets(2, layout=GroupLayout((1, 2))))
    with pytest.raises(ShapeError, match="5 dimensions and the gallery's 4"):
        task(gallery, queries=candidate_sets(2, dim=5))


@pytest.mark.parametrize("index", [3, -2])
def test_a_positive_index_outside_of_the_gallery_is_refused(gallery, index):
    with pytest.raises(UnknownIdError, match=f"positive {index} is not among the 3 items"):
        RetrievalTask(TEXT_TO_IMAGE, ("q",), candidate_sets(1), gallery, np.array([[index]]))


def test_a_positive_named_twice_is_refused_when_the_task_is_made(gallery):
    with pytest.raises(DuplicateIdError, match="query 0 names item 2 as positive twice"):
        RetrievalTask(TEXT_TO_IMAGE, ("q",), candidate_sets(1), gallery, np.array([[2, 2]]))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint64])
def test_positives_of_any_integer_kind_are_the_same_positives(gallery, kind):
    positives = np.array([[2]], dtype=kind)
    made = RetrievalTask(TEXT_TO_IMAGE, ("q",), candidate_sets(1), gallery, positives)
    assert (made.positives.dtype, made.positives.tolist()) == (np.int64, [[2]])


@pytest.mark.parametrize("kind", [np.float64, np.bool_])
def test_positives_that_are_not_whole_are_refused(gallery, kind):
    positives = np.array([[1]], dtype=kind)
    with pytest.raises(DtypeError, match=f"whole numbers, got {np.dtype(kind)}; give the indices"):
        RetrievalTask(TEXT_TO_IMAGE, ("q",), candidate_sets(1), gallery, positives)


def test_positives_without_an_axis_of_queries_are_refused(gallery):
    with pytest.raises(ShapeError, match=r"got shape \(1,\); .* needs positives\[:, None\]"):
        RetrievalTask(TEXT_TO_IMAGE, ("q",), candidate_sets(1), gallery, np.array([0]))


def test_a_query_with_nothing_but_padding_is_refused(gallery):
    with pytest.raises(EmptyBatchError, match="query 'q' has no positive"):
        RetrievalTask(TEXT_TO_IMAGE, ("q",), candidate_sets(1), gallery, np.array([[-1, -1]]))


def test_a_full_gallery_holds_every_pair_and_asks_only_the_query_split():
    source, target = candidate_sets(5, seed=1), candidate_sets(5, seed=2)
    ids, query_ids = ["t0", "t1", "t2", "q0", "q1"], ["q0", "q1"]
    forward, backward = full_gallery(ids, source, target, query_ids, TEXT_TO_IMAGE)
    assert (str(forward.direction), str(backward.direction)) == ("text→image", "image→text")
    for one in (forward, backward):
        assert one.gallery.ids == tuple(ids)
        assert one.query_ids == tuple(query_ids)
        assert one.positives.tolist() == [[3], [4]]
    torch.testing.assert_close(forward.queries.vectors, source.vectors[3:])
    torch.testing.assert_close(backward.queries.vectors, target.vectors[3:])
    torch.testing.assert_close(
        forward.gallery.candidates(np.arange(5)).vectors, target.vectors, rtol=0, atol=0
    )


def test_queries_outside_of_the_pairs_are_refused_with_the_remedy():
    pairs = candidate_sets(2), candidate_sets(2)
    with pytest.raises(UnknownIdError, match=r"'q'.*training prefix and of the query split"):
        full_gallery(["a", "b"], *pairs, ["q"], TEXT_TO_IMAGE)


def test_a_text_is_not_taken_for_a_list_of_ids(gallery):
    pairs = candidate_sets(2), candidate_sets(2)
    with pytest.raises(DtypeError, match=r"^ids are a list .* text 'ab'; use \['ab'\]"):
        full_gallery("ab", *pairs, ["a"], TEXT_TO_IMAGE)
    with pytest.raises(DtypeError, match=r"^query ids are a list .* text 'ab'"):
        full_gallery(["a", "b"], *pairs, "ab", TEXT_TO_IMAGE)
    with pytest.raises(DtypeError, match=r"^query ids are a list .* text 'ab'"):
        task(gallery, query_ids="ab")
    with pytest.raises(DtypeError, match=r"relevant ids of query 1 .* text 'b'; use \['b'\]"):
        task(gallery, relevant=(("a",), "b"))


def test_a_full_gallery_without_queries_is_refused():
    with pytest.raises(EmptyBatchError, match="query_ids is empty; name at least one pair"):
        full_gallery(["a", "b"], candidate_sets(2), candidate_sets(2), [], TEXT_TO_IMAGE)

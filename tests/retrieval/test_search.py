"""A score is a function of two sets: nothing else that a search sees changes a bit of it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import (
    CapacityLimitError,
    LayoutMismatchError,
    SettingError,
    ShapeError,
)
from adaptiveembed.retrieval import Gallery, score_gallery, search, top_k
from adaptiveembed.similarity import setsim_matrix
from adaptiveembed.similarity.kernels import panels
from adaptiveembed.structure import CAES, PAPER_LAYOUT, CandidateSets, GroupLayout, Selection
from tests.retrieval.galleries import make_world, worlds
from tests.similarity.sets import unit_sets

permutations = st.randoms(use_true_random=False)


def selected(text, layout=PAPER_LAYOUT):
    return Selection.parse(text, layout)


def same(found, expected):
    """Equal bits, in indices and scores."""
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.scores, expected.scores)


def same_as(expected, gallery, queries):
    """What is found, and every score."""
    found, scores = expected
    same(search(gallery, queries, found.indices.shape[1]), found)
    np.testing.assert_array_equal(score_gallery(gallery, queries), scores)


SELECTIONS = [selected(text) for text in ("1+0", "2+0", "1+2", "2+2", "3+4", "4+4")]


@pytest.fixture(scope="module", params=[torch.float32, torch.float16], ids=str)
def world(request):
    """Mixed selections, several ranges of items, several blocks of dimensions, and near ties."""
    kind = "nearly equal" if request.param == torch.float32 else "random"
    return make_world(kind, 2000, 40, PAPER_LAYOUT, 300, dtype=request.param, selections=SELECTIONS)


@pytest.fixture(scope="module")
def expected(world):
    """What is found, and every score."""
    return search(world.gallery, world.queries, 12), score_gallery(world.gallery, world.queries)


# --- What is found --------------------------------------------------------------------------------


def test_the_nearest_item_by_hand():
    layout = GroupLayout((1, 1))
    items = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.8], [1.0, 0.0]]])
    query = torch.tensor([[[1.0, 0.0], [0.6, 0.8]]])
    gallery = Gallery.from_candidates(["axes", "turned"], CandidateSets(items, layout))
    full = CAES(CandidateSets(query, layout), (selected("1+1", layout),))
    # The axes score the mean of 1 and 0.8; "turned" is the query with its vectors swapped.
    assert search(gallery, full, 2).to_dicts() == [
        [{"id": "turned", "score": 1.0}, {"id": "axes", "score": pytest.approx(0.9)}]
    ]
    first = CAES(CandidateSets(query, layout), (selected("1+0", layout),))
    assert search(gallery, first, 2)[0].ids == ("axes", "turned")


def test_equal_scores_are_listed_in_gallery_order():
    world = make_world("equal", 3000, 3, PAPER_LAYOUT, 16)
    for ranking in search(world.gallery, world.queries, 1500):
        assert ranking.ids == world.gallery.ids[:1500]


def test_the_selection_decides_which_positions_are_compared(world):
    texts = ("1+0", "0+1", "2+2", "4+4")
    for text in texts:
        queries = CAES(world.queries.candidates, (selected(text),) * len(world.queries))
        positions = list(selected(text).positions)
        rows = world.gallery.candidates(np.arange(len(world.gallery))).vectors[:, positions]
        expected = setsim_matrix(queries.candidates.vectors[:, positions], rows)
        found = score_gallery(world.gallery, queries)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3)
        if rows.dtype == torch.float32:  # half vectors are read as unit vectors, single as they are
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("k", [3, 10**12])
def test_a_small_gallery_is_found_whole(k):
    world = make_world("random", 2, 1, PAPER_LAYOUT, 4)
    found = search(world.gallery, world.queries, k)
    assert sorted(found.indices[0].tolist()) == [0, 1]
    assert len(found[0]) == 2


def test_an_empty_gallery_finds_nothing():
    world = make_world("random", 0, 3, PAPER_LAYOUT, 4)
    assert [len(ranking) for ranking in search(world.gallery, world.queries, 5)] == [0, 0, 0]
    assert score_gallery(world.gallery, world.queries).shape == (3, 0)


def test_rankings_carry_the_capacities_and_ids(world):
    found = search(world.gallery, world.queries, 2)
    assert found.capacities.tolist() == world.queries.capacities.tolist()
    assert found.gallery_ids == world.gallery.ids


def test_an_item_finds_itself_first():
    world = make_world("random", 2000, 1, PAPER_LAYOUT, 32)
    places = np.array([0, 3, 1024, 1999])
    queries = CAES(world.gallery.candidates(places), (selected("2+1"),) * 4)
    assert search(world.gallery, queries, 1).indices[:, 0].tolist() == places.tolist()


def test_half_vectors_score_one_with_themselves_and_never_more():
    vectors = unit_sets(50, 8, 64, dtype=torch.float16)
    stretched = CandidateSets((vectors * (1 + 5e-4)).half(), PAPER_LAYOUT)
    gallery = Gallery.from_candidates([str(item) for item in range(50)], stretched)
    scores = score_gallery(gallery, CAES(stretched, (selected("4+4"),) * 50))
    np.testing.assert_allclose(scores.diagonal(), 1, rtol=0, atol=1e-6)
    assert np.abs(scores).max() <= 1


def test_bfloat16_candidates_are_searched_as_unit_vectors():
    candidates = CandidateSets(unit_sets(50, 8, 64, dtype=torch.bfloat16), PAPER_LAYOUT)
    gallery = Gallery.from_candidates([str(item) for item in range(50)], candidates)
    scores = score_gallery(gallery, CAES(candidates, (selected("4+4"),) * 50))
    np.testing.assert_allclose(scores.diagonal(), 1, rtol=0, atol=1e-6)
    assert np.abs(scores).max() <= 1


# --- What does not matter -------------------------------------------------------------------------


@given(worlds(), permutations)
def test_the_order_of_the_gallery_changes_no_score(world, random):
    order = np.array(random.sample(range(len(world.gallery)), len(world.gallery)), np.int64)
    scores = score_gallery(world.gallery, world.queries)
    moved = score_gallery(world.gallery.take(order), world.queries)
    np.testing.assert_array_equal(moved, scores[:, order])


@given(worlds(), permutations)
def test_the_order_of_the_batch_changes_no_score(world, random):
    order = random.sample(range(len(world.queries)), len(world.queries))
    found = search(world.gallery, world.queries, 10)
    moved = search(world.gallery, world.queries[order], 10)
    np.testing.assert_array_equal(moved.indices, found.indices[order])
    np.testing.assert_array_equal(moved.scores, found.scores[order])


@given(worlds(), st.data())
def test_a_query_and_an_item_score_the_same_in_any_company(world, data):
    rows = st.lists(st.integers(0, len(world.queries) - 1), min_size=1, max_size=20)
    places = st.lists(st.integers(0, len(world.gallery) - 1), max_size=20, unique=True)
    queries = data.draw(rows)
    items = np.array(data.draw(places) if len(world.gallery) else [], np.int64)
    whole = score_gallery(world.gallery, world.queries)
    part = score_gallery(world.gallery.take(items), world.queries[queries])
    np.testing.assert_array_equal(part, whole[np.ix_(queries, items)])


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 8, 9, 15, 16, 17, 40])
def test_the_size_of_the_batch_changes_no_bit(world, expected, batch):
    # Few queries are scored by a kernel of their own.
    (whole, scores), part = expected, slice(0, batch)
    found = search(world.gallery, world.queries[part], 12)
    np.testing.assert_array_equal(found.indices, whole.indices[part])
    np.testing.assert_array_equal(found.scores, whole.scores[part])
    np.testing.assert_array_equal(score_gallery(world.gallery, world.queries[part]), scores[part])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_no_bit(world, expected, threads, set_threads):
    set_threads(threads)
    same_as(expected, world.gallery, world.queries)


@pytest.mark.parametrize(
    "setting",
    [
        (panels, "SCRATCH_WORDS", 1),
        (panels, "SCRATCH_WORDS", 1 << 22),
        (panels, "PANEL_LANES", 16),
        (panels, "PANEL_LANES", 4096),
        (top_k, "FIRST_RANGE", 13),
        (top_k, "GROWTH", 2),
        (top_k, "LARGEST_RANGE", 1000),
    ],
    ids=lambda setting: f"{setting[1]} {setting[2]}",
)
def test_the_size_of_tiles_and_ranges_changes_no_bit(world, expected, setting, monkeypatch):
    monkeypatch.setattr(*setting)
    same_as(expected, world.gallery, world.queries)


def test_a_gallery_on_disk_scores_as_one_in_memory(world, expected, tmp_path):
    world.gallery.save(tmp_path / "gallery")
    same_as(expected, Gallery.open(tmp_path / "gallery"), world.queries)


def test_queries_that_do_not_lie_in_order_score_the_same(world, expected):
    vectors = world.queries.candidates.vectors
    turned = vectors.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    queries = CAES(CandidateSets(turned, PAPER_LAYOUT), world.queries.selections)
    same_as(expected, world.gallery, queries)


def test_mixed_selections_find_what_each_finds_alone(world, expected):
    whole, _ = expected
    for query in range(0, len(world.queries), 7):
        alone = search(world.gallery, world.queries[query], 12)
        assert alone.indices[0].tolist() == whole.indices[query].tolist()
        assert alone.scores[0].tolist() == whole.scores[query].tolist()


def test_vectors_that_ask_for_a_gradient_can_be_searched_with():
    world = make_world("random", 30, 2, PAPER_LAYOUT, 4)
    asking = CandidateSets(world.queries.candidates.vectors.clone().requires_grad_(), PAPER_LAYOUT)
    queries = CAES(asking, world.queries.selections)
    same(search(world.gallery, queries, 3), search(world.gallery, world.queries, 3))


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1])
def test_asking_for_no_item_is_refused(k):
    world = make_world("random", 3, 1, PAPER_LAYOUT, 4)
    with pytest.raises(SettingError, match=f"k is {k}; ask for a whole number"):
        search(world.gallery, world.queries, k)


def test_a_whole_number_of_numpy_asks_like_one_of_python():
    world = make_world("random", 5, 2, PAPER_LAYOUT, 4)
    found = search(world.gallery, world.queries, np.int64(3))
    same(found, search(world.gallery, world.queries, 3))


def test_a_truth_is_no_number_of_items():
    world = make_world("random", 3, 1, PAPER_LAYOUT, 4)
    with pytest.raises(SettingError, match="k is True; ask for a whole number"):
        search(world.gallery, world.queries, True)  # noqa: FBT003 - what is refused


def test_the_device_that_torch_makes_tensors_on_does_not_matter(world, expected):
    with torch.device("meta"):
        same_as(expected, world.gallery, world.queries)


@pytest.mark.parametrize("ask", [score_gallery, lambda *sides: search(*sides, 1)])
def test_queries_of_another_model_are_refused(ask):
    gallery = make_world("random", 3, 1, PAPER_LAYOUT, 4).gallery
    with pytest.raises(LayoutMismatchError, match=r"layout 8 and the gallery 4\+4; embed both"):
        ask(gallery, make_world("random", 3, 1, GroupLayout((8,)), 4).queries)
    with pytest.raises(ShapeError, match="5 dimensions and the gallery's 4; embed both"):
        ask(gallery, make_world("random", 3, 1, PAPER_LAYOUT, 5).queries)


@pytest.mark.parametrize("ask", [score_gallery, lambda *sides: search(*sides, 1)])
def test_a_selection_of_more_than_eight_is_refused_and_eight_of_nine_are_not(ask):
    nine = GroupLayout((9,))
    ask_for = {size: [selected(str(size), nine)] for size in (8, 9)}
    world = make_world("random", 3, 1, nine, 4, selections=ask_for[8])
    ask(world.gallery, world.queries)
    too_many = make_world("random", 3, 1, nine, 4, selections=ask_for[9]).queries
    with pytest.raises(CapacityLimitError, match=r"sets of 9 vectors .*; select fewer positions"):
        ask(world.gallery, too_many)

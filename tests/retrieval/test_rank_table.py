"""Ranks counted in one pass are the ranks that all scores at once would give."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.errors import (
    CapacityLimitError,
    DuplicateIdError,
    EmptyBatchError,
    LayoutMismatchError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.metrics import ranks_of_positives
from adaptiveembed.retrieval import rank_table, score_gallery
from adaptiveembed.structure import CAES, PAPER_LAYOUT, GroupLayout, Selection, every_prefix
from tests.reference import rank_table as literal
from tests.retrieval.galleries import LAYOUTS, make_world
from tests.similarity.sets import KINDS

TWENTY = every_prefix(PAPER_LAYOUT).nodes
FEW = [Selection.parse(text, PAPER_LAYOUT) for text in ("4+4", "1+0", "2+3", "0+2")]


def make_positives(queries, items, width, seed=0):
    """Distinct places in every row, of which some are filled up with -1 anywhere but all."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(items, size=min(width, items), replace=False) for _ in range(queries)]
    positives = np.array(rows, np.int64)
    positives[:, 1:][rng.random((queries, positives.shape[1] - 1)) < 0.4] = -1
    return rng.permuted(positives, axis=1)


def all_scores(world, selections):
    candidates = world.queries.candidates
    return [
        score_gallery(world.gallery, CAES(candidates, (each,) * len(candidates)))
        for each in selections
    ]


def table(world, positives, selections, **options):
    return rank_table(world.gallery, world.queries.candidates, positives, selections, **options)


def check(world, positives, selections):
    scores = all_scores(world, selections)
    expected = np.stack([ranks_of_positives(matrix, positives) for matrix in scores])
    np.testing.assert_array_equal(table(world, positives, selections), expected)


@st.composite
def small_worlds(draw):
    """Few kernels and few different scores: many positives tie with other items."""
    kind, seed = draw(st.sampled_from(sorted(KINDS))), draw(st.integers(0, 99))
    dtype = draw(st.sampled_from([torch.float32, torch.float16]))
    size, dim = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    world = make_world(
        kind, size, draw(st.integers(1, 20)), PAPER_LAYOUT, dim, seed=seed, dtype=dtype
    )
    return world, make_positives(len(world.queries), size, draw(st.integers(1, 4)), seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_selection_of_every_layout_at_once(kind, layout):
    world = make_world(kind, 700, 9, layout, 20)
    check(world, make_positives(9, 700, 3), every_prefix(layout).nodes)


@pytest.mark.parametrize("dim", [1, 3, 64, 256, 257, 1000])
def test_every_dimension(dim):
    world = make_world("nearly equal", 300, 5, PAPER_LAYOUT, dim)
    check(world, make_positives(5, 300, 2), FEW)


@pytest.mark.parametrize("queries", [1, 7, 15, 16, 17, 63, 64, 65, 130])
def test_batches_of_every_size(queries):
    world = make_world("nearly equal", 200, queries, PAPER_LAYOUT, 12)
    check(world, make_positives(queries, 200, 3), FEW)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_one_positive_under_the_twenty_selections(dtype):
    world = make_world("random", 2000, 20, PAPER_LAYOUT, 32, dtype=dtype)
    check(world, make_positives(20, 2000, 1), TWENTY)


@given(small_worlds())
def test_several_positives_and_ties(case):
    check(*case, FEW)


@given(small_worlds(), st.data())
def test_only_the_items_named_are_counted(case, data):
    world, positives = case
    items = st.integers(0, len(world.gallery) - 1)
    counted = np.array(data.draw(st.lists(items, unique=True, max_size=30)), np.int64)
    expected = literal.rank_table(all_scores(world, FEW), positives, counted.tolist())
    np.testing.assert_array_equal(table(world, positives, FEW, among=counted), expected)


@settings(max_examples=50)
@given(small_worlds())
def test_naming_all_items_is_naming_none(case):
    world, positives = case
    everything = np.arange(len(world.gallery))[::-1]
    expected = table(world, positives, FEW)
    np.testing.assert_array_equal(table(world, positives, FEW, among=everything), expected)


def test_items_named_with_a_stride_are_the_items_counted():
    world, positives = make_world("random", 200, 8, PAPER_LAYOUT, 8), make_positives(8, 200, 2)
    every_third = np.arange(200)[::3]
    expected = table(world, positives, FEW, among=every_third.copy())
    np.testing.assert_array_equal(table(world, positives, FEW, among=every_third), expected)


def test_duplicates_of_a_positive_stand_before_it():
    world = make_world("equal", 50, 3, PAPER_LAYOUT, 8)
    one = table(world, np.array([[0], [25], [49]]), FEW)
    np.testing.assert_array_equal(one, np.full((4, 3, 1), 50))
    two = table(world, np.array([[0, 1], [-1, 25], [49, 0]]), FEW)
    np.testing.assert_array_equal(two, np.broadcast_to([[49, 50], [50, 0], [49, 50]], (4, 3, 2)))


def test_a_positive_outside_of_the_items_counted_is_ranked_among_them():
    world = make_world("equal", 50, 2, PAPER_LAYOUT, 8)
    inside, outside = np.array([[3], [3]]), np.array([[30], [30]])
    counted = np.arange(10)
    assert (table(world, inside, FEW, among=counted) == 10).all()
    assert (table(world, outside, FEW, among=counted) == 11).all()
    assert (table(world, outside, FEW, among=counted[:0]) == 1).all()


@settings(max_examples=50)
@given(small_worlds(), st.randoms(use_true_random=False))
def test_the_order_of_gallery_and_batch_changes_no_rank(case, random):
    world, positives = case
    items, queries = len(world.gallery), len(world.queries)
    order = np.array(random.sample(range(items), items))
    batch = random.sample(range(queries), queries)
    moved = np.where(positives >= 0, np.argsort(order)[positives], -1)
    found = rank_table(
        world.gallery.take(order), world.queries.candidates[batch], moved[batch], FEW
    )
    np.testing.assert_array_equal(found, table(world, positives, FEW)[:, batch])


@settings(max_examples=50)
@given(small_worlds())
def test_a_selection_has_the_same_ranks_whatever_it_is_asked_with(case):
    together = table(*case, FEW)
    alone = [table(*case, [each])[0] for each in FEW]
    np.testing.assert_array_equal(together, np.stack(alone))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_no_rank(threads, set_threads):
    world, positives = (
        make_world("nearly equal", 900, 20, PAPER_LAYOUT, 40),
        make_positives(20, 900, 2),
    )
    expected = table(world, positives, FEW)
    set_threads(threads)
    np.testing.assert_array_equal(table(world, positives, FEW), expected)


def test_a_gallery_of_one_item_ranks_it_first():
    world = make_world("random", 1, 3, PAPER_LAYOUT, 8)
    assert (table(world, np.zeros((3, 1), np.int64), TWENTY) == 1).all()


# --- What is refused ------------------------------------------------------------------------------


@pytest.fixture
def world():
    return make_world("random", 5, 2, PAPER_LAYOUT, 4)


@pytest.mark.parametrize("place", [5, -2])
def test_a_positive_that_is_not_in_the_gallery_is_refused(world, place):
    with pytest.raises(UnknownIdError, match=rf"positive {place} is not among the 5 items"):
        table(world, np.array([[0], [place]]), FEW)


@pytest.mark.parametrize("place", [5, -1, 10**9])
def test_an_item_to_count_that_is_not_in_the_gallery_is_refused(world, place):
    with pytest.raises(UnknownIdError, match=rf"item {place} is not in the gallery of 5 items"):
        table(world, np.array([[0], [1]]), FEW, among=np.array([0, place]))


def test_a_query_without_positive_is_refused(world):
    with pytest.raises(EmptyBatchError, match="query 1 has no positive; leave it out or name one"):
        table(world, np.array([[0, 1], [-1, -1]]), FEW)


def test_the_same_positive_twice_is_refused(world):
    with pytest.raises(DuplicateIdError, match="query 1 names item 2 as positive twice"):
        table(world, np.array([[0, 1], [2, 2]]), FEW)


def test_positives_for_another_number_of_queries_are_refused(world):
    with pytest.raises(ShapeError, match="2 queries; give one row"):
        table(world, np.array([[0]]), FEW)


def test_no_selection_is_refused(world):
    with pytest.raises(EmptyBatchError, match="at least one selection"):
        table(world, np.array([[0], [1]]), [])


def test_a_selection_of_another_layout_is_refused(world):
    other = Selection.parse("2+2", GroupLayout((3, 5)))
    with pytest.raises(LayoutMismatchError, match=r"2\+2 has layout 3\+5 and the gallery 4\+4"):
        table(world, np.array([[0], [1]]), [*FEW, other])


def test_a_selection_of_nine_is_refused_and_ten_positions_shared_by_several_are_not():
    layout = GroupLayout((5, 5))
    world = make_world("random", 30, 2, layout, 4)
    check(world, np.array([[0], [1]]), [Selection.parse(text, layout) for text in ("5+3", "3+5")])
    with pytest.raises(CapacityLimitError, match="sets of 9 vectors"):
        table(world, np.array([[0], [1]]), [Selection.parse("5+4", layout)])


def test_queries_of_another_model_are_refused(world):
    other = make_world("random", 5, 2, PAPER_LAYOUT, 5).queries.candidates
    with pytest.raises(ShapeError, match="5 dimensions and the gallery's 4; embed both"):
        rank_table(world.gallery, other, np.array([[0], [1]]), FEW)


def test_selections_may_be_given_one_by_one(world):
    positives = np.array([[0], [1]])
    expected = table(world, positives, FEW)
    np.testing.assert_array_equal(table(world, positives, iter(FEW)), expected)

"""Ranks obey the pessimistic rule, however they are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import (
    DtypeError,
    DuplicateIdError,
    EmptyBatchError,
    NotFiniteError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.metrics import ranks_from_counts, ranks_of_positives
from tests.reference.ranks import rank_of_only_positive, ranks_of_several_positives

# Few different values, so that most scores are equal to another.
SCORES = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0])


@st.composite
def scored_queries(draw, max_positives=4):
    """Scores of some queries and a ragged list of positives for each."""
    num_queries, num_items = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    row = st.lists(SCORES, min_size=num_items, max_size=num_items)
    relevant = st.lists(st.integers(0, num_items - 1), max_size=max_positives, unique=True)
    scores = draw(st.lists(row, min_size=num_queries, max_size=num_queries))
    return scores, draw(st.lists(relevant, min_size=num_queries, max_size=num_queries))


def filled_up(rows, filling, width=None):
    width = width or max(1, *(len(row) for row in rows), 1)
    return np.array([[*row, *[filling] * (width - len(row))] for row in rows], dtype=np.int64)


def one_query(scores, *positives):
    return ranks_of_positives(np.array([scores]), np.array([positives])).tolist()[0]


def test_the_best_item_has_rank_one():
    assert one_query([0.1, 0.9, 0.3], 1) == [1]


def test_every_other_item_with_the_same_score_stands_before_the_positive():
    assert one_query([0.5, 0.5, 0.9, 0.5, 0.1], 1) == [4]


def test_a_constant_score_puts_the_positive_last():
    assert one_query([0.0] * 7, 3) == [7]


def test_the_place_of_the_positive_in_the_gallery_does_not_matter():
    assert [one_query([0.2, 0.2, 0.2], positive) for positive in range(3)] == [[3], [3], [3]]


def test_other_positives_are_no_rivals():
    assert one_query([0.9, 0.8, 0.7, 0.6], 3, 1) == [2, 4]


def test_equal_positives_take_one_place_each_behind_their_rivals():
    assert one_query([0.5, 0.5, 0.5, 0.5], 0, 2) == [3, 4]


def test_queries_with_fewer_positives_end_in_zeros_wherever_the_filling_stood():
    scores = np.array([[0.9, 0.5, 0.1]] * 3)
    positives = np.array([[2, 0], [-1, 1], [-1, -1]])
    assert ranks_of_positives(scores, positives).tolist() == [[1, 3], [2, 0], [0, 0]]


@given(scored_queries(max_positives=1))
def test_one_positive_has_one_more_than_the_others_not_below_it(case):
    scores, relevant = case
    ranks = ranks_of_positives(np.array(scores), filled_up(relevant, -1))
    for row, positives, found in zip(scores, relevant, ranks, strict=True):
        assert found[0] == (rank_of_only_positive(row, positives[0]) if positives else 0)


@given(scored_queries())
def test_several_positives_have_the_ranks_of_the_literal_twin(case):
    scores, relevant = case
    expected = [
        ranks_of_several_positives(row, positives)
        for row, positives in zip(scores, relevant, strict=True)
    ]
    found = ranks_of_positives(np.array(scores), filled_up(relevant, -1))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, filled_up(expected, 0, width=found.shape[1]))


@given(scored_queries(), st.randoms(use_true_random=False))
def test_ranks_do_not_depend_on_the_order_of_items_or_of_positives(case, random):
    scores, positives = np.array(case[0]), filled_up(case[1], -1)
    order = random.sample(range(scores.shape[1]), scores.shape[1])
    moved_to = np.argsort(order)
    moved = np.where(positives >= 0, moved_to[positives], -1)[:, ::-1]
    np.testing.assert_array_equal(
        ranks_of_positives(scores[:, order], moved), ranks_of_positives(scores, positives)
    )


@given(scored_queries(), SCORES)
def test_one_more_irrelevant_item_never_improves_a_rank(case, score):
    scores, positives = np.array(case[0]), filled_up(case[1], -1)
    more = np.concatenate([scores, np.full((len(scores), 1), score)], axis=1)
    assert (ranks_of_positives(more, positives) >= ranks_of_positives(scores, positives)).all()


@given(scored_queries())
def test_counting_in_parts_of_the_gallery_gives_the_same_ranks(case):
    scores, positives = np.array(case[0]), filled_up(case[1], -1)
    valid = positives >= 0
    own = np.take_along_axis(scores, np.maximum(positives, 0), axis=1)
    counts = np.zeros_like(positives)
    for item in range(scores.shape[1]):
        counts += scores[:, item, None] >= own
    np.testing.assert_array_equal(
        ranks_from_counts(counts, own, valid), ranks_of_positives(scores, positives)
    )


def test_counts_take_any_axes_before_the_positives():
    counts = np.array([[[3, 5]], [[4, 4]]])
    scores = np.array([[[0.7, 0.2]], [[0.4, 0.4]]])
    ranks = ranks_from_counts(counts, scores, np.ones((2, 1, 2), dtype=bool))
    # 0.7: 2 rivals; 0.2: 3 rivals. Both 0.4: 2 rivals, and places one and two.
    assert ranks.tolist() == [[[3, 5]], [[3, 4]]]


def test_what_stands_in_the_filling_does_not_matter():
    valid = np.array([[True, False, False]])
    scores = np.array([[0.3, np.inf, np.nan]])
    ranks = ranks_from_counts(np.array([[2, 99, -7]]), scores, valid)
    assert ranks.tolist() == [[2, 0, 0]]


def test_infinite_scores_are_ranked_like_any_other():
    assert one_query([-np.inf, np.inf, 0.0, -np.inf], 0) == [4]
    assert one_query([-np.inf, np.inf, 0.0, -np.inf], 1) == [1]


def test_scores_of_nothing_are_refused():
    with pytest.raises(EmptyBatchError, match="give at least one item"):
        ranks_of_positives(np.zeros((1, 0)), np.array([[-1]]))


def test_a_score_that_is_not_a_number_is_found_where_it_is():
    scores = np.array([[0.1, 0.2], [0.3, np.nan]])
    with pytest.raises(NotFiniteError, match="query 1 with item 1 is NaN and cannot be ranked"):
        ranks_of_positives(scores, np.array([[0], [0]]))


@pytest.mark.parametrize("positive", [-2, 3])
def test_a_positive_that_is_no_item_is_refused(positive):
    expected = f"positive {positive} is not among the 3 items; choose 0 to 2, or -1 for none"
    with pytest.raises(UnknownIdError, match=expected):
        one_query([0.1, 0.2, 0.3], positive)


def test_a_positive_named_twice_is_refused():
    with pytest.raises(DuplicateIdError, match="query 1 names item 2 as positive twice"):
        ranks_of_positives(np.zeros((2, 3)), np.array([[0, -1, -1], [2, -1, 2]]))


def test_every_query_needs_a_row_of_positives():
    with pytest.raises(ShapeError, match="scores of 2 queries and positives of 3; give one row"):
        ranks_of_positives(np.zeros((2, 4)), np.array([[0], [1], [2]]))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint64])
def test_positives_of_any_integer_kind_have_the_same_ranks(kind):
    scores, positives = np.array([[0.1, 0.9, 0.5]]), np.array([[0, 2]], dtype=kind)
    assert ranks_of_positives(scores, positives).tolist() == [[2, 3]]


@pytest.mark.parametrize("kind", [np.float32, np.bool_])
def test_positives_that_are_not_whole_are_refused(kind):
    with pytest.raises(DtypeError, match=f"whole numbers, got {np.dtype(kind)}; give the indices"):
        ranks_of_positives(np.zeros((1, 3)), np.array([[1]], dtype=kind))


def test_positives_without_an_axis_of_queries_are_refused():
    with pytest.raises(
        ShapeError, match=r"\[queries, positives\], got shape \(1,\); .*\[:, None\]"
    ):
        ranks_of_positives(np.zeros((1, 3)), np.array([1]))

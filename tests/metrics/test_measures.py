"""Measures, by hand and beside the textbook."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError
from adaptiveembed.metrics import (
    MEASURES,
    average_precision,
    first_rank,
    ndcg,
    recall_at,
    reciprocal_rank,
)
from tests.reference import measures as textbook

every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
rank_sets = st.lists(st.integers(1, 30), min_size=1, max_size=5, unique=True).map(sorted)


def ranks_of(*queries):
    width = max(len(query) for query in queries)
    return np.array([[*query, *[0] * (width - len(query))] for query in queries], dtype=np.int64)


def marks_of(ranks):
    return [place in ranks for place in range(1, max(ranks) + 1)]


def test_average_precision_by_hand():
    # Positives at 1 and 4: precisions 1/1 and 2/4. One at 5: 1/5.
    np.testing.assert_allclose(average_precision(ranks_of([1, 4], [5])), [0.75, 0.2])


def test_recall_by_hand():
    ranks = ranks_of([1, 4, 5], [5], [6])
    np.testing.assert_allclose(recall_at(ranks, 4), [2 / 3, 0, 0])
    np.testing.assert_allclose(recall_at(ranks, 5), [1, 1, 0])


def test_ndcg_by_hand():
    ideal = 1 + 1 / log2(3)
    expected = [(1 + 1 / log2(5)) / ideal, 1 / log2(4)]
    np.testing.assert_allclose(ndcg(ranks_of([1, 4], [3])), expected)


def test_first_and_reciprocal_rank_by_hand():
    np.testing.assert_array_equal(first_rank(ranks_of([2, 3], [4])), [2, 4])
    np.testing.assert_array_equal(reciprocal_rank(ranks_of([2, 3], [4])), [0.5, 0.25])


@given(st.lists(rank_sets, min_size=1, max_size=4))
def test_measures_are_those_of_the_textbook(queries):
    ranks = ranks_of(*queries)
    marks = [marks_of(query) for query in queries]
    twins = {
        "mAP": textbook.average_precision,
        "nDCG": textbook.ndcg,
        "MRR": textbook.reciprocal_rank,
        "MeanR": textbook.first_rank,
        "R@1": lambda row: textbook.recall_at(row, 1),
        "R@5": lambda row: textbook.recall_at(row, 5),
        "R@10": lambda row: textbook.recall_at(row, 10),
    }
    assert twins.keys() == MEASURES.keys()
    for name, twin in twins.items():
        np.testing.assert_allclose(MEASURES[name](ranks), [twin(row) for row in marks])


@given(st.integers(1, 10**6))
def test_with_one_positive_average_precision_is_one_over_the_rank(rank):
    assert average_precision(ranks_of([rank])) == pytest.approx(1 / rank)
    assert average_precision(ranks_of([rank])) == reciprocal_rank(ranks_of([rank]))


@every_measure
@given(queries=st.lists(rank_sets, min_size=1, max_size=4))
def test_a_query_is_measured_alone_and_filling_does_not_count(measure, queries):
    together = measure(ranks_of(*queries))
    alone = [measure(ranks_of(query)).item() for query in queries]
    np.testing.assert_array_equal(together, alone)


@every_measure
@given(rank_sets, st.integers(1, 5))
def test_worse_ranks_never_measure_better(measure, ranks, drop):
    better, worse = measure(ranks_of(ranks)), measure(ranks_of([rank + drop for rank in ranks]))
    assert worse >= better if measure is first_rank else worse <= better


@pytest.mark.parametrize("name", [name for name in MEASURES if name != "MeanR"])
@given(st.integers(1, 5), rank_sets)
def test_shares_lie_between_zero_and_one_and_the_ideal_ranking_reaches_it(name, number, ranks):
    assert 0 <= MEASURES[name](ranks_of(ranks)) <= 1 + 1e-12
    ideal = list(range(1, number + 1))
    at_best = MEASURES[name](ranks_of(ideal)).item()
    reachable = 1 / number if name == "R@1" else 1
    assert at_best == pytest.approx(reachable)


@every_measure
def test_a_table_of_selections_is_measured_query_by_query(measure):
    table = np.array([[[1, 3], [2, 0]], [[2, 4], [7, 0]], [[5, 6], [1, 0]]])
    expected = np.stack([measure(row) for row in table])
    assert measure(table).shape == (3, 2)
    assert measure(table).dtype == np.float64
    np.testing.assert_array_equal(measure(table), expected)


@every_measure
def test_no_queries_have_no_measures(measure):
    assert measure(np.zeros((0, 1), dtype=np.int64)).shape == (0,)


@every_measure
def test_ranks_stay_as_they_were(measure):
    ranks = ranks_of([1, 4], [5])
    measure(ranks)
    assert ranks.tolist() == [[1, 4], [5, 0]]


@every_measure
def test_a_query_without_positive_is_refused(measure):
    with pytest.raises(EmptyBatchError, match=r"ranks\[1\] begins with 0: .*; leave the query out"):
        measure(np.array([[3], [0]]))
    with pytest.raises(
        EmptyBatchError, match=r"shape \(2, 0\) hold no positive; give at least one"
    ):
        measure(np.zeros((2, 0), dtype=np.int64))


@every_measure
@pytest.mark.parametrize("row", [[2, 1, 0], [2, 2, 0], [1, 0, 3], [-1, 0, 0], [1, -1, 0]], ids=str)
def test_ranks_out_of_order_are_refused_and_shown(measure, row):
    with pytest.raises(ShapeError, match=r"ranks\[0, 1\] is .*; ranks are counted from 1") as info:
        measure(np.array([[[1, 2, 3], row]]))
    assert f"{row}" in str(info.value)


@pytest.mark.parametrize("k", [0, -1])
def test_recall_among_nothing_is_refused(k):
    with pytest.raises(SettingError, match=f"got k = {k}"):
        recall_at(ranks_of([1]), k)

"""Rankings hold what was found, best first, and give it out one query at a time."""

import json

import numpy as np
import pytest

from adaptiveembed.errors import DtypeError, ShapeError
from adaptiveembed.retrieval.ranking import Hit, Rankings


def rankings(indices=((2, 0), (1, -1)), scores=((0.5, 0.25), (-0.5, -np.inf)), capacities=(1, 4)):
    return Rankings(
        indices=np.array(indices, dtype=np.int64),
        scores=np.array(scores, dtype=np.float32),
        gallery_ids=("a", "b", "c"),
        capacities=np.array(capacities, dtype=np.int64),
    )


def test_a_ranking_names_the_items_found_best_first():
    first = rankings()[0]
    assert first.ids == ("c", "a")
    assert first.scores.tolist() == [0.5, 0.25]
    assert first.capacity == 1


def test_padding_is_left_out_and_a_negative_score_is_not():
    assert list(rankings()[1]) == [Hit("b", -0.5)]


def test_rankings_have_one_ranking_per_query_in_order():
    assert len(rankings()) == 2
    assert [len(one) for one in rankings()] == [2, 1]
    assert rankings()[-1].ids == ("b",)


def test_a_query_that_is_not_there_ends_in_an_index_error():
    with pytest.raises(IndexError):
        rankings()[2]


def test_dicts_are_ready_for_json():
    expected = [
        [{"id": "c", "score": 0.5}, {"id": "a", "score": 0.25}],
        [{"id": "b", "score": -0.5}],
    ]
    assert json.loads(json.dumps(rankings().to_dicts())) == expected


def test_an_empty_gallery_gives_empty_rankings():
    empty = Rankings(
        np.full((1, 2), -1), np.full((1, 2), -np.inf, dtype=np.float32), (), np.array([1])
    )
    assert empty.to_dicts() == [[]]


@pytest.mark.parametrize(
    "given",
    [
        {"scores": ((0.5,), (0.25,))},
        {"capacities": (1,)},
        {"indices": (2, 0)},
    ],
)
def test_arrays_that_do_not_fit_together_are_refused_with_their_shapes(given):
    with pytest.raises(ShapeError, match=r"indices \(2,.*one capacity per query"):
        rankings(**given)


@pytest.mark.parametrize("index", [3, -2])
def test_an_index_outside_of_the_gallery_is_refused_by_value(index):
    with pytest.raises(ShapeError, match=f"index {index} lies outside of a gallery of 3 items"):
        rankings(indices=((2, 0), (index, -1)))


def test_scores_in_double_precision_are_refused():
    with pytest.raises(
        DtypeError, match=r"scores are float64; convert them with .astype\('float32"
    ):
        Rankings(np.array([[0]]), np.array([[0.5]]), ("a",), np.array([1]))


def test_an_item_after_the_filling_is_refused():
    with pytest.raises(ShapeError, match=r"query 1 are \[-1, 1\].* filling at the end of the row"):
        rankings(indices=((2, 0), (-1, 1)))

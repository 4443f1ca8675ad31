"""Evaluation says the same whichever way it is reached, and what a full sort would say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from adaptiveembed.allocation.fixed import FixedAllocator
from adaptiveembed.allocation.oracle import OracleAllocator
from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError, UnknownSelectionError
from adaptiveembed.evaluation.evaluate import (
    SelectionRanks,
    allocation_evaluation,
    best_fixed,
    evaluate,
    evaluate_every_selection,
    fixed_evaluation,
    oracle_evaluation,
    oracle_selections,
)
from adaptiveembed.structure.candidates import CAES
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import coarse_to_fine, every_prefix
from tests.evaluation.worlds import LAYOUT, TEXT_TO_IMAGE, both_directions, several_positives
from tests.reference import measures as textbook


class EveryThird:
    """An allocator for tests: by the sign of a coordinate, one of two selections."""

    def allocate(self, candidates):
        small, large = Selection.parse("1+0", LAYOUT), Selection.parse("2+1", LAYOUT)
        signs = candidates.vectors[:, 0, 0].tolist()
        return CAES(candidates, tuple(small if sign < 0 else large for sign in signs))


def literal_scores(task, query, selection):
    """SetSim of one query with every gallery item, by scipy's assignment."""
    active = list(selection.positions)
    vectors = task.queries.numpy()[query, active].astype(np.float64)
    scores = []
    for item in task.gallery.rows[active].transpose(1, 0, 2).astype(np.float64):
        cosines = vectors @ item.T
        scores.append(cosines[linear_sum_assignment(-cosines)].sum() / len(active))
    return scores


def check_against_textbook(task, result):
    for query, selection in enumerate(result.selections):
        relevant = [int(index) for index in task.positives[query] if index >= 0]
        marks = textbook.relevance_marks(literal_scores(task, query, selection), relevant)
        expected = {
            "mAP": textbook.average_precision(marks),
            "MRR": textbook.reciprocal_rank(marks),
            "R@1": textbook.recall_at(marks, 1),
            "R@5": textbook.recall_at(marks, 5),
            "R@10": textbook.recall_at(marks, 10),
            "nDCG": textbook.ndcg(marks),
            "MeanR": textbook.first_rank(marks),
        }
        got = {name: values[query] for name, values in result.measures.items()}
        assert got == pytest.approx(expected)


def test_every_measure_is_what_a_literal_search_gives_in_both_directions():
    tasks = both_directions()
    evaluation = evaluate(tasks, EveryThird())
    assert {one.capacity for one in evaluation.directions[0].selections} == {1, 3}
    for task, result in zip(tasks, evaluation.directions, strict=True):
        check_against_textbook(task, result)


def test_every_measure_is_what_a_literal_search_gives_with_several_positives():
    task = several_positives()
    check_against_textbook(task, evaluate([task], Selection.full(LAYOUT)).directions[0])


def test_bucketed_evaluation_equals_one_query_at_a_time():
    (task, _) = both_directions()
    together = evaluate([task], EveryThird()).directions[0]
    table = evaluate_every_selection(task, every_prefix(LAYOUT))
    np.testing.assert_array_equal(together.ranks, table.under(together.selections))


@pytest.mark.parametrize("space", [coarse_to_fine(LAYOUT), every_prefix(LAYOUT)])
def test_a_table_says_of_a_fixed_selection_what_evaluating_it_says(space):
    tasks = both_directions()
    tables = [evaluate_every_selection(task, space) for task in tasks]
    for node in space.nodes:
        direct, read_off = evaluate(tasks, node), fixed_evaluation(tables, node)
        assert direct.means == read_off.means
        assert direct.method == read_off.method == f"fixed {node}"
        assert direct.gallery_vectors_stored == read_off.gallery_vectors_stored


def test_a_table_says_of_the_oracle_what_evaluating_it_says():
    tasks, space = both_directions(), every_prefix(LAYOUT)
    tables = [evaluate_every_selection(task, space) for task in tasks]
    allocators = {
        one.direction: OracleAllocator(space, one.gallery, one.positives) for one in tasks
    }
    direct, read_off = evaluate(tasks, allocators, "oracle"), oracle_evaluation(tables)
    assert direct.means == read_off.means
    assert direct.query_vectors == read_off.query_vectors
    assert direct.directions[1].selections == oracle_selections(tables[1])


def test_any_allocation_can_be_read_off_the_tables():
    space = every_prefix(LAYOUT)
    tables = [evaluate_every_selection(task, space) for task in both_directions()]
    chosen = [oracle_selections(table) for table in tables]
    read_off = allocation_evaluation(tables, chosen, "ours")
    assert read_off.method == "ours"
    assert read_off.means == oracle_evaluation(tables).means


def test_the_oracle_is_at_least_the_best_fixed_selection():
    tables = [evaluate_every_selection(one, every_prefix(LAYOUT)) for one in both_directions()]
    fixed = fixed_evaluation(tables, best_fixed(tables))
    assert oracle_evaluation(tables).means["mAP"] >= fixed.means["mAP"]


def test_no_selection_beats_the_best_fixed_one():
    tables = [evaluate_every_selection(one, every_prefix(LAYOUT)) for one in both_directions()]
    scores = {node: fixed_evaluation(tables, node).means["mAP"] for node in tables[0].space.nodes}
    best = best_fixed(tables)
    assert scores[best] == max(scores.values())
    assert best.capacity == min(
        node.capacity for node, score in scores.items() if score == scores[best]
    )


@given(st.permutations(range(1, 14)), st.randoms(use_true_random=False))
def test_equal_means_tie_whatever_order_they_are_summed_in(ranks, random):
    space = every_prefix(LAYOUT)
    task, _ = both_directions(20, 13)
    # The same ranks under every selection, dealt to the queries anew.
    dealt = [random.sample(ranks, len(ranks)) for _ in space.nodes]
    table = SelectionRanks(task, space, np.array(dealt)[..., None])
    assert best_fixed([table]) == space.root


def test_capacity_is_averaged_over_queries_and_measures_over_directions():
    evaluation = evaluate(both_directions(), EveryThird())
    first, second = evaluation.directions
    capacities = [one.capacity for each in (first, second) for one in each.selections]
    assert evaluation.query_vectors == np.mean(capacities)
    assert evaluation.means["mAP"] == pytest.approx((first.means["mAP"] + second.means["mAP"]) / 2)


def test_a_fixed_selection_stores_its_own_vectors_and_an_adaptive_one_all():
    tasks = both_directions()
    assert evaluate(tasks, Selection.parse("2+0", LAYOUT)).gallery_vectors_stored == 2
    assert evaluate(tasks, EveryThird()).gallery_vectors_stored == 4


def test_methods_are_named_by_themselves_unless_told():
    tasks = both_directions()
    assert evaluate(tasks, FixedAllocator(Selection.parse("2+0", LAYOUT))).method == "fixed 2+0"
    assert evaluate(tasks, EveryThird()).method == "EveryThird"
    assert evaluate(tasks, EveryThird(), "third").method == "third"


def test_a_mapping_may_give_every_direction_a_selection_of_its_own():
    forward, backward = both_directions()
    small, large = Selection.parse("1+0", LAYOUT), Selection.parse("2+1", LAYOUT)
    chosen = {forward.direction: small, backward.direction: FixedAllocator(large)}
    evaluation = evaluate([forward, backward], chosen)
    for result, own in zip(evaluation.directions, (small, large), strict=True):
        assert set(result.selections) == {own}
        assert result.gallery_vectors_stored == own.capacity
    assert evaluation.method == "fixed 1+0, fixed 2+1"


def test_a_method_that_serves_both_directions_is_named_once():
    allocators = {task.direction: EveryThird() for task in both_directions()}
    assert evaluate(both_directions(), allocators).method == "EveryThird"


def test_no_task_is_refused():
    with pytest.raises(EmptyBatchError, match="at least one retrieval task"):
        evaluate([], Selection.full(LAYOUT))


def test_a_direction_without_allocator_is_refused_by_name():
    with pytest.raises(SettingError, match="for direction image→text; the mapping has text→image"):
        evaluate(both_directions(), {TEXT_TO_IMAGE: EveryThird()})


def test_an_allocator_that_loses_queries_is_refused():
    class Forgetful:
        def allocate(self, candidates):
            return EveryThird().allocate(candidates[:2])

    with pytest.raises(ShapeError, match="returned 2 items for 8 queries"):
        evaluate(both_directions(), Forgetful())


def test_a_selection_outside_of_the_space_of_a_table_is_refused():
    table = evaluate_every_selection(both_directions()[0], coarse_to_fine(LAYOUT))
    with pytest.raises(UnknownSelectionError, match=r"1\+2"):
        table.under([Selection.parse("1+2", LAYOUT)] * 8)


def test_a_table_wants_one_selection_for_every_query():
    table = evaluate_every_selection(both_directions()[0], coarse_to_fine(LAYOUT))
    with pytest.raises(ShapeError, match="got 2 selections for 8 queries"):
        table.under(table.space.nodes[:2])


def test_tables_of_different_spaces_have_no_best_selection():
    forward, backward = both_directions()
    tables = [
        evaluate_every_selection(forward, every_prefix(LAYOUT)),
        evaluate_every_selection(backward, coarse_to_fine(LAYOUT)),
    ]
    with pytest.raises(SettingError, match="of 6 and of 4 selections"):
        best_fixed(tables)


def test_the_same_direction_twice_is_refused():
    forward, _ = both_directions()
    with pytest.raises(SettingError, match="text→image is evaluated 2 times by 'fixed 2"):
        evaluate([forward, forward], Selection.full(LAYOUT))

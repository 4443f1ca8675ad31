"""The transfer oracle chooses on one half of the distractors and is scored on the other."""

import numpy as np
import pytest
import torch

from adaptiveembed.errors import SettingError, ShapeError
from adaptiveembed.evaluation.analysis import (
    Transfer,
    capacity_histogram,
    ranks_in_halves,
    selection_distribution,
    transfer_oracle,
)
from adaptiveembed.evaluation.evaluate import (
    best_fixed,
    evaluate_every_selection,
    fixed_evaluation,
    oracle_evaluation,
    oracle_selections,
)
from adaptiveembed.evaluation.protocol import RetrievalTask
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import coarse_to_fine, every_prefix
from tests.evaluation.test_evaluate import literal_scores
from tests.evaluation.worlds import LAYOUT, TEXT_TO_IMAGE, both_directions, several_positives
from tests.reference.oracle import ranks_among, transfer_precision

SPACE = every_prefix(LAYOUT)


@pytest.fixture(params=[lambda: both_directions()[0], several_positives], ids=["one", "several"])
def table(request):
    return evaluate_every_selection(request.param(), SPACE)


def relevant(task, query):
    return [int(index) for index in task.positives[query] if index >= 0]


def literal_table(task, query):
    """SetSim of one query with every item under every selection."""
    return [literal_scores(task, query, node) for node in SPACE.nodes]


def half_of(task):
    items = np.random.default_rng(5).permutation(len(task.gallery))[: len(task.gallery) // 2]
    return np.sort(items)


def test_ranks_in_halves_are_those_of_counting_by_hand(table):
    task, half = table.task, half_of(table.task)
    first, second = ranks_in_halves(table, half)
    other = [item for item in range(len(task.gallery)) if item not in half]
    for query in range(len(task)):
        positives = relevant(task, query)
        for place, scores in enumerate(literal_table(task, query)):
            for ranks, counted in ((first, half), (second, other)):
                expected = ranks_among(scores, positives, counted)
                assert ranks[place, query, : len(expected)].tolist() == expected
                assert not ranks[place, query, len(expected) :].any()


def test_the_second_half_is_what_counting_over_it_gives(table):
    task, half = table.task, half_of(table.task)
    other = np.setdiff1d(np.arange(len(task.gallery)), half)
    counted = rank_table(task.gallery, task.queries, task.positives, SPACE.nodes, among=other)
    np.testing.assert_array_equal(ranks_in_halves(table, half)[1], counted)


def test_the_transfer_oracle_is_that_of_the_literal_twin(table):
    task, capacities = table.task, [node.capacity for node in SPACE.nodes]
    half = np.random.default_rng(3).permutation(len(task.gallery))[: len(task.gallery) // 2]
    expected = [
        transfer_precision(literal_table(task, query), relevant(task, query), capacities, half)
        for query in range(len(task))
    ]
    transfer = transfer_oracle(table, np.random.default_rng(3), num_splits=1)
    assert transfer.oracle == pytest.approx(np.mean(expected))


def test_the_best_fixed_selection_is_scored_on_the_same_halves(table):
    fixed = (best_fixed([table]),) * len(table.task)
    transfer = transfer_oracle(table, np.random.default_rng(0), selections=fixed)
    assert transfer.adaptive == transfer.best_fixed
    assert transfer.fixed == fixed[0]


def test_given_selections_are_scored_on_the_same_halves(table):
    chosen = oracle_selections(table)
    transfer = transfer_oracle(table, np.random.default_rng(0), selections=chosen, num_splits=2)
    root = (SPACE.root,) * len(table.task)
    plain = transfer_oracle(table, np.random.default_rng(0), selections=root, num_splits=2)
    assert transfer.adaptive > plain.adaptive
    assert (transfer.oracle, transfer.best_fixed) == (plain.oracle, plain.best_fixed)


def test_equal_generators_give_equal_results_and_others_do_not(table):
    one, same, other = (
        transfer_oracle(table, np.random.default_rng(seed), num_splits=3) for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_the_lead_that_the_oracle_owes_to_lucky_distractors_does_not_transfer():
    table = evaluate_every_selection(lucky_distractors(), SPACE)
    transfer = transfer_oracle(table, np.random.default_rng(0))
    fixed = fixed_evaluation([table], transfer.fixed).means["mAP"]
    assert oracle_evaluation([table]).means["mAP"] > 1.15 * fixed
    assert transfer.oracle < 1.02 * transfer.best_fixed


def lucky_distractors(num_queries=100, num_items=16):
    """Positives score 0 under every selection, distractors around 0: only luck sets them apart."""
    axes = torch.eye(num_queries + 1)[:, None].expand(-1, LAYOUT.num_candidates, -1)
    shape = (num_items, LAYOUT.num_candidates, num_queries + 1)
    crowd = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    items = CandidateSets.normalized(torch.cat([axes[-1:], crowd]), LAYOUT)
    gallery = Gallery.from_candidates(tuple(f"i{item}" for item in range(len(items))), items)
    queries = CandidateSets(axes[:-1], LAYOUT)
    query_ids = tuple(f"q{query}" for query in range(num_queries))
    positives = np.zeros((num_queries, 1), dtype=np.int64)
    return RetrievalTask(TEXT_TO_IMAGE, query_ids, queries, gallery, positives)


def test_share_is_the_part_of_the_headroom_that_was_gained():
    transfer = Transfer(SPACE.root, best_fixed=0.5, oracle=0.75, adaptive=0.625)
    assert transfer.headroom == 0.25
    assert transfer.share == 0.5


def test_there_is_no_share_without_headroom_or_without_selections():
    assert Transfer(SPACE.root, best_fixed=0.5, oracle=0.5, adaptive=0.6).share is None
    assert Transfer(SPACE.root, best_fixed=0.5, oracle=0.75).share is None


def test_what_cannot_be_split_is_refused(table):
    generator = np.random.default_rng(0)
    with pytest.raises(SettingError, match="num_splits is 0"):
        transfer_oracle(table, generator, num_splits=0)
    tiny = evaluate_every_selection(both_directions(num_items=2, num_queries=2)[0], SPACE)
    with pytest.raises(SettingError, match="a gallery of 2 items has no two halves"):
        transfer_oracle(tiny, generator)
    with pytest.raises(ShapeError, match="got 1 selections for"):
        transfer_oracle(table, generator, selections=[SPACE.root])


def test_the_histogram_counts_capacities_in_ascending_order():
    selections = [Selection.parse(text, LAYOUT) for text in ("2+2", "1+0", "0+1", "1+1")]
    assert list(capacity_histogram(selections).items()) == [(1, 2), (2, 1), (4, 1)]


def test_the_distribution_names_every_selection_of_the_space():
    space = coarse_to_fine(LAYOUT)
    chosen = [space.nodes[0], space.nodes[0], space.nodes[-1], space.nodes[1]]
    shares = selection_distribution(chosen, space)
    assert list(shares) == list(space.nodes)
    assert list(shares.values()) == [0.5, 0.25] + [0.0] * (len(space) - 3) + [0.25]

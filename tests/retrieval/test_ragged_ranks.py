"""Ranks by MaxSim are those of the literal loops, ties against the query."""

import numpy as np
import pytest
import torch

from adaptiveembed.errors import ShapeError, UnknownIdError
from adaptiveembed.retrieval.ragged_ranks import maxsim_ranks
from adaptiveembed.similarity.pooling import pooled
from adaptiveembed.similarity.ragged import RaggedSets
from tests.reference.maxsim import maxsim
from tests.reference.ranks import ranks_of_several_positives
from tests.similarity.sets import unit_sets
from tests.similarity.test_ragged import real, scattered

ITEMS = 30
POSITIVES = np.array([[3, -1], [0, 7], [5, 2], [9, 1]])


def world(seed=0):
    generator = torch.Generator().manual_seed(seed)
    queries = scattered(unit_sets(4, 6, 8, seed=seed), generator)
    return queries, scattered(unit_sets(ITEMS, 9, 8, seed=seed + 1), generator)


def literal(queries, gallery):
    rows = []
    for query, wanted in zip(real(queries), POSITIVES.tolist(), strict=True):
        scores = [maxsim(query, item) for item in real(gallery)]
        ranks = ranks_of_several_positives(scores, [item for item in wanted if item >= 0])
        rows.append([*ranks, 0][:2])
    return rows


@pytest.mark.parametrize("memory", [1 << 20, 2 * 8 * ITEMS])
@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_a_double_loop(seed, memory):
    queries, gallery = world(seed)
    assert maxsim_ranks(queries, gallery, POSITIVES, memory).tolist() == literal(queries, gallery)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_pooled_sets_are_ranked_like_any_others(count):
    queries, gallery = (pooled(each, count) for each in world())
    assert maxsim_ranks(queries, gallery, POSITIVES).tolist() == literal(queries, gallery)


def test_a_constant_score_puts_the_positive_last():
    same = RaggedSets(torch.eye(4)[:1].expand(5, 1, 4), torch.ones(5, 1).bool())
    assert maxsim_ranks(same, same, np.arange(5)[:, None]).tolist() == [[5]] * 5


def test_positives_that_do_not_fit_are_refused():
    queries, gallery = world()
    with pytest.raises(ShapeError, match="got 4 queries and positives of 3"):
        maxsim_ranks(queries, gallery, POSITIVES[:3])
    with pytest.raises(UnknownIdError, match="positive 30 is not among the 30 items"):
        maxsim_ranks(queries, gallery, POSITIVES + ITEMS - 9)

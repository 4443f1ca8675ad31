"""Tiles cover a score matrix once, within the budget, and make what the whole would."""

from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import SettingError
from adaptiveembed.similarity import MEMORY_BUDGET, score_tiles, setsim_matrix
from tests.similarity.sets import two_batches, unit_sets

counts = st.integers(0, 12)
capacities = st.integers(1, 8)


def empty_sets(items, capacity):
    """Sets of which only the shape exists, however many."""
    return torch.zeros(1, 1, 1).expand(items, capacity, 4)


def no_scores(queries, gallery):
    return torch.empty(len(queries), len(gallery), device="meta")


def bytes_of_products(tile, capacity, other):
    return 4 * tile.scores.numel() * capacity * other


@given(counts, counts, capacities, capacities, st.integers(1, 150))
def test_every_pair_is_in_exactly_one_tile(queries, items, capacity, other, pairs_at_once):
    hits = torch.zeros(queries, items, dtype=torch.int64)
    sides = empty_sets(queries, capacity), empty_sets(items, other)
    for tile in score_tiles(no_scores, *sides, 8 * capacity * other * pairs_at_once):
        hits[tile.queries, tile.gallery] += 1
        assert tile.scores.shape == hits[tile.queries, tile.gallery].shape
    assert (hits == 1).all()


@given(counts, counts, capacities, capacities, st.integers(8, 10_000))
def test_no_tile_needs_more_than_the_budget(queries, items, capacity, other, budget):
    budget = max(budget, 8 * capacity * other)
    sides = empty_sets(queries, capacity), empty_sets(items, other)
    for tile in score_tiles(no_scores, *sides, budget):
        assert 2 * bytes_of_products(tile, capacity, other) <= budget


def test_the_largest_gallery_of_the_paper_is_walked_within_the_budget():
    sides = empty_sets(5_000, 8), empty_sets(120_000, 8)
    tiles = list(score_tiles(no_scores, *sides))
    assert sum(tile.scores.numel() for tile in tiles) == 5_000 * 120_000
    assert max(bytes_of_products(tile, 8, 8) for tile in tiles) <= MEMORY_BUDGET // 2


def test_tiles_are_made_one_at_a_time():
    made = []

    def score(queries, gallery):
        made.append(len(gallery))
        return no_scores(queries, gallery)

    tiles = score_tiles(score, empty_sets(5_000, 8), empty_sets(120_000, 8))
    assert not made
    assert len(list(islice(tiles, 3))) == len(made) == 3


@given(two_batches(), st.integers(1, 50))
def test_scores_have_the_same_bits_tile_by_tile(batches, pairs_at_once):
    queries, gallery = batches
    budget = 8 * queries.shape[1] ** 2 * pairs_at_once
    whole = setsim_matrix(queries, gallery)
    for tile in score_tiles(setsim_matrix, queries, gallery, budget):
        assert torch.equal(tile.scores, whole[tile.queries, tile.gallery])


def test_a_budget_for_one_pair_is_enough():
    tiles = list(score_tiles(setsim_matrix, unit_sets(2, 4, 3), unit_sets(3, 4, 3), 128))
    assert [tuple(tile.scores.shape) for tile in tiles] == [(1, 1)] * 6


@pytest.mark.parametrize("budget", [0, 127, -1])
def test_a_budget_below_one_pair_is_refused_and_the_needed_one_named(budget):
    tiles = score_tiles(setsim_matrix, unit_sets(2, 4, 3), unit_sets(3, 4, 3), budget)
    with pytest.raises(
        SettingError, match=rf"budget of {budget} bytes .* takes 128; give at least"
    ):
        next(tiles)

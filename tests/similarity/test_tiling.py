"""Tiles cover a score matrix once, within the budget, and make what the whole would."""

import weakref
from itertools import islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from adaptiveembed.errors import SettingError
from adaptiveembed.similarity import MEMORY_BUDGET, score_tiles, setsim_matrix
from adaptiveembed.similarity.maxsim import _maxima, _sum_of_maxima
from adaptiveembed.similarity.setsim import _general_matrix
from tests.similarity.sets import two_batches, unit_sets


class PeakMemory(TorchDispatchMode):
    """The most bytes of tensors alive at once, among those made inside."""

    def __init__(self):
        super().__init__()
        self.peak, self.alive = 0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for each in tree_leaves(made):
            if isinstance(each, torch.Tensor):
                self.follow(each.untyped_storage())
        self.peak = max(self.peak, sum(self.alive.values()))
        return made

    def follow(self, storage):
        place = storage.data_ptr()
        if place not in self.alive:
            self.alive[place] = storage.nbytes()
            weakref.finalize(storage, self.alive.pop, place)


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


@pytest.mark.parametrize(
    ("score", "dtype"),
    [
        (_general_matrix, torch.float64),  # other types have a kernel, which needs no tiles
        (_sum_of_maxima, torch.float16),
        (_sum_of_maxima, torch.float32),
        (_sum_of_maxima, torch.float64),
        (_maxima, torch.float32),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.parametrize("capacity", [1, 2, 4, 8])
def test_tiles_take_no_more_memory_than_the_budget(score, dtype, capacity):
    budget = 16 << 20
    queries, gallery = (unit_sets(2000, capacity, 4, dtype=dtype) for _ in range(2))
    with PeakMemory() as memory:
        for _ in islice(score_tiles(score, queries, gallery, budget), 3):
            pass
    assert memory.peak <= 1.02 * budget  # a little for the sets themselves


def test_tiles_are_made_one_at_a_time():
    made = []

    def score(queries, gallery):
        made.append(len(gallery))
        return no_scores(queries, gallery)

    tiles = score_tiles(score, empty_sets(5_000, 8), empty_sets(120_000, 8))
    assert not made
    assert len(list(islice(tiles, 3))) == len(made) == 3


@settings(max_examples=50)
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
    with pytest.raises(SettingError, match=rf"budget of {budget} bytes .* give at least 128"):
        next(tiles)

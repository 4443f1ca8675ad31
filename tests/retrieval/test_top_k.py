"""The k best items are those of scoring everything: ids, order and scores, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.retrieval import score_gallery, search, top_k
from adaptiveembed.structure import PAPER_LAYOUT, GroupLayout, Selection, every_prefix
from tests.reference.search import best_items, scores_of_query
from tests.retrieval.galleries import LAYOUTS, make_world, without_screen, worlds
from tests.similarity.sets import KINDS

every_kind = pytest.mark.parametrize("kind", KINDS)


def check(world, k):
    """Compare with scoring everything, with the screen of bytes and without."""
    scores = score_gallery(world.gallery, world.queries)
    for gallery in (world.gallery, without_screen(world.gallery)):
        found = search(gallery, world.queries, k)
        for query, row in enumerate(scores):
            expected = best_items(row.tolist(), k)
            assert found.indices[query].tolist() == expected
            assert found.scores[query].tolist() == row[expected].tolist()


@every_kind
@pytest.mark.parametrize("dim", [1, 2, 3, 7, 64, 255, 256, 257, 1000, 4096])
def test_every_kind_of_data_in_every_dimension(kind, dim):
    layout = GroupLayout((2, 2)) if dim < 1000 else GroupLayout((1, 1))
    check(make_world(kind, 1100, 9, layout, dim), 7)


@every_kind
@pytest.mark.parametrize("items", [0, 1, 5, 1023, 1024, 1025, 6000])
def test_galleries_of_every_size(kind, items):
    world = make_world(kind, items, 4, GroupLayout((2, 1)), 16)
    for k in sorted({1, 10, max(1, items // 3), max(1, items), items + 3}):
        check(world, k)


@every_kind
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_selection_of_every_layout_in_one_batch(kind, layout):
    check(make_world(kind, 1500, 2 * len(every_prefix(layout).nodes), layout, 24), 5)


@every_kind
def test_half_precision(kind):
    check(make_world(kind, 2500, 10, PAPER_LAYOUT, 24, dtype=torch.float16), 5)


def test_more_queries_than_a_panel_holds():
    selections = [Selection.parse(text, PAPER_LAYOUT) for text in ("1+0", "4+4")]
    check(make_world("random", 1500, 1200, PAPER_LAYOUT, 8, selections=selections), 3)


# Small ranges let small galleries reach the screen, and let thresholds rise many times.
@given(worlds(), st.integers(1, 70), st.integers(1, 20), st.integers(2, 5))
def test_ranges_of_any_size(world, k, first, growth):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_k, "FIRST_RANGE", first)
        patch.setattr(top_k, "GROWTH", growth)
        check(world, k)


@every_kind
def test_ranges_bounded_by_their_memory(kind, monkeypatch):
    monkeypatch.setattr(top_k, "LARGEST_RANGE", 400)
    world = make_world(kind, 2000, 8, GroupLayout((2, 1)), 16)
    for k in (3, 500):  # more than one range holds: the first ranges give no threshold
        check(world, k)


def test_an_item_that_hardly_leads_is_found_wherever_it_stands():
    world = make_world("nearly equal", 5000, 1, PAPER_LAYOUT, 64)
    scores = score_gallery(world.gallery, world.queries)[0]
    for place in (0, 1023, 1024, 1025, 4999):
        order = np.arange(5000)
        best = int(scores.argmax())
        order[[place, best]] = order[[best, place]]
        found = search(world.gallery.take(order), world.queries, 1)
        assert found.scores[0, 0] == scores.max()
        assert found.indices[0, 0] == scores[order].argmax()


@given(worlds(max_items=20, max_queries=5), st.integers(1, 8))
def test_scores_are_those_of_double_precision(world, k):
    gallery, queries = world.gallery, world.queries
    found = search(gallery, queries, k)
    for query in range(len(queries)):
        if queries.capacities[query] > 4:
            continue  # too many permutations for a literal twin
        vectors = queries.candidates.vectors[query].numpy()
        expected = scores_of_query(vectors, gallery.rows, queries.positions[query])
        kept = best_items(expected, k)
        scores = found.scores[query][: len(kept)]
        np.testing.assert_allclose(scores, np.array(expected)[kept], rtol=0, atol=1e-6)
        own = np.array(expected)[found.indices[query][: len(kept)]]
        np.testing.assert_allclose(scores, own, rtol=0, atol=1e-6)

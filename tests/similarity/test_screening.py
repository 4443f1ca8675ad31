"""The screen of bytes never loses a pair that reaches its threshold, and lets few others by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.similarity.kernels.calls import score_matrix, screen
from adaptiveembed.similarity.kernels.codes import byte_gallery, byte_panel
from adaptiveembed.similarity.kernels.compiler import has_byte_product
from adaptiveembed.similarity.kernels.panels import Scope, StoredVectors
from tests.similarity.sets import KINDS, sets_of_kind

pytestmark = pytest.mark.skipif(not has_byte_product(), reason="no product of bytes, no screen")


@st.composite
def stretched(draw, vectors):
    """Every length off by as much as candidate sets accept."""
    factors = np.random.default_rng(draw(st.integers(0, 9))).choice([-1, 0, 1], vectors.shape[:2])
    return vectors * (1 + np.float32(1e-5) * factors[..., None].astype(np.float32))


@st.composite
def searched(draw):
    """Query sets, and a scope of items whose positions lie one after another."""
    kind, seed = draw(st.sampled_from(sorted(KINDS))), draw(st.integers(0, 99))
    capacity, dim = draw(st.integers(1, 8)), draw(st.integers(1, 300))
    queries = draw(st.just(1) | st.integers(2, 40))  # one query has a kernel of its own
    items = draw(st.integers(1, 80))
    sets = sets_of_kind(kind, queries + items, capacity, dim, seed).numpy()
    sets = draw(stretched(sets))
    rows = np.ascontiguousarray(sets[queries:].transpose(1, 0, 2))
    threads = draw(st.integers(1, 3))
    scope = Scope(StoredVectors(rows), range(capacity), np.arange(items), threads)
    return np.ascontiguousarray(sets[:queries]), scope


def screened(sets, scope, thresholds):
    gallery = byte_gallery(scope.vectors.rows, None)
    return screen(byte_panel(sets, gallery.longest), gallery, scope, thresholds)


@given(searched(), st.integers(0, 79))
def test_no_pair_that_reaches_its_threshold_is_lost(case, item):
    sets, scope = case
    scores = score_matrix(sets, scope)
    # A threshold that is some item's own score: a single unit of rounding too much would lose it.
    thresholds = np.ascontiguousarray(scores[:, item % scores.shape[1]])
    kept = set(zip(*screened(sets, scope, thresholds), strict=True))
    assert set(zip(*np.nonzero(scores >= thresholds[:, None]), strict=True)) <= kept


@given(searched(), st.floats(-1, 1))
def test_every_pair_is_listed_once_by_query(case, threshold):
    sets, scope = case
    queries, places = screened(sets, scope, np.full(len(sets), threshold, np.float32))
    assert (np.diff(queries) >= 0).all()
    assert len(set(zip(queries, places, strict=True))) == len(queries)
    assert ((queries >= 0) & (queries < len(sets))).all()
    assert ((places >= 0) & (places < len(scope.items))).all()


@given(searched())
def test_a_threshold_below_all_scores_keeps_every_pair_and_one_above_none(case):
    sets, scope = case
    everything = screened(sets, scope, np.full(len(sets), -np.inf, np.float32))
    assert len(everything[0]) == len(sets) * len(scope.items)
    nothing = screened(sets, scope, np.full(len(sets), 1.5, np.float32))
    assert len(nothing[0]) == 0


@pytest.mark.parametrize("capacity", range(1, 9))
def test_almost_every_pair_below_the_threshold_is_ruled_out(capacity):
    sets = sets_of_kind("random", 20, capacity, 128).numpy()
    rows = sets_of_kind("random", 4000, capacity, 128, seed=1).numpy().transpose(1, 0, 2).copy()
    scope = Scope(StoredVectors(rows), range(capacity), np.arange(4000), 1)
    scores = score_matrix(sets, scope)
    thresholds = np.sort(scores, axis=1)[:, -10].copy()
    assert 200 <= len(screened(sets, scope, thresholds)[0]) <= 0.02 * scores.size


def sets_in_planes(angles, capacity):
    """For every angle a set with one vector at that angle in each of `capacity` planes."""
    sets = np.zeros((len(angles), capacity, 2 * capacity), np.float32)
    for place in range(capacity):
        sets[:, place, 2 * place] = np.cos(angles)
        sets[:, place, 2 * place + 1] = np.sin(angles)
    return sets


@pytest.mark.parametrize("turned", [False, True], ids=["queries rounded", "items rounded"])
@pytest.mark.parametrize("capacity", range(1, 9))
def test_rounding_that_takes_its_utmost_from_a_score_loses_no_pair(capacity, turned):
    # All that codes lose of a vector lies along its second axis, which is the other side's vector.
    rounded = sets_in_planes(np.linspace(0.1, 0.7, 60), capacity)
    axes = sets_in_planes(np.array([np.pi / 2]), capacity)
    sets, items = (axes, rounded) if turned else (rounded, axes)
    rows = np.ascontiguousarray(items.transpose(1, 0, 2))
    scope = Scope(StoredVectors(rows), range(capacity), np.arange(len(items)), 1)
    scores = score_matrix(sets, scope)
    for item in range(len(items)):
        _, places = screened(sets, scope, np.ascontiguousarray(scores[:, item]))
        assert np.count_nonzero(places == item) == len(sets)


@pytest.mark.parametrize("dim", [840, 881, 1821, 2008, 4016])
def test_rounding_of_long_sums_loses_no_pair(dim):
    # Codes lose nothing of equal entries. In these dimensions the canonical sum is lifted by 3e-6.
    query = np.full((1, 1, dim), dim**-0.5, np.float32)
    item = query.copy()
    item[..., -(dim // 10) :] *= -1
    scope = Scope(StoredVectors(item), (0,), np.arange(1), 1)
    threshold = score_matrix(query, scope)[0]
    assert len(screened(query, scope, threshold)[0]) == 1

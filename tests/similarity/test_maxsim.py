"""MaxSim and responses, beside their literal twins."""

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import DtypeError, ShapeError
from adaptiveembed.similarity import (
    maxsim_matrix,
    maxsim_pairs,
    mean_maxsim_matrix,
    responses,
    tiling,
)
from adaptiveembed.similarity.maxsim import _maxima, _sum_of_maxima
from tests.reference import maxsim as literal
from tests.similarity.sets import aligned_batches, sets_of_kind, two_batches, unit_sets

every_function = pytest.mark.parametrize("score", [maxsim_matrix, mean_maxsim_matrix, responses])


@st.composite
def batches_of_any_sizes(draw):
    """Sets of different sizes on the two sides: MaxSim needs no bijection."""
    queries, gallery = draw(two_batches(max_capacity=5, max_items=5))
    size = draw(st.integers(1, gallery.shape[1]))
    return (queries, gallery[:, :size]) if draw(st.booleans()) else (queries[:, :size], gallery)


def close(found, expected):
    torch.testing.assert_close(found, torch.tensor(expected).to(found), rtol=0, atol=1e-5)


def test_two_by_two_by_hand():
    # Each query vector takes its best cosine, even if both want the same vector.
    queries = torch.tensor([[[1.0, 0.0], [0.6, 0.8]]])
    gallery = torch.tensor([[[0.8, 0.6], [-1.0, 0.0]]])
    close(maxsim_matrix(queries, gallery), [[0.8 + 0.96]])
    close(mean_maxsim_matrix(queries, gallery), [[0.88]])
    close(responses(queries, gallery), [[[0.8], [0.96]]])


@given(batches_of_any_sizes())
def test_scores_are_those_of_the_literal_twins(batches):
    queries, gallery = batches
    pairs = [[(query, item) for item in gallery] for query in queries]
    close(maxsim_matrix(*batches), [[literal.maxsim(*pair) for pair in row] for row in pairs])
    expected = [[literal.mean_maxsim(*pair) for pair in row] for row in pairs]
    close(mean_maxsim_matrix(*batches), expected)


@given(batches_of_any_sizes())
def test_responses_are_those_of_the_literal_twin(batches):
    queries, bank = batches
    close(responses(queries, bank), [literal.responses(query, bank) for query in queries])


@given(batches_of_any_sizes())
def test_maxsim_is_the_sum_of_the_responses(batches):
    torch.testing.assert_close(maxsim_matrix(*batches), responses(*batches).sum(1))


@given(aligned_batches(max_items=8))
def test_aligned_pairs_score_as_the_diagonal_of_all_pairs(batches):
    torch.testing.assert_close(maxsim_pairs(*batches), maxsim_matrix(*batches).diagonal())


@every_function
def test_negative_similarities_survive(score):
    # A padding with zeros, or a maximum that starts at zero, would lift them.
    sets = unit_sets(1, 1, 8).expand(3, 2, 8)
    factor = 2 if score is maxsim_matrix else 1
    torch.testing.assert_close(score(sets, -sets), torch.full_like(score(sets, sets), -factor))


@every_function
@given(batches_of_any_sizes())
def test_gradients_are_recorded_only_where_they_are_asked_for(score, batches):
    queries, gallery = batches
    asking = score(queries, gallery.clone().requires_grad_())
    assert asking.requires_grad
    assert not score(queries, gallery).requires_grad
    torch.testing.assert_close(asking.detach(), score(queries, gallery))


def test_gradients_are_those_of_finite_differences():
    queries = unit_sets(2, 3, 5, dtype=torch.float64).requires_grad_()
    gallery = unit_sets(4, 2, 5, seed=1, dtype=torch.float64).requires_grad_()
    for score in (maxsim_matrix, mean_maxsim_matrix, responses):
        assert torch.autograd.gradcheck(score, (queries, gallery))


@every_function
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_vectors_are_summed_in_single_precision(score, dtype):
    queries, gallery = unit_sets(3, 4, 512, dtype=dtype), unit_sets(5, 2, 512, seed=1, dtype=dtype)
    found = score(queries, gallery)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, score(queries.float(), gallery.float()))


@every_function
def test_double_precision_is_kept(score):
    queries, gallery = (unit_sets(3, 4, 20, seed=seed, dtype=torch.float64) for seed in (0, 1))
    exact = score(queries.clone().requires_grad_(), gallery).detach()
    torch.testing.assert_close(score(queries, gallery), exact, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", ["random", "equal", "one-hot", "opposed"])
def test_mean_maxsim_stays_in_the_interval(kind):
    sets = sets_of_kind(kind, 50, 3, 7)
    assert mean_maxsim_matrix(torch.cat([sets, -sets]), sets).abs().max() <= 1


@given(batches_of_any_sizes(), st.integers(1, 8))
def test_tiles_are_parts_of_the_whole(batches, pairs_at_once):
    queries, gallery = batches
    budget = 8 * queries.shape[1] * gallery.shape[1] * pairs_at_once
    whole, maxima = maxsim_matrix(queries, gallery), responses(queries, gallery)
    for tile in tiling.score_tiles(_sum_of_maxima, queries, gallery, budget):
        torch.testing.assert_close(tile.scores, whole[tile.queries, tile.gallery])
    for tile in tiling.score_tiles(_maxima, queries, gallery, budget):
        torch.testing.assert_close(tile.scores, maxima[tile.queries, :, tile.gallery])


@every_function
@pytest.mark.parametrize(("queries", "items"), [(0, 3), (3, 0)])
def test_no_sets_at_all_have_no_scores(score, queries, items):
    found = score(torch.empty(queries, 2, 5), torch.empty(items, 2, 5))
    assert found.shape == ((queries, 2, items) if score is responses else (queries, items))


@pytest.mark.parametrize("score", [maxsim_matrix, responses, maxsim_pairs])
def test_vectors_that_cannot_be_compared_are_refused(score):
    unchecked = inspect.unwrap(score)  # the shape check of the test run would speak first
    with pytest.raises(ShapeError, match="5 dimensions and gallery vectors 6"):
        unchecked(unit_sets(2, 2, 5), unit_sets(2, 2, 6))
    with pytest.raises(ShapeError, match="gallery sets are"):
        unchecked(unit_sets(2, 2, 5), unit_sets(2, 2, 5)[0])
    with pytest.raises(DtypeError, match=r"query sets hold torch\.int64"):
        unchecked(torch.ones(2, 2, 5, dtype=torch.int64), unit_sets(2, 2, 5))


def test_pairs_that_are_not_aligned_are_refused():
    with pytest.raises(ShapeError, match="got 2 and 3; use maxsim_matrix for all pairs"):
        inspect.unwrap(maxsim_pairs)(unit_sets(2, 2, 5), unit_sets(3, 2, 5))

"""Regularised CCA and PCA are their definitions, and keep the laws of both."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import EmptyBatchError, NotFiniteError, SettingError, ShapeError
from adaptiveembed.representation import alignment
from adaptiveembed.representation.alignment import (
    RIDGES,
    SAFE_RIDGE,
    FeaturePairs,
    canonical_maps,
    chosen_ridge,
    fitted_alignment,
    mean_of,
    pair_moments,
    paired_precision,
    principal_matrix,
    second_moment,
)
from tests.reference import cca


def correlated(pairs, widths=(5, 4), *, causes=3, noise=0.5, seed=0):
    """Features of two sides that share hidden causes."""
    rng = np.random.default_rng(seed)
    cause = rng.standard_normal((pairs, causes))
    source, target = (
        1
        + cause @ rng.standard_normal((causes, width))
        + noise * rng.standard_normal((pairs, width))
        for width in widths
    )
    return FeaturePairs(torch.from_numpy(source), torch.from_numpy(target))


def products(found, pairs):
    """The inner products of all pairs in the common space: what a choice of signs cannot change."""
    return found.source(pairs.source) @ found.target(pairs.target).T


def mapped(pairs, matrix, shift):
    return FeaturePairs(pairs.source @ matrix + shift, pairs.target)


# --- Definitions ----------------------------------------------------------------------------------


@given(st.integers(0, 50), st.integers(1, 6), st.sampled_from([0.0, 0.01, 1.0]))
def test_cca_is_its_definition(seed, dim, ridge):
    pairs = correlated(40, seed=seed)
    found = canonical_maps(pair_moments(pairs), dim, ridge)
    left, right, correlations = cca.canonical(
        pairs.source.numpy(), pairs.target.numpy(), dim, ridge
    )
    used = len(correlations)
    np.testing.assert_allclose(found.correlations, correlations, atol=1e-7)
    np.testing.assert_allclose(
        found.source.matrix[:, :used] @ found.target.matrix[:, :used].T, left @ right.T, atol=1e-6
    )
    assert not found.source.matrix[:, used:].any()
    assert not found.target.matrix[:, used:].any()


def test_two_copies_of_one_number_are_perfectly_correlated_by_hand():
    # variance 2/3 on each side: whitening divides by its root, and nothing is shrunk
    numbers = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    found = canonical_maps(pair_moments(FeaturePairs(numbers, 10 * numbers)), 1, 0.0)
    assert found.correlations.tolist() == pytest.approx([1])
    assert found.source(numbers).abs().flatten().tolist() == pytest.approx([1.5**0.5, 0, 1.5**0.5])
    torch.testing.assert_close(found.source(numbers), found.target(10 * numbers))


def test_a_ridge_as_large_as_the_variance_halves_a_single_correlation():
    numbers = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    found = canonical_maps(pair_moments(FeaturePairs(numbers, numbers)), 1, 1.0)
    assert found.correlations.tolist() == pytest.approx([0.5])


@given(st.integers(0, 50), st.integers(1, 4))
def test_pca_about_the_origin_keeps_most_of_the_products(seed, dim):
    features = correlated(20, seed=seed).source
    matrix = principal_matrix(second_moment(features), dim)
    torch.testing.assert_close(matrix.T @ matrix, torch.eye(dim, dtype=torch.float64))
    left, values, right = np.linalg.svd(features.numpy(), full_matrices=False)
    best = (left[:, :dim] * values[:dim]) @ right[:dim]
    np.testing.assert_allclose(features @ matrix @ matrix.T, best, atol=1e-8)


@given(st.integers(3, 40), st.integers(1, 9))
def test_moments_do_not_depend_on_how_many_rows_are_read_at_once(pairs, rows):
    features = correlated(pairs)
    whole = pair_moments(features)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "ROWS_AT_ONCE", rows)
        parts = pair_moments(features)
        mean = mean_of(features.source)
    torch.testing.assert_close(parts.cross, whole.cross)
    torch.testing.assert_close(parts.source, whole.source)
    torch.testing.assert_close(mean, features.source.mean(dim=0))


def test_features_are_not_converted_as_a_whole():
    halves = FeaturePairs(*(side.half() for side in (torch.randn(9, 4), torch.randn(9, 4))))
    moments = pair_moments(halves)
    assert moments.source.dtype == torch.float64
    torch.testing.assert_close(moments.source, torch.cov(halves.source.double().T, correction=0))


# --- Laws -----------------------------------------------------------------------------------------


@given(st.integers(0, 50), st.integers(1, 6))
def test_without_ridge_any_invertible_map_of_one_side_changes_nothing(seed, dim):
    pairs = correlated(40, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(5, 5, generator=generator, dtype=torch.float64) + 3 * torch.eye(5)
    other = mapped(pairs, matrix, shift=7)
    one, two = (canonical_maps(pair_moments(each), dim, 0.0) for each in (pairs, other))
    torch.testing.assert_close(products(two, other), products(one, pairs), atol=1e-6, rtol=1e-6)


@given(st.integers(0, 50), st.floats(0.001, 1000))
def test_with_ridge_the_unit_of_one_side_changes_nothing(seed, unit):
    pairs = correlated(40, seed=seed)
    other = FeaturePairs(pairs.source * unit, pairs.target)
    one, two = (canonical_maps(pair_moments(each), 3, 0.1) for each in (pairs, other))
    torch.testing.assert_close(products(two, other), products(one, pairs))


@given(st.integers(0, 50), st.floats(0, 10), st.integers(3, 30))
def test_correlations_lie_between_0_and_1_and_descend(seed, ridge, pairs):
    found = canonical_maps(pair_moments(correlated(pairs, seed=seed)), 5, ridge).correlations
    assert ((found >= 0) & (found <= 1)).all()
    assert (found.diff() <= 1e-12).all()


def test_the_sides_may_be_exchanged():
    pairs = correlated(40)
    one = canonical_maps(pair_moments(pairs), 3, 0.1)
    two = canonical_maps(pair_moments(FeaturePairs(pairs.target, pairs.source)), 3, 0.1)
    torch.testing.assert_close(one.correlations, two.correlations)
    torch.testing.assert_close(
        one.source(pairs.source) @ one.target(pairs.target).T,
        (two.source(pairs.target) @ two.target(pairs.source).T).T,
    )


# --- Choice of the ridge --------------------------------------------------------------------------


def test_the_ridge_is_the_one_by_which_other_pairs_find_one_another_best():
    world = correlated(90, (20, 20), noise=2)
    pairs, judges = world[torch.arange(40)], world[torch.arange(40, 90)]
    moments = pair_moments(pairs)
    alignments = {ridge: canonical_maps(moments, 8, ridge) for ridge in RIDGES}
    scores = {
        ridge: paired_precision(found.source(judges.source), found.target(judges.target))
        for ridge, found in alignments.items()
    }
    best = max(scores, key=scores.__getitem__)
    assert list(scores.values()).count(scores[best]) == 1
    assert chosen_ridge(moments, 8, judges) == best


def test_equally_good_ridges_leave_the_stronger_one():
    pairs = correlated(50, causes=4, noise=0.01)
    assert chosen_ridge(pair_moments(pairs), 4, pairs, (0.001, 0.01)) == 0.01


def test_pairs_are_held_out_where_no_others_judge():
    pairs = correlated(100, (30, 30), noise=1)
    assert fitted_alignment(pairs, 8, seed=1).ridge in RIDGES
    judged = fitted_alignment(pairs, 8, correlated(40, (30, 30), noise=1, seed=3))
    assert judged.ridge in RIDGES
    few = FeaturePairs(pairs.source[:40], pairs.target[:40])
    assert fitted_alignment(few, 8).ridge == SAFE_RIDGE


def test_the_maps_are_fitted_on_all_pairs_once_the_ridge_is_chosen():
    pairs = correlated(100)
    found = fitted_alignment(pairs, 3)
    whole = canonical_maps(pair_moments(pairs), 3, found.ridge)
    assert torch.equal(found.source.matrix, whole.source.matrix)


def test_the_precision_of_pairs_counts_ties_against():
    axes = torch.eye(3)
    assert paired_precision(axes, 2 * axes) == 1
    assert paired_precision(torch.ones(3, 2), torch.ones(3, 2)) == pytest.approx(1 / 3)


# --- Degenerate inputs ----------------------------------------------------------------------------


def test_fewer_pairs_than_dimensions_have_as_many_directions_as_they_span():
    pairs = correlated(4, (10, 12), causes=10)
    found = canonical_maps(pair_moments(pairs), 8, 0.1)
    assert len(found.correlations) == 3
    assert found.source.matrix.shape == (10, 8)
    assert torch.isfinite(products(found, pairs)).all()


def test_features_that_never_change_take_no_part():
    pairs = correlated(40)
    constant = torch.full((40, 2), 1e4, dtype=torch.float64)
    other = FeaturePairs(torch.cat([constant, pairs.source], dim=1), pairs.target)
    one, two = (canonical_maps(pair_moments(each), 3, 0.0) for each in (pairs, other))
    torch.testing.assert_close(two.correlations, one.correlations)
    assert not two.source.matrix[:2].abs().gt(1e-12).any()


@pytest.mark.parametrize("value", [0.0, 0.1, 1e4])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_side_that_never_changes_is_refused(value, ridge):
    pairs = FeaturePairs(torch.full((9, 3), value), torch.randn(9, 4))
    with pytest.raises(SettingError, match=r"features of the source are all the same.*learned"):
        canonical_maps(pair_moments(pairs), 2, ridge)


@pytest.mark.parametrize("place", [0, 1])
def test_errors_call_the_sides_by_their_names_if_they_have_some(place):
    names = ("text", "audio")
    sides = [torch.randn(60, 3), torch.randn(60, 3)]
    sides[place][:] = 1.0
    told = f"the global features of the {names[place]} are all the same"
    with pytest.raises(SettingError, match=told):
        fitted_alignment(FeaturePairs(*sides, names), 2)
    sides[place][4, 1] = float("nan")
    with pytest.raises(NotFiniteError, match=f"the {names[place]} feature of pair 4 holds NaN"):
        FeaturePairs(*sides, names)


@pytest.mark.parametrize("number", [0, 2])
def test_too_few_pairs_are_refused(number):
    with pytest.raises(EmptyBatchError, match=f"needs at least 3 pairs, got {number}; give more"):
        FeaturePairs(torch.ones(number, 3), torch.ones(number, 3))


def test_sides_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"got \(4, 3\) and \(5, 3\); row i of both is pair i"):
        FeaturePairs(torch.ones(4, 3), torch.ones(5, 3))


def test_a_number_that_is_not_finite_is_found_where_it_is():
    features = torch.randn(5, 3)
    features[3, 1] = float("nan")
    with pytest.raises(NotFiniteError, match="the target feature of pair 3 holds NaN"):
        FeaturePairs(torch.randn(5, 3), features)


def test_choices_that_cannot_work_are_refused():
    moments = pair_moments(correlated(9))
    with pytest.raises(SettingError, match=r"the regularisation is -1\.0; give a number of 0"):
        canonical_maps(moments, 2, -1.0)
    with pytest.raises(SettingError, match="no regularisation to choose from"):
        chosen_ridge(moments, 2, correlated(9), ())
    with pytest.raises(SettingError, match="of width 5 cannot be narrowed to 6; pad them"):
        principal_matrix(moments.source, 6)

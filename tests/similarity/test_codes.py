"""Vectors as bytes lose no more than they say, so that the screen errs on the safe side only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.similarity.kernels.codes import LARGEST_CODE, LONGEST, to_bytes
from tests.similarity.sets import KINDS, sets_of_kind


@st.composite
def unit_vectors(draw):
    """Vectors [items, dim] of unit length within what candidate sets accept."""
    kind, dim = draw(st.sampled_from(sorted(KINDS))), draw(st.integers(1, 600))
    vectors = sets_of_kind(kind, 8, 1, dim, draw(st.integers(0, 99)))[:, 0].numpy()
    if draw(st.booleans()):
        peak = vectors**9  # one large entry, beside which the others round to nothing
        vectors = (peak / np.linalg.norm(peak, axis=-1, keepdims=True)).astype(np.float32)
    return vectors * np.float32(1 + draw(st.sampled_from([-1e-5, 0.0, 1e-5])))


def rebuilt(coded):
    return coded.codes.astype(np.float64) * coded.scales.astype(np.float64)[..., None]


def distance(vectors, coded):
    return np.linalg.norm(vectors.astype(np.float64) - rebuilt(coded), axis=-1)


@given(unit_vectors())
def test_the_stated_error_is_not_below_the_true_distance(vectors):
    coded = to_bytes(vectors)
    assert (distance(vectors, coded) <= coded.errors).all()


@given(unit_vectors())
def test_the_stated_error_is_hardly_above_the_true_distance(vectors):
    coded = to_bytes(vectors)
    np.testing.assert_allclose(coded.errors, distance(vectors, coded), rtol=0.01, atol=3e-6)


@given(unit_vectors())
def test_the_largest_entry_takes_the_largest_code(vectors):
    coded = to_bytes(vectors)
    assert (np.abs(coded.codes.astype(int)).max(axis=-1) == LARGEST_CODE).all()
    assert coded.codes.dtype == np.int8


@given(unit_vectors(), st.integers(0, 99))
def test_cosines_of_codes_lie_within_the_band_of_the_true_ones(vectors, seed):
    others = np.random.default_rng(seed).standard_normal(vectors.shape)
    others = (others / np.linalg.norm(others, axis=-1, keepdims=True)).astype(np.float32)
    one, other = to_bytes(vectors), to_bytes(others)
    true = vectors.astype(np.float64) @ others.astype(np.float64).T
    screened = rebuilt(one) @ rebuilt(other).T
    band = one.errors[:, None] * (LONGEST + other.errors) + LONGEST * other.errors
    assert (np.abs(true - screened) <= band).all()


@pytest.mark.parametrize("dim", [1, 3, 64, 4096])
def test_axes_are_kept_exactly(dim):
    coded = to_bytes(np.eye(dim, dtype=np.float32)[:5])
    np.testing.assert_array_equal(coded.codes, LARGEST_CODE * np.eye(dim, dtype=np.int8)[:5])
    np.testing.assert_allclose(coded.scales, 1 / LARGEST_CODE)
    assert (coded.errors < 3e-6).all()


def test_a_zero_vector_keeps_finite_codes():
    coded = to_bytes(np.zeros((2, 5), np.float32))
    assert not coded.codes.any()
    assert np.isfinite(coded.scales).all()
    assert np.isfinite(coded.errors).all()

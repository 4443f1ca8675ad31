"""What brackets SetSim."""

import pytest
import torch
from hypothesis import given

from adaptiveembed.errors import ShapeError
from adaptiveembed.similarity import best_assignment, lower_bound, upper_bound
from tests.similarity.sets import coarse_matrices


def test_the_lower_bound_is_the_mean_of_the_diagonal():
    assert lower_bound(torch.tensor([[[0.5, 1.0], [1.0, 0.25]]])).tolist() == [0.375]


def test_the_upper_bound_is_the_smaller_mean_of_maxima():
    # The rows of the first average to 1, its columns to three quarters; the second is turned.
    assert upper_bound(torch.tensor([[[1.0, 0.5], [1.0, 0.0]]])).tolist() == [0.75]
    assert upper_bound(torch.tensor([[[1.0, 1.0], [0.5, 0.0]]])).tolist() == [0.75]


@given(coarse_matrices())
def test_the_best_assignment_lies_between_them(cosines):
    means = best_assignment(cosines)[0] / cosines.shape[-1]
    assert (lower_bound(cosines) <= means + 1e-6).all()
    assert (means <= upper_bound(cosines) + 1e-6).all()


@given(coarse_matrices(max_size=1))
def test_they_meet_for_one_vector(cosines):
    assert torch.equal(lower_bound(cosines), upper_bound(cosines))


@pytest.mark.parametrize("bound", [lower_bound, upper_bound])
def test_matrices_that_are_not_square_are_refused(bound):
    with pytest.raises(ShapeError, match="needs square matrices"):
        bound(torch.zeros(1, 2, 3))

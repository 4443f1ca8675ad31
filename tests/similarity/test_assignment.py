"""The exact assignment, beside every permutation and beside scipy."""

from functools import reduce

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.optimize import linear_sum_assignment

from adaptiveembed.errors import CapacityLimitError, ShapeError
from adaptiveembed.similarity import MAX_CAPACITY, best_assignment
from adaptiveembed.similarity.assignment import (
    assignment_columns,
    columns_by_layers,
    require_square,
    require_supported_capacity,
)
from tests.reference.setsim import best_columns, best_totals
from tests.similarity.sets import coarse_matrices

every_way = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
every_size = pytest.mark.parametrize("size", range(1, MAX_CAPACITY + 1))


def random_matrices(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(*shape, generator=generator, dtype=dtype) - 1


def one_matrix(*rows):
    return torch.tensor([rows], dtype=torch.float32)


def test_the_diagonal_of_a_two_by_two_is_taken_when_it_sums_to_more():
    totals, columns = best_assignment(one_matrix([0.75, 0.5], [0.25, 0.125]))
    assert totals.tolist() == [0.875]
    assert columns.tolist() == [[0, 1]]


def test_the_greatest_entry_is_given_up_when_the_sum_wants_it():
    totals, columns = best_assignment(one_matrix([0.75, 0.5], [0.5, 0.0]))
    assert totals.tolist() == [1.0]
    assert columns.tolist() == [[1, 0]]


def test_negative_entries_are_matched_too():
    totals, columns = best_assignment(one_matrix([-0.25, -0.5], [-1.0, -0.5]))
    assert totals.tolist() == [-0.75]
    assert columns.tolist() == [[0, 1]]


@every_way
@pytest.mark.parametrize("size", range(1, 7))
def test_means_are_those_of_all_permutations(size, dtype):
    cosines = random_matrices(10_000, size, size, dtype=dtype)
    totals, _ = best_assignment(cosines)
    expected = best_totals(cosines.numpy()) / size
    np.testing.assert_allclose(totals.double() / size, expected, rtol=0, atol=1e-6)


@every_way
@pytest.mark.parametrize("size", [7, 8])
def test_means_of_large_sets_are_those_of_scipy(size, dtype):
    cosines = random_matrices(10_000, size, size, dtype=dtype)
    totals, _ = best_assignment(cosines)
    exact = cosines.double().numpy()
    best = [matrix[linear_sum_assignment(matrix, maximize=True)].mean() for matrix in exact]
    np.testing.assert_allclose(totals.double() / size, best, rtol=0, atol=1e-6)


@every_way
@every_size
def test_the_columns_returned_are_a_bijection_that_attains_the_total(size, dtype):
    cosines = random_matrices(500, size, size, dtype=dtype)
    totals, columns = best_assignment(cosines)
    assert (columns.sort(dim=-1).values == torch.arange(size)).all()
    attained = reduce(torch.add, cosines.gather(-1, columns.unsqueeze(-1)).squeeze(-1).unbind(-1))
    assert torch.equal(totals, attained)


@given(coarse_matrices(max_size=5))
def test_of_equally_good_assignments_the_last_row_takes_the_lowest_column(cosines):
    expected = torch.tensor([best_columns(matrix) for matrix in cosines])
    assert torch.equal(assignment_columns(cosines), expected)
    assert torch.equal(assignment_columns(cosines.double()), expected)


def test_among_equal_vectors_the_assignment_runs_backwards():
    assert assignment_columns(torch.ones(1, 4, 4)).tolist() == [[3, 2, 1, 0]]


@given(coarse_matrices())
def test_the_kernel_and_the_layers_choose_the_same_columns_among_ties(cosines):
    assert torch.equal(
        assignment_columns(cosines), *columns_by_layers(cosines, (cosines.shape[-1],))
    )


@every_size
def test_the_kernel_and_the_layers_choose_the_same_columns(size):
    cosines = random_matrices(1000, size, size)
    assert torch.equal(
        assignment_columns(cosines), *columns_by_layers(cosines, (cosines.shape[-1],))
    )


@pytest.mark.parametrize("pairs", [(), (1,), (17,), (1, 1), (3, 17), (33, 2), (2, 3, 4)], ids=str)
@every_way
def test_every_number_of_axes_and_of_pairs_gives_the_same_as_one_pair_at_a_time(pairs, dtype):
    cosines = random_matrices(*pairs, 3, 3, dtype=dtype)
    totals, columns = best_assignment(cosines)
    assert (totals.shape, columns.shape) == (pairs, (*pairs, 3))
    flat = cosines.reshape(-1, 3, 3)
    alone = [best_assignment(matrix) for matrix in flat]
    assert totals.flatten().tolist() == [float(total) for total, _ in alone]
    assert columns.reshape(-1, 3).tolist() == [columns.tolist() for _, columns in alone]


@every_way
@pytest.mark.parametrize("pairs", [(0,), (0, 3), (3, 0)], ids=str)
def test_no_pair_at_all_has_no_total(pairs, dtype):
    totals, columns = best_assignment(torch.empty(*pairs, 2, 2, dtype=dtype))
    assert (totals.shape, columns.shape) == (pairs, (*pairs, 2))


def test_matrices_that_do_not_lie_in_order_are_read_rightly():
    cosines = random_matrices(5, 6, 3, 3)
    turned = cosines.permute(1, 0, 3, 2)
    expected = best_assignment(turned.contiguous())
    found = best_assignment(turned)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


@every_way
def test_the_gradient_marks_the_entries_of_the_assignment(dtype):
    cosines = random_matrices(20, 4, 4, dtype=dtype).requires_grad_()
    totals, columns = best_assignment(cosines)
    totals.sum().backward()
    expected = torch.nn.functional.one_hot(columns, 4).to(dtype)
    assert torch.equal(cosines.grad, expected)


def test_sets_above_the_documented_size_are_refused():
    with pytest.raises(CapacityLimitError, match=r"sets of 9 vectors .* 1 to 8 can; select fewer"):
        best_assignment(torch.zeros(1, 9, 9))
    assert MAX_CAPACITY == 8


@pytest.mark.parametrize("capacity", [0, 9, 100])
def test_only_one_to_eight_vectors_are_supported(capacity):
    with pytest.raises(CapacityLimitError, match=f"sets of {capacity} vectors"):
        require_supported_capacity(capacity)
    for supported in range(1, 9):
        require_supported_capacity(supported)


@pytest.mark.parametrize("shape", [(2, 3), (5, 3, 2), (4,)], ids=str)
def test_matrices_that_are_not_square_are_refused(shape):
    with pytest.raises(ShapeError, match=r"needs square matrices .* equal capacity"):
        require_square(torch.zeros(shape))


def test_scipy_finds_no_better_assignment_among_many_sizes_and_ranges():
    rng = np.random.default_rng(3)
    for size in range(1, 9):
        spread = 10.0 ** rng.uniform(-3, 3)
        matrix = torch.from_numpy(spread * rng.standard_normal((size, size)))
        rows, columns = linear_sum_assignment(matrix.numpy(), maximize=True)
        best = matrix[rows, columns].sum()
        torch.testing.assert_close(best_assignment(matrix)[0], best)

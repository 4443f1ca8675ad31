"""SetSim on each of its paths: the canonical kernel, with gradients, in double precision."""

import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from adaptiveembed.errors import CapacityLimitError, DtypeError, ShapeError, UnequalCapacityError
from adaptiveembed.similarity import (
    lower_bound,
    mean_maxsim_matrix,
    setsim_assignment,
    setsim_matrix,
    setsim_pairs,
    upper_bound,
)
from adaptiveembed.similarity.setsim import require_comparable, require_same_space
from tests.reference import setsim as literal
from tests.similarity.sets import KINDS, aligned_batches, sets_of_kind, two_batches, unit_sets


def by_kernel(queries, gallery):
    return setsim_matrix(queries.float(), gallery.float())


def with_gradient(queries, gallery):
    return setsim_matrix(queries.float().requires_grad_(), gallery.float()).detach()


def in_double(queries, gallery):
    return setsim_matrix(queries.double(), gallery.double()).float()


def in_double_with_gradient(queries, gallery):
    return setsim_matrix(queries.double(), gallery.double().requires_grad_()).detach().float()


def pair_by_pair(queries, gallery):
    rows = torch.cartesian_prod(torch.arange(len(queries)), torch.arange(len(gallery)))
    scores = setsim_pairs(queries.float()[rows[:, 0]], gallery.float()[rows[:, 1]])
    return scores.reshape(len(queries), len(gallery))


PATHS = [by_kernel, with_gradient, in_double, in_double_with_gradient, pair_by_pair]
every_path = pytest.mark.parametrize("score", PATHS, ids=lambda path: path.__name__)
laws = settings(max_examples=40)  # on each of the five paths
every_capacity = pytest.mark.parametrize("capacity", range(1, 9))


def exact_cosines(queries, gallery):
    products = torch.einsum("qid,gjd->qgij", queries.double(), gallery.double())
    return products.flatten(0, 1).numpy()


def close(found, expected):
    expected = torch.as_tensor(expected).to(found)
    torch.testing.assert_close(found, expected.reshape(found.shape), rtol=0, atol=1e-6)


# --- The equation ---------------------------------------------------------------------------------


@every_path
def test_two_by_two_by_hand(score):
    # Crossing over gives the mean of 0.8 and 0.6, staying that of 0.6 and -0.8.
    queries = torch.tensor([[[0.6, 0.8], [0.6, -0.8]]])
    gallery = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    close(score(queries, gallery), [[0.7]])


@every_path
@laws
@given(batches=two_batches(max_capacity=4, max_items=3))
def test_every_score_is_that_of_the_literal_twin(score, batches):
    queries, gallery = batches
    expected = [[literal.setsim(query, item) for item in gallery] for query in queries]
    close(score(queries, gallery), expected)


@every_path
@pytest.mark.parametrize("capacity", range(1, 7))
def test_ten_thousand_pairs_score_as_all_permutations_say(score, capacity):
    queries, gallery = unit_sets(80, capacity, 24), unit_sets(125, capacity, 24, seed=1)
    expected = literal.best_totals(exact_cosines(queries, gallery)) / capacity
    close(score(queries, gallery), expected)


@every_path
@pytest.mark.parametrize("capacity", [7, 8])
def test_ten_thousand_pairs_of_large_sets_score_as_scipy_says(score, capacity):
    queries, gallery = unit_sets(80, capacity, 24), unit_sets(125, capacity, 24, seed=1)
    exact = exact_cosines(queries, gallery)
    best = [matrix[linear_sum_assignment(matrix, maximize=True)].mean() for matrix in exact]
    close(score(queries, gallery), best)


@pytest.mark.parametrize("dim", [1, 2, 3, 255, 256, 257, 1000, 4096])
def test_long_and_short_vectors_score_as_in_double_precision(dim):
    queries, gallery = unit_sets(5, 4, dim), unit_sets(20, 4, dim, seed=1)
    near = torch.nn.functional.normalize(queries[:1] + 0.01 * gallery, dim=-1)
    gallery = torch.cat([gallery, near, queries, -queries])
    expected = literal.best_totals(exact_cosines(queries, gallery)) / 4
    close(by_kernel(queries, gallery), expected)
    close(with_gradient(queries, gallery), expected)


# --- Its laws -------------------------------------------------------------------------------------


@every_path
@laws
@given(batches=two_batches(max_items=8))
def test_scores_do_not_depend_on_which_side_asks(score, batches):
    queries, gallery = batches
    close(score(queries, gallery), score(gallery, queries).T)


@every_path
@laws
@given(batches=two_batches(max_items=8), random=st.randoms(use_true_random=False))
def test_the_order_within_a_set_does_not_matter(score, batches, random):
    queries, gallery = batches
    one, other = (random.sample(range(queries.shape[1]), queries.shape[1]) for _ in range(2))
    close(score(queries[:, one], gallery[:, other]), score(queries, gallery))


@every_path
@laws
@given(batches=two_batches(max_items=8))
def test_a_set_scores_one_with_itself(score, batches):
    queries, _ = batches
    close(score(queries, queries).diagonal(), torch.ones(len(queries)))


@every_path
@laws
@given(batches=two_batches(max_capacity=1))
def test_sets_of_one_vector_score_their_cosine(score, batches):
    queries, gallery = batches
    close(score(queries, gallery), (queries[:, 0].double() @ gallery[:, 0].double().T).clamp(-1, 1))


@every_path
@laws
@given(batches=two_batches(max_items=8))
def test_no_score_exceeds_the_mean_maxsim_of_either_side(score, batches):
    queries, gallery = batches
    scores = score(queries, gallery)
    assert (scores <= mean_maxsim_matrix(queries, gallery) + 1e-6).all()
    assert (scores <= mean_maxsim_matrix(gallery, queries).T + 1e-6).all()


@every_path
@laws
@given(batches=two_batches(max_items=8))
def test_scores_lie_between_the_bounds(score, batches):
    queries, gallery = batches
    cosines = torch.einsum("qid,gjd->qgij", queries, gallery)
    scores = score(queries, gallery)
    assert (lower_bound(cosines) <= scores + 1e-6).all()
    assert (scores <= upper_bound(cosines) + 1e-6).all()


@every_path
@pytest.mark.parametrize("kind", KINDS)
@every_capacity
def test_scores_never_leave_the_interval(score, kind, capacity):
    sets = sets_of_kind(kind, 40, capacity, 50)
    scores = score(torch.cat([sets, -sets]), sets)
    assert scores.abs().max() <= 1


# --- Number types ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@every_capacity
def test_half_vectors_are_summed_in_single_precision(dtype, capacity):
    queries = unit_sets(8, capacity, 512, dtype=dtype)
    gallery = unit_sets(9, capacity, 512, seed=1, dtype=dtype)
    found = setsim_matrix(queries, gallery)
    assert found.dtype == torch.float32
    assert torch.equal(found, setsim_matrix(queries.float(), gallery.float()))
    asking = setsim_matrix(queries, gallery.clone().requires_grad_())
    assert asking.dtype == torch.float32
    close(asking.detach(), found)
    assert setsim_pairs(queries, gallery[:8]).dtype == torch.float32


@pytest.mark.parametrize("length", [1 - 1e-3, 1 + 1e-3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@every_capacity
def test_half_vectors_of_a_length_slightly_off_stay_in_the_interval(dtype, length, capacity):
    sets = (length * unit_sets(10, capacity, 64)).to(dtype)
    asking = sets.clone().requires_grad_()
    pairs = torch.cat([sets, sets]), torch.cat([sets, -sets])
    for scores in (
        setsim_matrix(sets, torch.cat([sets, -sets])),
        setsim_matrix(asking, torch.cat([sets, -sets])),
        setsim_matrix(sets.double(), -sets.double()),
        setsim_pairs(*pairs),
    ):
        assert scores.abs().max() <= 1


def test_double_precision_keeps_its_precision_with_and_without_gradient():
    queries = unit_sets(5, 3, 40, dtype=torch.float64)
    gallery = unit_sets(6, 3, 40, seed=1, dtype=torch.float64)
    expected = literal.best_totals(exact_cosines(queries, gallery)).reshape(5, 6) / 3
    for scores in (
        setsim_matrix(queries, gallery),
        setsim_matrix(queries.clone().requires_grad_(), gallery).detach(),
    ):
        torch.testing.assert_close(scores, torch.from_numpy(expected), rtol=0, atol=1e-14)


@given(two_batches())
def test_a_score_has_the_same_bits_alone_and_in_any_company(batches):
    queries, gallery = batches
    together = setsim_matrix(queries, gallery)
    for query in range(len(queries)):
        alone = setsim_matrix(queries[query : query + 1], gallery)
        assert torch.equal(alone[0], together[query])
    assert torch.equal(setsim_matrix(queries, gallery[-1:]), together[:, -1:])
    assert torch.equal(setsim_matrix(queries.flip(0), gallery.flip(0)), together.flip(0, 1))


def test_sets_that_do_not_lie_in_order_score_the_same():
    queries, gallery = unit_sets(6, 4, 10), unit_sets(7, 4, 10, seed=1)
    turned = queries.transpose(0, 2).contiguous().transpose(0, 2)
    strided = torch.cat([gallery, gallery], dim=1)[:, ::2][:, [0, 2, 1, 3]]
    assert torch.equal(setsim_matrix(turned, gallery), setsim_matrix(queries, gallery))
    assert torch.equal(
        setsim_matrix(queries, strided), setsim_matrix(queries, strided.contiguous())
    )


@every_path
@pytest.mark.parametrize(("queries", "items"), [(0, 3), (3, 0), (0, 0)])
def test_no_sets_at_all_have_no_scores(score, queries, items):
    found = score(torch.empty(queries, 2, 5), torch.empty(items, 2, 5))
    assert found.shape == (queries, items)


# --- Gradients ------------------------------------------------------------------------------------


@every_capacity
def test_gradients_are_those_of_finite_differences(capacity):
    # Random sets are away from ties, where SetSim has a gradient.
    queries = unit_sets(2, capacity, 6, dtype=torch.float64).requires_grad_()
    gallery = unit_sets(3, capacity, 6, seed=1, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(setsim_matrix, (queries, gallery))
    assert torch.autograd.gradcheck(setsim_pairs, (queries, gallery[:2]))


def gradients(queries, gallery, score=setsim_matrix):
    queries, gallery = queries.clone().requires_grad_(), gallery.clone().requires_grad_()
    score(queries, gallery).sum().backward()
    return queries.grad, gallery.grad


@given(aligned_batches(max_items=6))
def test_the_gradient_is_that_of_the_assignment_returned(batches):
    queries, gallery = batches
    columns = setsim_assignment(queries, gallery)
    partners = torch.stack([item[order] for item, order in zip(gallery, columns, strict=True)])
    found, _ = gradients(queries, gallery, setsim_pairs)
    torch.testing.assert_close(found, partners / queries.shape[1])


@pytest.mark.parametrize("kind", ["one-hot", "equal", "copied"])
@every_capacity
def test_the_gradient_among_ties_is_always_the_same(kind, capacity):
    queries, gallery = sets_of_kind(kind, 20, capacity, 3).split(10)
    once = gradients(queries, gallery)
    alone = [gradients(query[None], gallery)[0] for query in queries]
    torch.testing.assert_close(gradients(queries, gallery), once, rtol=0, atol=0)
    torch.testing.assert_close(torch.cat(alone), once[0])


@pytest.mark.parametrize("capacity", [1, 2, 4, 8])
def test_the_gradient_of_a_set_with_itself_is_its_own_direction(capacity):
    # The score is held at 1, where clamping alone would let no gradient through.
    sets = unit_sets(3, capacity, 16)
    found, _ = gradients(sets, sets, setsim_pairs)
    torch.testing.assert_close(found, sets / capacity)


def test_no_gradient_is_recorded_where_none_is_wanted():
    queries, gallery = unit_sets(2, 3, 4).requires_grad_(), unit_sets(2, 3, 4, seed=1)
    with torch.no_grad():
        assert not setsim_matrix(queries, gallery).requires_grad
    assert setsim_matrix(queries, gallery).requires_grad


# --- Which vector matched which -------------------------------------------------------------------


@given(aligned_batches(max_capacity=4, max_items=4))
def test_the_assignment_returned_attains_the_score(batches):
    queries, gallery = batches
    columns = setsim_assignment(queries, gallery)
    cosines = torch.einsum("pid,pjd->pij", queries, gallery)
    attained = cosines.gather(-1, columns.unsqueeze(-1)).squeeze(-1).mean(-1)
    best = [literal.setsim(query, item) for query, item in zip(queries, gallery, strict=True)]
    close(attained, best)
    close(setsim_pairs(queries, gallery), best)


@pytest.mark.parametrize("kind", ["one-hot", "equal"])
def test_the_assignment_among_ties_is_that_of_the_literal_twin(kind):
    queries, gallery = sets_of_kind(kind, 60, 4, 3).split(30)
    expected = [
        literal.setsim_assignment(query, item) for query, item in zip(queries, gallery, strict=True)
    ]
    assert setsim_assignment(queries, gallery).tolist() == [list(columns) for columns in expected]


@given(aligned_batches(max_items=8))
def test_aligned_pairs_score_as_the_diagonal_of_all_pairs(batches):
    queries, gallery = batches
    close(setsim_pairs(queries, gallery), setsim_matrix(queries, gallery).diagonal())


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [setsim_matrix, setsim_pairs, setsim_assignment])
def test_unequal_capacities_are_refused(score):
    with pytest.raises(UnequalCapacityError, match=r"got 2 query vectors and 3 .* activate"):
        score(unit_sets(4, 2, 5), unit_sets(4, 3, 5))


@pytest.mark.parametrize("score", [setsim_matrix, setsim_pairs, setsim_assignment])
def test_nine_vectors_are_refused(score):
    with pytest.raises(CapacityLimitError, match=r"sets of 9 vectors cannot .* select fewer"):
        score(unit_sets(1, 9, 5), unit_sets(1, 9, 5))


@pytest.mark.parametrize("score", [setsim_matrix, setsim_pairs, setsim_assignment])
def test_vectors_of_other_dimensions_are_refused(score):
    with pytest.raises(ShapeError, match="5 dimensions and gallery vectors 6; embed both with one"):
        score(unit_sets(1, 2, 5), unit_sets(1, 2, 6))


@pytest.mark.parametrize("score", [setsim_pairs, setsim_assignment])
def test_pairs_that_are_not_aligned_are_refused(score):
    with pytest.raises(ShapeError, match="got 2 and 3; use setsim_matrix for all pairs"):
        inspect.unwrap(score)(unit_sets(2, 2, 5), unit_sets(3, 2, 5))


# The shape check of the test run speaks before our errors, which therefore are asked directly.


def test_a_set_without_its_batch_is_refused():
    sets = unit_sets(1, 2, 5)
    with pytest.raises(ShapeError, match=r"query sets are \[items.*got shape \(2, 5\); add .*unsq"):
        require_same_space(sets[0], sets)
    with pytest.raises(ShapeError, match="gallery sets are"):
        require_same_space(sets, sets[0])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool], ids=str)
def test_whole_numbers_are_refused(dtype):
    sets, whole = unit_sets(1, 2, 5), torch.ones(1, 2, 5, dtype=dtype)
    with pytest.raises(DtypeError, match=rf"query sets hold {dtype}; convert them with \.float"):
        require_comparable(whole, sets)
    with pytest.raises(DtypeError, match="gallery sets hold"):
        require_comparable(sets, whole)


def test_sets_on_two_devices_are_refused():
    sets = unit_sets(1, 2, 5)
    with pytest.raises(ShapeError, match="are on meta and the gallery on cpu; move one of them"):
        require_same_space(sets.to("meta"), sets)


@pytest.mark.parametrize("score", [setsim_matrix, setsim_pairs])
@pytest.mark.parametrize("gradient", [False, True])
def test_what_is_not_a_number_stays_so(score, gradient):
    queries, gallery = unit_sets(3, 4, 8), unit_sets(3, 4, 8)
    queries[1, 2, 3] = float("nan")
    scores = score(queries.requires_grad_(gradient), gallery)
    wrong = scores.isnan().reshape(3, -1).all(dim=1)
    assert wrong.tolist() == [False, True, False]
    assert scores.isnan().reshape(3, -1).any(dim=1).tolist() == wrong.tolist()


@pytest.mark.parametrize("score", [setsim_matrix, setsim_pairs])
def test_autocast_does_not_coarsen_scores(score):
    queries, gallery = unit_sets(3, 4, 8).requires_grad_(), unit_sets(3, 4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        coarse = score(queries, gallery)
    assert torch.equal(coarse, score(queries, gallery))

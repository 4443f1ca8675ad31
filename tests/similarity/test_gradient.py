"""SetSim under many sets of positions at once, and its gradient: kernels, layers, autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.errors import CapacityLimitError, ShapeError
from adaptiveembed.similarity import gradient, setsim_matrices, setsim_matrix
from adaptiveembed.similarity.gradient import chains
from adaptiveembed.similarity.setsim import _general_matrix, accumulated
from tests.similarity.sets import KINDS, sets_of_kind, unit_sets
from tests.similarity.test_tiling import PeakMemory

PREFIXES = [(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (4,), (4, 5), (4, 5, 6), (4, 5, 6, 7)]
ALL = [tuple(range(8))]

position_sets = st.lists(
    st.permutations(range(2, 8)).flatmap(
        lambda order: st.integers(1, 6).map(lambda length: tuple(order[:length]))
    ),
    min_size=1,
    max_size=4,
)
several = pytest.mark.parametrize(
    "sets",
    [PREFIXES, ALL, [(0,)], [(2, 0), (0, 2), (2, 0, 5), (2, 0)], [tuple(range(k)) for k in (3, 8)]],
    ids=["every prefix", "all", "one", "overlapping", "nested"],
)


def pulled(queries, gallery, sets, weights=None, score=setsim_matrices):
    """The gradients of a weighted sum of all scores."""
    queries, gallery = queries.detach().requires_grad_(), gallery.detach().requires_grad_()
    matrices = torch.stack(list(score(queries, gallery, sets)))
    if weights is None:
        weights = torch.randn(matrices.shape, generator=torch.Generator().manual_seed(5))
    return torch.autograd.grad((matrices * weights.to(matrices)).sum(), (queries, gallery))


def one_by_one(queries, gallery, sets):
    """The slow path: autograd through the gathered entries, one set of positions at a time."""
    kept = [(queries[:, list(each)], gallery[:, list(each)]) for each in sets]
    return [_general_matrix(*accumulated(*each)) for each in kept]


def close(found, expected, tolerance=1e-5):
    for one, other in zip(found, expected, strict=True):
        scale = float(other.abs().max()) or 1.0
        torch.testing.assert_close(one, other.to(one), rtol=0, atol=tolerance * scale)


# --- Chains ---------------------------------------------------------------------------------------


def test_the_prefixes_of_two_groups_are_two_chains():
    first, second = chains(PREFIXES)
    assert first == ((0, 1, 2, 3), (1, 2, 3, 4), (0, 1, 2, 3))
    assert second == ((4, 5, 6, 7), (1, 2, 3, 4), (4, 5, 6, 7))


@given(position_sets)
def test_every_set_stands_in_one_chain_as_the_beginning_that_it_is(sets):
    found = {}
    for chain in chains(sets):
        assert list(chain.lengths) == sorted(chain.lengths)
        assert chain.lengths[-1] == len(chain.positions)
        for length, place in zip(chain.lengths, chain.places, strict=True):
            assert place not in found
            found[place] = chain.positions[:length]
    assert [found[place] for place in range(len(sets))] == sets


# --- Scores ---------------------------------------------------------------------------------------


@settings(max_examples=15)  # each compiles kernels of its own
@given(position_sets, st.sampled_from(sorted(KINDS)), st.integers(1, 40), st.integers(1, 20))
def test_scores_have_the_bits_of_the_sets_compared_alone(sets, kind, queries, dim):
    left, right = sets_of_kind(kind, queries + 9, 8, dim).split([queries, 9])
    for asking in (False, True):
        found = setsim_matrices(left.requires_grad_(asking), right, sets)
        for positions, scores in zip(sets, found, strict=True):
            alone = setsim_matrix(left.detach()[:, list(positions)], right[:, list(positions)])
            assert torch.equal(scores, alone)


@pytest.mark.parametrize("capacity", range(1, 9))
def test_a_score_has_the_same_bits_with_and_without_gradient(capacity):
    queries, gallery = unit_sets(40, capacity, 300), unit_sets(30, capacity, 300, seed=1)
    asking = setsim_matrix(queries.clone().requires_grad_(), gallery)
    assert torch.equal(asking, setsim_matrix(queries, gallery))


@several
def test_the_layers_score_as_the_kernel_does(sets):
    queries, gallery = unit_sets(5, 8, 16), unit_sets(7, 8, 16, seed=1)
    found = setsim_matrices(queries.double(), gallery.double(), sets)
    assert all(each.dtype == torch.float64 for each in found)
    close(setsim_matrices(queries, gallery, sets), found, 1e-6)


# --- Gradients ------------------------------------------------------------------------------------


@several
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_the_kernel_is_that_of_autograd(sets, kind):
    queries, gallery = sets_of_kind(kind, 50, 8, 20).split([17, 33])
    close(pulled(queries, gallery, sets), pulled(queries, gallery, sets, score=one_by_one))


@several
def test_the_gradient_of_the_layers_is_that_of_autograd(sets):
    queries, gallery = unit_sets(5, 8, 16, dtype=torch.float64), unit_sets(7, 8, 16, seed=1)
    gallery = gallery.double()
    slow = pulled(queries, gallery, sets, score=one_by_one)
    close(pulled(queries, gallery, sets), slow, 1e-12)


@settings(max_examples=15)  # each compiles kernels of its own
@given(position_sets, st.sampled_from(["one-hot", "equal", "copied"]))
def test_kernel_and_layers_choose_the_same_assignment_among_ties(sets, kind):
    queries, gallery = sets_of_kind(kind, 20, 8, 3).split([9, 11])
    if kind == "one-hot":  # whose sums are exact in every order
        close(pulled(queries, gallery, sets), pulled(queries.double(), gallery.double(), sets))
    assert all(map(torch.equal, pulled(queries, gallery, sets), pulled(queries, gallery, sets)))


@several
def test_gradients_are_those_of_finite_differences(sets):
    queries = unit_sets(1, 8, 4, dtype=torch.float64).requires_grad_()
    gallery = unit_sets(2, 8, 4, seed=1, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *sides: setsim_matrices(*sides, sets), (queries, gallery)
    )


@several
def test_the_kernel_pulls_as_finite_differences_say(sets):
    queries, gallery = unit_sets(3, 8, 6), unit_sets(4, 8, 6, seed=1)
    ones = torch.ones(len(sets), 3, 4)
    found, _ = pulled(queries, gallery, sets, ones)
    step = 1e-6 * unit_sets(3, 8, 6, seed=2, dtype=torch.float64)
    ahead, behind = (
        sum(each.sum() for each in setsim_matrices(queries + sign * step, gallery, sets))
        for sign in (1, -1)
    )
    expected = (found * step).sum()
    torch.testing.assert_close((ahead - behind) / 2, expected, rtol=1e-5, atol=0)


def test_matrices_that_nobody_uses_pull_nothing():
    queries, gallery = unit_sets(3, 8, 6).requires_grad_(), unit_sets(4, 8, 6, seed=1)
    setsim_matrices(queries, gallery, PREFIXES)[1].sum().backward()
    moved = queries.grad.abs().amax(dim=(0, 2)) > 0
    assert moved.tolist() == [True, True, *[False] * 6]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_vectors_are_pulled_in_their_own_type(dtype):
    queries, gallery = (unit_sets(4, 8, 64, seed=seed, dtype=dtype) for seed in (0, 1))
    found = pulled(queries, gallery, PREFIXES)
    assert all(each.dtype == dtype for each in found)
    close(found, pulled(queries.float(), gallery.float(), PREFIXES), 4e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_autocast_does_not_coarsen_gradients(dtype):
    queries, gallery = unit_sets(5, 8, 16, dtype=dtype), unit_sets(7, 8, 16, dtype=dtype)
    expected = pulled(queries, gallery, PREFIXES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = pulled(queries, gallery, PREFIXES)
    assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("queries", "items"), [(0, 3), (3, 0), (0, 0)])
def test_without_a_pair_nothing_is_pulled(queries, items, dtype):
    left, right = torch.zeros(queries, 8, 5, dtype=dtype), torch.zeros(items, 8, 5, dtype=dtype)
    found = pulled(left, right, PREFIXES)
    assert not any(each.any() for each in found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_second_derivative_is_refused(dtype):
    queries = unit_sets(2, 4, 6, dtype=dtype).requires_grad_()
    scores = setsim_matrix(queries, unit_sets(3, 4, 6, seed=1, dtype=dtype))
    (first,) = torch.autograd.grad((scores**2).sum(), queries, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        first.sum().backward()


def test_vectors_that_do_not_lie_in_order_are_pulled_alike():
    queries, gallery = unit_sets(6, 8, 10), unit_sets(7, 8, 10, seed=1)
    turned = [each.transpose(0, 2).contiguous().transpose(0, 2) for each in (queries, gallery)]
    assert all(map(torch.equal, pulled(*turned, PREFIXES), pulled(queries, gallery, PREFIXES)))


# --- Memory ---------------------------------------------------------------------------------------


@several
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_few_pairs_at_a_time_pull_as_all_at_once(monkeypatch, sets, dtype):
    queries, gallery = unit_sets(20, 8, 9, dtype=dtype), unit_sets(19, 8, 9, seed=1, dtype=dtype)
    expected = pulled(queries, gallery, sets)
    monkeypatch.setattr(gradient, "MEMORY_BUDGET", 1 << 18)
    monkeypatch.setattr(gradient, "GRADIENT_TILE", 1 << 13)
    close(pulled(queries, gallery, sets), expected, 1e-6)


def test_the_layers_keep_within_their_budget(monkeypatch):
    budget = 4 << 20
    monkeypatch.setattr(gradient, "MEMORY_BUDGET", budget)
    queries, gallery = (unit_sets(160, 8, 4, seed=seed, dtype=torch.float64) for seed in (0, 1))
    weights = torch.ones(1, 160, 160)
    with PeakMemory() as memory:
        pulled(queries, gallery, ALL, weights)
    kept = 160 * 160 * (4 + 5 * 8)  # words, scores and their gradients
    assert memory.peak <= budget + kept


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", [(0, 8), (-1,), (1, 1)], ids=str)
def test_positions_that_a_set_does_not_have_are_refused(positions):
    sets = unit_sets(2, 8, 5)
    with pytest.raises(
        ShapeError, match=r"positions .* of a set of 8; name each once, from 0 to 7"
    ):
        setsim_matrices(sets, sets, [positions])


@pytest.mark.parametrize("count", [0, 9])
def test_sets_that_cannot_be_matched_exactly_are_refused(count):
    sets = unit_sets(2, 10, 5)
    with pytest.raises(CapacityLimitError, match=f"sets of {count} vectors"):
        setsim_matrices(sets, sets, [tuple(range(count))])


@pytest.mark.parametrize("default", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_the_type_that_torch_makes_tensors_of_by_default_does_not_matter(default):
    sides = unit_sets(5, 4, 6, seed=1), unit_sets(40, 4, 6, seed=2)
    known = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        found = pulled(*sides, [(0, 1, 2, 3)], torch.ones(1, 5, 40))
    finally:
        torch.set_default_dtype(known)
    assert [each.dtype for each in found] == [torch.float32] * 2
    expected = pulled(*sides, [(0, 1, 2, 3)], torch.ones(1, 5, 40))
    assert all(map(torch.equal, found, expected))

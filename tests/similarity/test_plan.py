"""The plan of the dynamic program: no more terms than needed, in an order that settles ties."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.similarity.kernels.plan import assignment_plan
from adaptiveembed.structure import PAPER_LAYOUT, GroupLayout, every_prefix
from tests.reference.setsim import best_totals

subsets = st.lists(st.sets(st.integers(0, 5), min_size=1).map(sorted).map(tuple), min_size=1)


def plan_of(*targets, size=8):
    return assignment_plan(size, tuple(map(tuple, targets)))


def values_of(plan, cosines):
    """What the plan says, carried out with numbers."""
    values = []
    for terms in plan.states:
        before = [0.0 if term.source is None else values[term.source] for term in terms]
        sums = [value + cosines[t.row, t.column] for value, t in zip(before, terms, strict=True)]
        values.append(max(sums))
    return [values[target] for target in plan.targets]


@pytest.mark.parametrize("size", range(1, 9))
def test_one_set_takes_half_as_many_terms_as_subsets_times_size(size):
    assert plan_of(range(size), size=size).num_terms == size * 2 ** (size - 1)


def test_the_twenty_selections_of_the_paper_cost_half_as_much_again_as_the_largest():
    selections = every_prefix(PAPER_LAYOUT).nodes
    assert plan_of(*(selection.positions for selection in selections)).num_terms == 1549
    assert plan_of(range(8)).num_terms == 1024


@pytest.mark.parametrize("sizes", [(4, 4), (8,), (3, 5), (2, 2, 2), (1,)], ids=str)
def test_shared_states_never_cost_more_than_plans_of_their_own(sizes):
    selections = every_prefix(GroupLayout(sizes)).nodes
    targets = [selection.positions for selection in selections]
    alone = sum(plan_of(target).num_terms for target in targets)
    assert plan_of(*targets).num_terms <= alone


@given(subsets)
def test_every_state_meets_its_columns_in_ascending_order(targets):
    for terms in plan_of(*targets).states:
        assert all(one.column < other.column for one, other in pairwise(terms))
        assert len({term.row for term in terms}) == 1


@given(subsets)
def test_every_state_follows_the_states_that_it_needs(targets):
    for number, terms in enumerate(plan_of(*targets).states):
        assert all(term.source is None or term.source < number for term in terms)


@given(subsets, st.integers(0, 99))
def test_every_target_gets_the_best_total_of_its_rows_and_columns(targets, seed):
    cosines = np.random.default_rng(seed).uniform(-1, 1, (6, 6))
    for target, found in zip(targets, values_of(plan_of(*targets), cosines), strict=True):
        expected = best_totals(cosines[np.ix_(target, target)][None])
        np.testing.assert_allclose(found, expected[0], rtol=0, atol=1e-12)


@given(subsets, st.integers(0, 99))
def test_a_total_has_the_same_bits_whatever_else_is_computed_with_it(targets, seed):
    cosines = np.random.default_rng(seed).uniform(-1, 1, (6, 6)).astype(np.float32)
    together = values_of(plan_of(*targets), cosines)
    alone = [values_of(plan_of(target), cosines)[0] for target in targets]
    assert together == alone

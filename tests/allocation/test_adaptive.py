"""The learned allocator keeps the contract, and explains what it does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from adaptiveembed.allocation import feedback
from adaptiveembed.allocation.adaptive import AdaptiveAllocator
from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.allocation.feedback import FeedbackSettings, policy_inputs
from adaptiveembed.allocation.mua import marginal_utility_allocation
from adaptiveembed.allocation.policy import (
    InvariantPolicy,
    PolicyKind,
    PolicySettings,
    action_probabilities,
    make_policy,
)
from adaptiveembed.errors import LayoutMismatchError, SettingError, ShapeError
from adaptiveembed.structure.groups import GroupLayout
from tests.allocation.settings import DIM, SPACES, bank_of
from tests.contracts import allocator as contract
from tests.structure.strategies import random_candidates

DEPTH = 7
SHOWN = FeedbackSettings(depth=DEPTH)
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
every_kind = pytest.mark.parametrize("kind", PolicyKind)


def allocator_of(space=SPACES["paper"], kind=PolicyKind.TST, threshold=0.3, **changes):
    policy = make_policy(PolicySettings(kind, width=8, heads=2), space, DIM, DEPTH)
    bank = bank_of(layout=space.layout)
    if isinstance(policy, InvariantPolicy):
        candidates = random_candidates(40, space.layout, DIM, seed=8)
        policy.standardize_by(policy_inputs(candidates, bank, space, SHOWN))
    return AdaptiveAllocator(policy, bank, threshold, replace(SHOWN, **changes))


def candidates_of(space=SPACES["paper"], num_items=12):
    return random_candidates(num_items, space.layout, DIM, seed=3)


@every_kind
@every_space
@pytest.mark.parametrize(
    "check",
    [
        contract.check_keeps_the_items,
        contract.check_is_repeatable,
        contract.check_decides_item_by_item,
    ],
)
def test_it_keeps_the_contract_of_allocators(check, space, kind):
    allocator = allocator_of(space, kind)
    assert isinstance(allocator, Allocator)
    check(allocator, candidates_of(space, 6))


@every_kind
@every_space
def test_it_allocates_by_mua_on_the_whole_table_of_probabilities(space, kind):
    allocator, candidates = allocator_of(space, kind), candidates_of(space)
    inputs = policy_inputs(candidates, allocator.bank, space, SHOWN)
    with torch.no_grad():
        probabilities = action_probabilities(allocator.policy(inputs))
    # A threshold between two probabilities, so that rounding decides nothing.
    values = probabilities.unique()
    threshold = float(values[len(values) // 2 :][:2].mean())
    places = marginal_utility_allocation(probabilities, allocator.actions, threshold)
    expected = tuple(space.nodes[place] for place in places.tolist())
    assert replace(allocator, threshold=threshold).allocate(candidates).selections == expected


def test_the_threshold_decides_how_far_items_go():
    space = SPACES["paper"]
    everything = allocator_of(threshold=0.0).allocate(candidates_of())
    assert all(space.is_terminal(selection) for selection in everything.selections)
    nothing = allocator_of(threshold=1.0).allocate(candidates_of())
    assert set(nothing.selections) == {space.root}
    told = allocator_of().explain(candidates_of())
    middle = sorted(max(each.decisions[0].expansions.values()) for each in told)[5]
    between = allocator_of(threshold=middle).allocate(candidates_of())
    assert between.selections.count(space.root) == 6


@every_space
def test_an_explanation_tells_of_the_allocation(space):
    allocator, candidates = allocator_of(space), candidates_of(space)
    caes, explanations = allocator.allocate(candidates), allocator.explain(candidates)
    assert [each.selection for each in explanations] == list(caes.selections)
    assert [each.capacity for each in explanations] == caes.capacities.tolist()
    for each in explanations:
        reached = space.root
        for decision in each.decisions:
            assert decision.state == reached
            best = max(decision.expansions, key=decision.expansions.get)
            goes_on = decision.expansions[best] > allocator.threshold
            assert decision.chosen == (best if goes_on else reached)
            assert set(decision.expansions) == set(space.expansions(reached))
            odds = decision.stop + sum(decision.expansions.values())
            assert odds == pytest.approx(1, abs=1e-5)
            reached = decision.chosen
        assert reached == each.selection


def test_an_explanation_shows_the_feedback():
    allocator, candidates = allocator_of(threshold=0.0), candidates_of()
    inputs = policy_inputs(candidates, allocator.bank, SPACES["paper"], SHOWN)
    for item, explanation in enumerate(allocator.explain(candidates)):
        first = explanation.decisions[0]
        items = inputs.top_items[item, 0].tolist()
        assert first.bank_ids == tuple(f"b{place}" for place in items)
        assert first.bank_scores == pytest.approx(inputs.top_scores[item, 0].tolist(), abs=1e-6)
        np.testing.assert_allclose(first.responses, inputs.feedback[item, 0], atol=1e-6)


def test_parts_of_a_batch_are_the_batch(monkeypatch):
    allocator, candidates = allocator_of(), candidates_of(num_items=30)
    whole = allocator.allocate(candidates).selections
    monkeypatch.setattr(feedback, "MEMORY_BUDGET", 8 * 8 * 20 * 7)
    assert allocator.allocate(candidates).selections == whole
    assert tuple(each.selection for each in allocator.explain(candidates)) == whole


def test_nothing_of_allocating_is_remembered_for_gradients():
    allocator = allocator_of()
    allocator.allocate(candidates_of())
    assert all(weight.grad is None for weight in allocator.policy.parameters())
    assert torch.is_grad_enabled()


def test_what_cannot_allocate_is_refused_when_it_is_made():
    allocator = allocator_of()
    with pytest.raises(SettingError, match=r"threshold is 1\.5; give a probability"):
        replace(allocator, threshold=1.5)
    with pytest.raises(SettingError, match="threshold is nan"):
        replace(allocator, threshold=float("nan"))
    with pytest.raises(LayoutMismatchError, match=r"layout 3\+5 and the policy's space 4\+4"):
        replace(allocator, bank=bank_of(layout=GroupLayout((3, 5))))
    with pytest.raises(SettingError, match="top 7 items and the bank has 3"):
        replace(allocator, bank=bank_of(3))


def test_candidates_of_another_model_are_refused():
    allocator = allocator_of()
    with pytest.raises(LayoutMismatchError, match=r"bank has layout 4\+4 and the candidates 3\+5"):
        allocator.allocate(candidates_of(SPACES["unequal groups"]))
    with pytest.raises(ShapeError, match="query vectors have 9 dimensions"):
        allocator.allocate(random_candidates(2, SPACES["paper"].layout, 9))

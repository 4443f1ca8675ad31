"""The loss of UPO, its gradient, and where it leads."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.upo import expected_utility, upo_loss
from tests.allocation.settings import SPACES, random_logits
from tests.reference import upo as literal

every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def random_utilities(logits, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(logits.shape, generator=generator, dtype=torch.float64)


def gradient_of(logits, utilities):
    leaf = logits.clone().requires_grad_()
    upo_loss(leaf, utilities).backward()
    return leaf.grad


def literal_states(logits, utilities):
    rows = zip(logits.flatten(0, -2).tolist(), utilities.flatten(0, -2).tolist(), strict=True)
    return [tuple(row) for row in rows]


def test_two_states_by_hand():
    logits = torch.tensor([[0.0, 0.0], [0.0, -torch.inf]])
    utilities = torch.tensor([[0.0, 3.0], [0.0, 100.0]])
    torch.testing.assert_close(expected_utility(logits, utilities), torch.tensor([1.5, 0.0]))
    torch.testing.assert_close(upo_loss(logits, utilities), torch.tensor(-0.75))


@every_space
def test_the_loss_and_its_gradient_are_those_of_the_literal_twin(space):
    logits = random_logits(Actions(space)).double()
    utilities = random_utilities(logits)
    states = literal_states(logits, utilities)
    expected = torch.tensor(literal.gradient(states), dtype=torch.float64)
    torch.testing.assert_close(float(upo_loss(logits, utilities)), literal.upo_loss(states))
    torch.testing.assert_close(gradient_of(logits, utilities).flatten(0, -2), expected)


@every_space
def test_no_gradient_reaches_an_action_that_is_not_there(space):
    actions = Actions(space)
    logits = random_logits(actions).double()
    gradient = gradient_of(logits, random_utilities(logits))
    assert not gradient[:, ~actions.admissible].any()
    assert gradient.isfinite().all()


@every_space
@settings(max_examples=15)
@given(st.integers(0, 50), st.floats(-100, 100))
def test_a_shift_of_all_actions_of_a_state_changes_no_gradient(space, seed, shift):
    logits = random_logits(Actions(space), num_items=2, seed=seed).double()
    utilities = random_utilities(logits, seed)
    shifted = utilities + shift * torch.arange(1, 3)[:, None, None]
    torch.testing.assert_close(
        gradient_of(logits, shifted), gradient_of(logits, utilities), rtol=0, atol=1e-12
    )


def test_a_shift_of_all_but_stop_does_change_the_gradient():
    logits = random_logits(Actions(SPACES["paper"])).double()
    utilities = random_utilities(logits)
    shifted = utilities.clone()
    shifted[..., 1:] += 1
    assert not torch.allclose(gradient_of(logits, shifted), gradient_of(logits, utilities))


@every_space
def test_a_table_of_logits_converges_to_the_best_action(space):
    actions = Actions(space)
    logits = random_logits(actions, scale=0.1).double().requires_grad_()
    utilities = random_utilities(logits, seed=4)
    utilities[..., 0] = 0
    optimizer = torch.optim.SGD([logits], lr=40.0 * len(actions.states))
    for _ in range(300):
        optimizer.zero_grad()
        upo_loss(logits, utilities).backward()
        optimizer.step()
    best = utilities.masked_fill(~actions.admissible, -torch.inf).argmax(dim=-1)
    assert torch.equal(logits.argmax(dim=-1), best)

"""Policies beside the literal twin, and what every policy promises."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from adaptiveembed.allocation.actions import STOP, Actions
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import BankReading, FeedbackSettings, policy_inputs
from adaptiveembed.allocation.policy import (
    DecisionContext,
    InvariantPolicy,
    PolicyKind,
    PolicySettings,
    action_probabilities,
    make_policy,
    normalized_feedback,
)
from adaptiveembed.allocation.upo import upo_loss
from adaptiveembed.errors import SettingError, UnknownSelectionError
from adaptiveembed.structure.candidates import CandidateSets
from tests.allocation.settings import DIM, SPACES, bank_of, inputs_of
from tests.reference import policy as literal
from tests.structure.strategies import random_candidates

DEPTH = 7
SPACE = SPACES["paper"]
SMALL = PolicySettings(width=8, heads=2)
KINDS = [replace(SMALL, kind=kind) for kind in PolicyKind]
TRANSFORMERS = [each for each in KINDS if each.kind is not PolicyKind.INVARIANT]
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
every_kind = pytest.mark.parametrize("settings", KINDS, ids=[each.kind for each in KINDS])
both_transformers = pytest.mark.parametrize(
    "settings", TRANSFORMERS, ids=[each.kind for each in TRANSFORMERS]
)


def policy_of(settings, space=SPACE, seed=0):
    policy = make_policy(settings, space, DIM, DEPTH, seed=seed)
    if isinstance(policy, InvariantPolicy):
        policy.standardize_by(inputs_of(space, num_items=30, seed=9))
    return policy


def answer(policy, inputs):
    with torch.no_grad():
        return policy(inputs)


@both_transformers
@every_space
@pytest.mark.parametrize("training", [True, False])
def test_logits_are_those_of_the_literal_twin(settings, space, training):
    # While nothing is trained, torch computes attention by other code.
    for context in DecisionContext:
        policy = policy_of(replace(settings, context=context), space).train(training)
        inputs = inputs_of(space, num_items=1)
        found = answer(policy, inputs)[0]
        weights = {name: weight.double().tolist() for name, weight in policy.state_dict().items()}
        for place, state in enumerate(policy.actions.states[:5]):
            expected = literal.logits(
                weights,
                settings.heads,
                inputs.candidates[0].tolist(),
                inputs.feedback[0, place].tolist(),
                state.positions,
                policy.actions.candidates[place].nonzero().squeeze(-1).tolist(),
                place if context is DecisionContext.NODE else space.step_of(state),
            )
            possible = policy.actions.admissible[place]
            np.testing.assert_allclose(
                found[place, possible], np.array(expected)[possible], atol=2e-5
            )


@every_kind
@every_space
def test_what_does_not_leave_a_state_is_impossible_there(settings, space):
    actions = Actions(space)
    logits = answer(policy_of(settings, space), inputs_of(space))
    assert logits.shape == (5, *actions.admissible.shape)
    assert logits[:, actions.admissible].isfinite().all()
    assert (logits[:, ~actions.admissible] == -torch.inf).all()
    probabilities = action_probabilities(logits)
    torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(logits.shape[:2]))
    assert (probabilities[:, ~actions.admissible] == 0).all()


@every_kind
def test_a_batch_is_answered_as_its_items_alone(settings):
    policy, inputs = policy_of(settings), inputs_of(SPACE)
    alone = [answer(policy, inputs[item : item + 1]) for item in range(5)]
    torch.testing.assert_close(answer(policy, inputs), torch.cat(alone), rtol=1e-5, atol=1e-5)


@every_kind
@every_space
def test_a_state_is_answered_as_among_all_states(settings, space):
    policy = policy_of(settings, space)
    candidates = random_candidates(3, space.layout, DIM)
    bank, shown = bank_of(layout=space.layout), FeedbackSettings(depth=DEPTH)
    whole = answer(policy, policy_inputs(candidates, bank, space, shown))
    reading = BankReading(candidates, bank, shown)
    for place, state in enumerate(policy.actions.states):
        one = answer(policy, reading.at(state))
        torch.testing.assert_close(one[:, 0], whole[:, place], rtol=1e-5, atol=1e-5)


@every_kind
def test_the_order_of_the_feedbacks_items_does_not_matter(settings):
    policy, inputs = policy_of(settings), inputs_of(SPACE)
    shuffled = replace(inputs, feedback=inputs.feedback[..., [4, 2, 0, 6, 1, 5, 3]])
    torch.testing.assert_close(
        answer(policy, shuffled), answer(policy, inputs), rtol=1e-4, atol=1e-4
    )


def test_without_feedback_nothing_of_the_bank_is_read():
    policy = policy_of(replace(SMALL, kind=PolicyKind.TST_WITHOUT_FEEDBACK))
    inputs = inputs_of(SPACE)
    other = replace(inputs, feedback=torch.rand_like(inputs.feedback))
    assert torch.equal(answer(policy, inputs), answer(policy, other))
    assert not any(name.startswith("reader") for name in policy.state_dict())
    whole = policy_of(SMALL)
    assert not torch.equal(answer(whole, inputs), answer(whole, other))


def test_the_invariant_policy_survives_a_rotation_of_the_space():
    candidates, bank = random_candidates(5, SPACE.layout, DIM), bank_of()
    generator = torch.Generator().manual_seed(5)
    rotation = torch.linalg.qr(torch.randn(DIM, DIM, generator=generator)).Q

    def rotated(sets):
        return CandidateSets.normalized(sets.vectors @ rotation, SPACE.layout)

    shown = FeedbackSettings(depth=DEPTH)
    inputs = policy_inputs(candidates, bank, SPACE, shown)
    turned_bank = RetrievalBank(bank.ids, rotated(bank.candidates))
    turned = policy_inputs(rotated(candidates), turned_bank, SPACE, shown)
    invariant = policy_of(replace(SMALL, kind=PolicyKind.INVARIANT))
    torch.testing.assert_close(
        answer(invariant, turned), answer(invariant, inputs), rtol=1e-3, atol=1e-3
    )
    transformer = policy_of(SMALL)
    assert not torch.allclose(answer(transformer, turned), answer(transformer, inputs), atol=1e-2)


@pytest.mark.parametrize("selected", [[0], [0, 3], [1, 2, 5]])
def test_normalised_feedback_has_mean_zero_and_deviation_one_where_selected(selected):
    feedback = inputs_of(SPACE).feedback[:, 0]
    mask = torch.zeros(5, 8, dtype=torch.bool)
    mask[:, selected] = True
    found = normalized_feedback(feedback, mask)[:, selected].flatten(1)
    torch.testing.assert_close(found.mean(dim=1), torch.zeros(5), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.std(dim=1, correction=0), torch.ones(5), rtol=0, atol=1e-3)
    expected = [literal.normalized(item, selected) for item in feedback.tolist()]
    torch.testing.assert_close(
        normalized_feedback(feedback, mask), torch.tensor(expected), rtol=1e-4, atol=1e-4
    )


def test_equal_responses_are_no_reason_to_divide_by_zero():
    feedback = torch.full((2, 8, 1), 0.3)
    found = normalized_feedback(feedback, torch.ones(2, 8, dtype=torch.bool))
    assert found.abs().max() < 0.1


@every_kind
def test_weights_depend_on_the_seed_alone(settings):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = make_policy(settings, SPACE, DIM, DEPTH, seed=3).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    other = make_policy(settings, SPACE, DIM, DEPTH, seed=3).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    third = make_policy(settings, SPACE, DIM, DEPTH, seed=4).state_dict()
    assert any(not torch.equal(one[name], third[name]) for name in one)


@every_kind
def test_a_policy_is_its_state_and_its_settings(settings):
    policy, inputs = policy_of(settings), inputs_of(SPACE)
    again = make_policy(settings, SPACE, DIM, DEPTH, seed=99)
    again.load_state_dict(policy.state_dict())
    assert torch.equal(answer(again, inputs), answer(policy, inputs))


@every_kind
def test_every_weight_learns(settings):
    policy, inputs = policy_of(settings), inputs_of(SPACE)
    logits = policy(inputs)
    upo_loss(
        logits, torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    ).backward()
    for name, weight in policy.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        # a number added to all keys of an attention moves no share of it
        if "in_proj_bias" not in name:
            assert weight.grad.any(), name


@every_kind
def test_a_policy_learns_whom_to_expand(settings):
    inputs = inputs_of(SPACE, num_items=32)
    policy = policy_of(replace(settings, width=16))
    cosines = (inputs.candidates[:, 0] * inputs.candidates[:, 1]).sum(dim=-1)
    utilities = torch.zeros(32, 4, 6)
    utilities[:, 0, 2] = torch.where(cosines > cosines.median(), 1.0, -1.0)
    best = -upo_loss(100 * utilities.masked_fill(~policy.admissible, -torch.inf), utilities)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    for _ in range(45):
        optimizer.zero_grad()
        upo_loss(policy(inputs), utilities).backward()
        optimizer.step()
    assert -upo_loss(answer(policy, inputs), utilities) > 0.5 * best


def test_stopping_is_the_measure_of_the_invariant_policy():
    policy = policy_of(replace(SMALL, kind=PolicyKind.INVARIANT))
    assert not answer(policy, inputs_of(SPACE))[..., STOP].any()


def test_the_invariant_policy_standardises_by_its_training_inputs():
    policy, inputs = policy_of(KINDS[2]), inputs_of(SPACE, num_items=30, seed=9)
    features = policy.features(inputs, 0, 1)
    standard = (features - policy.means[1]) / policy.deviations[1]
    torch.testing.assert_close(
        standard.mean(dim=0), torch.zeros(features.shape[1]), atol=1e-3, rtol=0
    )
    varied = features.std(dim=0) > 1e-4
    torch.testing.assert_close(
        standard.std(dim=0, correction=0)[varied], torch.ones(int(varied.sum())), atol=1e-3, rtol=0
    )


def test_the_settings_of_the_paper_are_the_defaults():
    settings = PolicySettings()
    assert (settings.kind, settings.width, settings.heads) == (PolicyKind.TST, 128, 4)
    policy = make_policy(settings, SPACE, 256, 50)
    assert policy.embedding.linear.weight.shape == (128, 256)
    assert policy.head[2].out_features == 1 + len(SPACE.edges)
    assert policy.context.num_embeddings == 4
    steps = make_policy(PolicySettings(context=DecisionContext.STEP), SPACE, 256, 50)
    assert steps.context.num_embeddings == 3


def test_a_width_that_heads_cannot_share_is_refused():
    with pytest.raises(SettingError, match="width of 10 cannot be divided among 4 heads"):
        PolicySettings(width=10)


def test_inputs_of_another_space_are_refused():
    with pytest.raises(UnknownSelectionError, match="nothing to decide at selection"):
        policy_of(SMALL)(inputs_of(SPACES["every prefix"]))

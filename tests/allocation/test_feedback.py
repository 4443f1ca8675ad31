"""Feedback beside its literal twin, and its laws."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.allocation import feedback as module
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import (
    BankReading,
    BankScore,
    FeedbackSettings,
    PolicyInputs,
    bank_responses,
    policy_inputs,
    top_items,
)
from adaptiveembed.errors import EmptyBatchError, LayoutMismatchError, SettingError, ShapeError
from adaptiveembed.similarity import responses, setsim_matrix
from adaptiveembed.structure.candidates import CandidateSets, activate
from adaptiveembed.structure.groups import PAPER_LAYOUT, GroupLayout
from adaptiveembed.structure.space import coarse_to_fine
from tests.allocation.settings import SPACES, bank_of
from tests.reference import feedback as literal
from tests.structure.strategies import random_candidates

SPACE = SPACES["paper"]
SETTINGS = FeedbackSettings(depth=6)
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def queries_of(num_items=4, layout=PAPER_LAYOUT, seed=0):
    return random_candidates(num_items, layout, 6, seed=seed)


def check_same(found, expected):
    """The same top items in the same order, and equal numbers but for rounding."""
    assert found.states == expected.states
    assert torch.equal(found.top_items, expected.top_items)
    torch.testing.assert_close(found.feedback, expected.feedback, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.top_scores, expected.top_scores, rtol=0, atol=1e-6)


def check_is_the_twins(inputs, queries, bank, left_out=None):
    for item, query in enumerate(queries.numpy()):
        hidden = None if left_out is None else left_out[item]
        for place, state in enumerate(inputs.states):
            scores = literal.retrieval_scores(query, bank.candidates.numpy(), state.positions)
            items = literal.top_items(scores, inputs.feedback.shape[-1], hidden)
            assert inputs.top_items[item, place].tolist() == items
            np.testing.assert_allclose(
                inputs.top_scores[item, place], [scores[one] for one in items], atol=1e-6
            )
            np.testing.assert_allclose(
                inputs.feedback[item, place],
                literal.feedback(query, bank.candidates.numpy(), items),
                atol=1e-6,
            )


def test_one_query_by_hand():
    # Two positions, three items of two vectors: position 0 prefers item 1, position 1 item 2.
    layout = GroupLayout((1, 1))
    query = CandidateSets(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), layout)
    stored = [
        [[0.0, -1.0], [-1.0, 0.0]],
        [[0.8, 0.6], [0.6, -0.8]],
        [[-0.6, 0.8], [0.6, 0.8]],
    ]
    bank = RetrievalBank(("a", "b", "c"), CandidateSets(torch.tensor(stored), layout))
    found = policy_inputs(query, bank, coarse_to_fine(layout), FeedbackSettings(depth=2))
    assert [str(state) for state in found.states] == ["1+0"]
    assert found.top_items.tolist() == [[[1, 2]]]
    torch.testing.assert_close(found.feedback, torch.tensor([[[[0.8, 0.6], [0.6, 0.8]]]]))
    torch.testing.assert_close(found.top_scores, torch.tensor([[[0.8, 0.6]]]))


@every_space
def test_feedback_is_that_of_the_literal_twin(space):
    queries, bank = queries_of(2, space.layout), bank_of(layout=space.layout)
    check_is_the_twins(policy_inputs(queries, bank, space, SETTINGS), queries, bank)


def test_the_partner_is_left_out_as_in_the_literal_twin():
    queries, bank = queries_of(), bank_of()
    left_out = torch.tensor([3, -1, 0, 19])
    inputs = policy_inputs(queries, bank, SPACE, SETTINGS, left_out=left_out)
    check_is_the_twins(inputs, queries, bank, [3, None, 0, 19])


@given(st.integers(0, 19))
def test_leaving_an_item_out_is_a_bank_without_it(place):
    queries, bank = queries_of(2), bank_of()
    inputs = policy_inputs(queries, bank, SPACE, SETTINGS, left_out=torch.tensor([place] * 2))
    rest = [item for item in range(20) if item != place]
    smaller = RetrievalBank(tuple(bank.ids[item] for item in rest), bank.candidates[rest])
    without = policy_inputs(queries, smaller, SPACE, SETTINGS)
    assert torch.equal(torch.tensor(rest)[without.top_items], inputs.top_items)
    torch.testing.assert_close(without.feedback, inputs.feedback, rtol=0, atol=1e-6)


@every_space
@settings(max_examples=10)
@given(st.permutations(range(20)))
def test_the_order_of_the_bank_does_not_matter(space, order):
    queries, bank = queries_of(2, space.layout), bank_of(layout=space.layout)
    shuffled = RetrievalBank(tuple(bank.ids[item] for item in order), bank.candidates[order])
    one, other = (policy_inputs(queries, each, space, SETTINGS) for each in (bank, shuffled))
    assert torch.equal(torch.tensor(order)[other.top_items], one.top_items)
    torch.testing.assert_close(other.feedback, one.feedback, rtol=0, atol=1e-6)


def test_no_label_can_reach_the_feedback():
    # Nothing that is given tells a positive from any other item, but the one item left out; and
    # what is left out changes the others' feedback in no other way (the test above).
    taken = {*inspect.signature(policy_inputs).parameters}
    assert taken == {"candidates", "bank", "space", "settings", "left_out", "progress"}
    queries, bank = queries_of(), bank_of()
    outside = policy_inputs(queries, bank, SPACE, SETTINGS, left_out=torch.full((4,), -1))
    check_same(outside, policy_inputs(queries, bank, SPACE, SETTINGS))


@given(st.permutations(range(20)))
def test_names_of_the_banks_items_do_not_matter(names):
    queries, bank = queries_of(2), bank_of()
    renamed = RetrievalBank(tuple(f"item {name}" for name in names), bank.candidates)
    one, other = (policy_inputs(queries, each, SPACE, SETTINGS) for each in (bank, renamed))
    assert all(map(torch.equal, one.tensors, other.tensors))


@given(st.lists(st.integers(-1, 19), min_size=4, max_size=4))
def test_the_partners_of_the_others_do_not_matter(partners):
    queries, bank, left_out = queries_of(), bank_of(), torch.tensor(partners)
    together = policy_inputs(queries, bank, SPACE, SETTINGS, left_out=left_out)
    for item in range(4):
        own = left_out.clone().fill_(-1)
        own[item] = left_out[item]
        alone = policy_inputs(queries, bank, SPACE, SETTINGS, left_out=own)
        check_same(together[item : item + 1], alone[item : item + 1])


def test_the_bank_is_ranked_by_setsim_where_that_is_asked_for():
    queries, bank = queries_of(), bank_of()
    settings = FeedbackSettings(depth=6, score=BankScore.SETSIM)
    found = policy_inputs(queries, bank, SPACE, settings)
    for place, state in enumerate(found.states):
        scores = setsim_matrix(activate(queries, state), activate(bank.candidates, state))
        values, items = scores.topk(6)
        assert torch.equal(found.top_items[:, place], items)
        assert torch.equal(found.top_scores[:, place], values)


def test_responses_are_those_of_the_similarity_package():
    queries, bank = queries_of(), bank_of()
    expected = responses(queries.vectors[:, 2:3], bank.candidates.vectors).squeeze(1)
    torch.testing.assert_close(bank_responses(queries.vectors[:, 2], bank), expected)


@every_space
def test_a_state_asked_for_alone_is_as_among_all(space):
    queries, bank = queries_of(5, space.layout), bank_of(layout=space.layout)
    left_out = policy_inputs(queries, bank, space, SETTINGS).top_items[:, 0, 0]
    everything = policy_inputs(queries, bank, space, SETTINGS, left_out=left_out)
    reading = BankReading(queries, bank, SETTINGS, left_out)
    for place in reversed(range(len(everything.states))):
        items = torch.tensor([4, 1, 2]) if place % 2 else torch.tensor([0, 1, 3])
        found = reading.at(everything.states[place], items)
        torch.testing.assert_close(found.candidates, queries.vectors[items])
        assert torch.equal(found.top_items[:, 0], everything.top_items[items, place])
        torch.testing.assert_close(found.feedback[:, 0], everything.feedback[items, place])


def test_a_position_is_compared_with_the_bank_once_for_every_item(monkeypatch):
    compared = []

    def counted(vectors, bank):
        compared.append(len(vectors))
        return bank_responses(vectors, bank)

    monkeypatch.setattr(module, "bank_responses", counted)
    reading = BankReading(queries_of(5), bank_of(), SETTINGS)
    first, coarse, fine, *_ = SPACE.nodes
    reading.at(first, torch.tensor([0, 1, 2]))
    reading.at(first, torch.tensor([1, 2, 3]))
    assert compared == [3, 1]
    reading.at(coarse)
    reading.at(fine)
    assert compared == [3, 1, 1, 5, 5]


def test_parts_of_a_batch_are_the_batch(monkeypatch):
    queries, bank = queries_of(7), bank_of()
    left_out = torch.arange(7)
    whole = policy_inputs(queries, bank, SPACE, SETTINGS, left_out=left_out)
    told = []
    monkeypatch.setattr(module, "MEMORY_BUDGET", 8 * 8 * 20 * 3)
    monkeypatch.setattr(module, "GATHERED", 1)
    parts = policy_inputs(
        queries,
        bank,
        SPACE,
        SETTINGS,
        left_out=left_out,
        progress=lambda done, total, _facts=None: told.append((done, total)),
    )
    check_same(parts, whole)
    assert told == [(3, 7), (6, 7), (7, 7)]


def test_inputs_are_cut_and_joined_by_items():
    queries, bank = queries_of(5), bank_of()
    whole = policy_inputs(queries, bank, SPACE, SETTINGS)
    assert len(whole) == 5
    check_same(PolicyInputs.concatenate([whole[:2], whole[torch.tensor([2, 3, 4])]]), whole)
    check_same(whole.to("cpu"), whole)


def test_inputs_that_do_not_belong_together_are_not_joined():
    queries, bank = queries_of(), bank_of()
    one = policy_inputs(queries, bank, SPACE, SETTINGS)
    other = policy_inputs(queries, bank, SPACES["every prefix"], SETTINGS)
    with pytest.raises(ShapeError, match="make all of them with one space"):
        PolicyInputs.concatenate([one, other])
    with pytest.raises(EmptyBatchError):
        PolicyInputs.concatenate([])


def test_candidates_that_ask_for_a_gradient_give_inputs_that_do_not():
    vectors = queries_of().vectors.clone().requires_grad_()
    found = policy_inputs(CandidateSets(vectors, PAPER_LAYOUT), bank_of(), SPACE, SETTINGS)
    assert not any(each.requires_grad for each in found.tensors)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_bank_of_half_precision_is_read_in_single_precision(dtype):
    found = policy_inputs(queries_of(), bank_of(dtype=dtype), SPACE, SETTINGS)
    whole = policy_inputs(queries_of(), bank_of(), SPACE, SETTINGS)
    assert found.feedback.dtype == torch.float32
    torch.testing.assert_close(found.top_scores, whole.top_scores, rtol=0, atol=1e-2)


def test_a_bank_smaller_than_the_depth_is_refused():
    bank = bank_of(5)
    with pytest.raises(SettingError, match="top 6 items and the bank has 5; choose a feedback"):
        policy_inputs(queries_of(), bank, SPACE, SETTINGS)
    left_out = torch.tensor([0, -1, -1, -1])
    with pytest.raises(SettingError, match="top 5 items and the bank has 4 beside the one left"):
        policy_inputs(queries_of(), bank, SPACE, FeedbackSettings(depth=5), left_out=left_out)
    policy_inputs(queries_of(), bank, SPACE, FeedbackSettings(depth=5))
    with pytest.raises(SettingError, match="depth is 0"):
        FeedbackSettings(depth=0)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(LayoutMismatchError, match=r"bank has layout 3\+5 and the candidates 4\+4"):
        policy_inputs(queries_of(), bank_of(layout=GroupLayout((3, 5))), SPACE, SETTINGS)
    with pytest.raises(LayoutMismatchError, match=r"space has layout 3\+5 and the candidates 4"):
        policy_inputs(queries_of(), bank_of(), SPACES["unequal groups"], SETTINGS)
    with pytest.raises(ShapeError, match="6 dimensions and gallery vectors 9"):
        policy_inputs(queries_of(), bank_of(dim=9), SPACE, SETTINGS)
    left_out = torch.tensor([20, -1, -1, -1])
    with pytest.raises(ShapeError, match="places beyond the bank of 20 items"):
        policy_inputs(queries_of(), bank_of(), SPACE, SETTINGS, left_out=left_out)
    with pytest.raises(ShapeError, match="3 places to leave out for 4 items"):
        policy_inputs(queries_of(), bank_of(), SPACE, SETTINGS, left_out=torch.tensor([0, 1, 2]))


def test_top_items_are_the_best_first():
    values, items = top_items(torch.tensor([[0.1, 0.9, 0.5]]), 2)
    assert items.tolist() == [[1, 2]]
    torch.testing.assert_close(values, torch.tensor([[0.9, 0.5]]))


def test_leaving_an_item_out_changes_no_score_that_was_given():
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.3, 0.2, 0.4]])
    _, items = top_items(scores, 2, torch.tensor([1, -1]))
    assert items.tolist() == [[2, 0], [2, 0]]
    assert torch.equal(scores, torch.tensor([[0.1, 0.9, 0.5], [0.3, 0.2, 0.4]]))

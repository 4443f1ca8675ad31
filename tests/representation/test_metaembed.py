"""The baseline's vectors, loss and ranks are what R17 says."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.errors import (
    EmptyBatchError,
    LayoutMismatchError,
    SettingError,
    ShapeError,
)
from adaptiveembed.metrics.ranks import ranks_of_positives
from adaptiveembed.representation import metaembed
from adaptiveembed.representation.dropout import item_keys
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.metaembed import (
    PAPER_BUDGETS,
    Budget,
    MetaEmbedder,
    MetaEmbedLoss,
    by_role,
    metaembed_ranks,
    nested_maxsim,
)
from adaptiveembed.representation.settings import EmbedderSettings, GlobalPosition
from adaptiveembed.similarity import maxsim_matrix
from adaptiveembed.structure import CandidateSets, GroupLayout
from tests.reference.metaembed import metaembed_loss as literal_loss
from tests.representation.media import IMAGE, SMALL, TEXT, fitted_embedder
from tests.similarity.sets import unit_sets

ROLES = GroupLayout((3, 5))
BUDGETS = (Budget(1, 1), Budget(2, 3), Budget(2, 4), Budget(3, 5))


def sets(items, seed=0, dim=6):
    return unit_sets(items, ROLES.num_candidates, dim, seed=seed)


def loss_of(source, target, same_item=None, budgets=BUDGETS, temperature=0.1):
    return MetaEmbedLoss(ROLES, budgets, temperature)(source, target, same_item)


# --- Vectors --------------------------------------------------------------------------------------


def test_the_paper_has_16_and_64_vectors_under_five_budgets():
    assert by_role(EmbedderSettings()).group_layout.sizes == (16, 64)
    assert [str(each) for each in PAPER_BUDGETS] == ["1/1", "2/4", "4/8", "8/16", "16/64"]
    assert [each.capacity for each in PAPER_BUDGETS] == [1, 3, 6, 12, 40]


def test_only_the_number_of_vectors_differs_from_ours():
    ours, *_ = fitted_embedder()
    baseline, *_ = fitted_embedder(by_role(SMALL, "3+5"), kind=MetaEmbedder)
    differing = {
        name
        for name, tensor in ours.state_dict().items()
        if tensor.shape != baseline.state_dict()[name].shape
    }
    assert set(ours.state_dict()) == set(baseline.state_dict())
    assert differing == {"qformers.text.queries", "qformers.image.queries"}
    assert torch.equal(
        ours.state_dict()["global_positions.text.matrix"],
        baseline.state_dict()["global_positions.text.matrix"],
    )


def test_the_first_vector_of_both_roles_is_our_position_0():
    ours, source, _ = fitted_embedder()
    baseline, *_ = fitted_embedder(by_role(SMALL, "3+5"), kind=MetaEmbedder)
    found = baseline.embed(TEXT, source)
    expected = ours.embed(TEXT, source).vectors[:, 0]
    assert found.layout == ROLES
    assert torch.equal(found.vectors[:, 0], expected)
    assert torch.equal(found.vectors[:, 3], expected)
    assert not torch.isclose(found.vectors[:, 1], expected).all()


def test_all_vectors_may_be_learned():
    settings = replace(by_role(SMALL, "3+5"), global_position=GlobalPosition.LEARNED)
    baseline = MetaEmbedder.empty(settings, {TEXT: 6, IMAGE: 5})
    assert baseline.global_places == ()
    assert len(baseline.qformers[TEXT].queries) == 8


def test_its_forward_is_that_of_our_embedder():
    baseline, source, target = fitted_embedder(by_role(SMALL, "3+5"), kind=MetaEmbedder)
    assert isinstance(baseline, PairEmbedder)
    keys = item_keys(0, 0, torch.arange(30))
    one, two = baseline(TEXT, source, keys), baseline(IMAGE, target, keys)
    assert one.shape == two.shape == (30, 8, 8)
    loss_of(one, two).backward()
    assert all(each.grad is not None for each in baseline.parameters())


# --- Loss -----------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(1, 5), st.integers(0, 99), st.booleans())
def test_the_loss_is_that_of_the_twin(items, seed, repeated):
    source, target = sets(items, seed), sets(items, seed + 100)
    ids = torch.arange(items) // (2 if repeated else 1)
    same = ids[:, None] == ids if repeated else None
    expected = literal_loss(
        source.double().numpy(),
        target.double().numpy(),
        ROLES.sizes,
        BUDGETS,
        0.1,
        None if same is None else same.numpy(),
    )
    assert float(loss_of(source, target, same)) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_the_loss_of_one_budget_by_hand():
    # Two items with one vector per role; only the query role of texts finds the right image.
    east, north = [1.0, 0.0], [0.0, 1.0]
    source = torch.tensor([[east, east], [north, east]])
    target = torch.tensor([[east, east], [north, north]])
    loss = MetaEmbedLoss(GroupLayout((1, 1)), (Budget(1, 1),), temperature=1.0)
    found = log(1 + np.exp(-1))  # own score 1, other score 0
    lost = log(2)  # both texts are found at one place
    assert float(loss(source, target)) == pytest.approx((found + lost) / 2)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(0, 99))
def test_the_sides_may_be_exchanged(items, seed):
    source, target = sets(items, seed), sets(items, seed + 100)
    torch.testing.assert_close(loss_of(source, target), loss_of(target, source))


@settings(max_examples=25)
@given(st.permutations(range(5)))
def test_the_order_of_the_pairs_does_not_matter(order):
    source, target = sets(5), sets(5, seed=1)
    torch.testing.assert_close(loss_of(source[order], target[order]), loss_of(source, target))


def test_identical_items_cost_the_logarithm_of_their_number():
    same = sets(1).expand(7, -1, -1)
    assert float(loss_of(same, same)) == pytest.approx(log(7))


def test_the_same_item_is_no_negative_of_itself():
    pairs = sets(1).expand(7, -1, -1)
    assert float(loss_of(pairs, pairs, torch.ones(7, 7) > 0)) == pytest.approx(0, abs=1e-6)


def test_the_gradient_is_that_of_autograd_through_all_cosines():
    source, target = (sets(6, seed).double().requires_grad_() for seed in (0, 1))
    twins = [each.detach().clone().requires_grad_() for each in (source, target)]
    loss_of(source, target).backward()
    slow = []
    for asking, asked in (twins, twins[::-1]):
        for budget in BUDGETS:
            scores = maxsim_matrix(asking[:, : budget.query], asked[:, 3 : 3 + budget.gallery])
            logits = (scores / 0.1).log_softmax(dim=1)
            slow.append(-logits.diagonal().mean())
    torch.stack(slow).mean().backward()
    for mine, twin in zip((source, target), twins, strict=True):
        torch.testing.assert_close(mine.grad, twin.grad, atol=1e-12, rtol=1e-9)


def test_the_gradient_is_that_of_finite_differences():
    queries, gallery = (sets(3, seed)[:, :3].double().requires_grad_() for seed in (0, 1))
    budgets = (Budget(1, 2), Budget(3, 3))
    assert torch.autograd.gradcheck(
        lambda one, two: nested_maxsim(one, two, budgets), (queries, gallery)
    )


def test_no_gradient_reaches_beyond_the_largest_budget():
    source, target = (sets(4, seed).requires_grad_() for seed in (0, 1))
    loss_of(source, target, budgets=(Budget(2, 4),)).backward()
    for each in (source, target):
        used = each.grad.abs().sum(dim=(0, 2)) > 0
        assert used.tolist() == [True, True, False, True, True, True, True, False]


@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 9), st.integers(1, 4000))
def test_nested_maxsim_is_maxsim_under_each_budget_whatever_the_tiles(asking, asked, seed, budget):
    queries, gallery = unit_sets(asking, 3, 4, seed=seed), unit_sets(asked, 5, 4, seed=seed + 50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metaembed, "MEMORY_BUDGET", budget)
        found = nested_maxsim(queries, gallery, BUDGETS)
    for scores, each in zip(found, BUDGETS, strict=True):
        expected = maxsim_matrix(queries[:, : each.query], gallery[:, : each.gallery])
        torch.testing.assert_close(scores, expected, atol=1e-6, rtol=0)


def test_tiles_change_no_gradient(monkeypatch):
    def gradients():
        queries, gallery = (sets(9, seed).requires_grad_() for seed in (0, 1))
        nested_maxsim(queries, gallery, (Budget(2, 4), Budget(8, 8))).square().sum().backward()
        return queries.grad, gallery.grad

    whole = gradients()
    monkeypatch.setattr(metaembed, "MEMORY_BUDGET", 1)
    torch.testing.assert_close(gradients(), whole)


def test_ties_pass_their_gradient_to_the_first_vector():
    queries, gallery = torch.ones(1, 1, 2), torch.ones(1, 3, 2, requires_grad=True)
    nested_maxsim(queries, gallery, (Budget(1, 3),)).sum().backward()
    assert gallery.grad.tolist() == [[[1, 1], [0, 0], [0, 0]]]


def test_half_sets_are_summed_in_float32_also_under_autocast():
    source, target = (sets(4, seed).bfloat16().requires_grad_() for seed in (0, 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(source, target)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, loss_of(source.float(), target.float()))
    loss.backward()
    assert source.grad.dtype == torch.bfloat16


# --- Ranks ----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from(BUDGETS), st.integers(1, 200))
def test_ranks_are_pessimistic_ranks_of_maxsim(asking, asked, budget, memory):
    queries, gallery = CandidateSets(sets(asking), ROLES), CandidateSets(sets(asked, 1), ROLES)
    positives = (np.arange(asking) % asked)[:, None]
    found = metaembed_ranks(queries, gallery, positives, budget, memory)
    scores = maxsim_matrix(
        queries.vectors[:, : budget.query], gallery.vectors[:, 3 : 3 + budget.gallery]
    )
    assert found.tolist() == ranks_of_positives(scores.numpy(), positives).tolist()


def test_a_constant_score_ranks_last():
    same = CandidateSets(sets(1).expand(5, -1, -1), ROLES)
    found = metaembed_ranks(same, same, np.arange(5)[:, None], Budget(1, 1))
    assert found.tolist() == [[5]] * 5


# --- Bad input ------------------------------------------------------------------------------------


def test_budgets_are_read_as_they_are_written():
    assert Budget.parse("2/4") == Budget(2, 4)
    for text in ("2", "2/", "a/b", "2/4/8", "-1/2"):
        with pytest.raises(SettingError, match="a budget is written as query/gallery, like 2/4"):
            Budget.parse(text)


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ((), "no budget was given"),
        ((Budget(2, 2), Budget(1, 4)), r"2/2, 1/4 are not nested; give them in growing order"),
        ((Budget(0, 1),), "0/1 are not nested|not nested"),
        ((Budget(4, 5),), r"4/5 does not fit layout 3\+5, which has 3 .* choose a smaller"),
        ((Budget(3, 6),), r"3/6 does not fit layout 3\+5"),
    ],
    ids=str,
)
def test_budgets_that_cannot_be_compared_are_refused(budgets, message):
    with pytest.raises(SettingError, match=message):
        MetaEmbedLoss(ROLES, budgets)


def test_roles_are_two():
    with pytest.raises(SettingError, match=r"layout 8 has 1 groups and MetaEmbed two roles"):
        MetaEmbedLoss(GroupLayout((8,)))
    with pytest.raises(SettingError, match=r"layout 2\+2\+2 has 3 groups"):
        MetaEmbedder.empty(replace(SMALL, layout="2+2+2"), {TEXT: 3, IMAGE: 3})


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_is_positive(temperature):
    with pytest.raises(SettingError, match="the temperature is a positive number"):
        MetaEmbedLoss(ROLES, BUDGETS, temperature)


def test_batches_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="one pair, got 2 source and 3 target sets"):
        loss_of(sets(2), sets(3))
    with pytest.raises(EmptyBatchError, match="at least one pair"):
        loss_of(sets(2)[:0], sets(2)[:0])
    with pytest.raises(LayoutMismatchError, match=r"source sets have 7 vectors and layout 3\+5"):
        loss_of(sets(2)[:, 1:], sets(2))
    for wrong in (torch.ones(2, 3) > 0, torch.ones(2, 2)):
        with pytest.raises(ShapeError, match="give a truth for every two of them, as ids"):
            loss_of(sets(2), sets(2), wrong)

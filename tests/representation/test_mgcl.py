"""Eq. 3: by hand, beside its literal twin, and by its laws."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.errors import (
    CapacityLimitError,
    DtypeError,
    EmptyBatchError,
    LayoutMismatchError,
    SettingError,
    ShapeError,
)
from adaptiveembed.representation.mgcl import (
    MultiGroupContrastiveLoss,
    group_prefixes,
    info_nce,
    mgcl_loss,
    whole_set,
)
from adaptiveembed.similarity import setsim_matrix
from adaptiveembed.structure import PAPER_LAYOUT, GroupLayout, Selection
from tests.reference.mgcl import mgcl
from tests.similarity.sets import sets_of_kind, unit_sets

LAYOUTS = [(4, 4), (3, 5), (8,), (1,), (2, 1, 2)]
every_layout = pytest.mark.parametrize("layout", [GroupLayout(sizes) for sizes in LAYOUTS], ids=str)
every_type = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def pairs(batch, layout=PAPER_LAYOUT, dim=12, dtype=torch.float32):
    """Source and target sets that ask for their gradients."""
    sides = (
        unit_sets(batch, layout.num_candidates, dim, seed=seed, dtype=dtype) for seed in (0, 1)
    )
    return tuple(side.requires_grad_() for side in sides)


def loss_of(source, target, layout=PAPER_LAYOUT, temperature=0.1, same_item=None):
    return mgcl_loss(source, target, group_prefixes(layout), temperature, same_item)


def same_ids(*ids):
    given = torch.tensor(ids)
    return given[:, None] == given


# --- The equation ---------------------------------------------------------------------------------


def test_two_pairs_of_one_vector_by_hand():
    # Cosines 1 and 0 at temperature 1/2: every softmax gives 1 / (1 + exp(-2)) to the pair itself.
    axes = torch.eye(2).unsqueeze(1)
    loss = loss_of(axes, axes, GroupLayout((1,)), temperature=0.5)
    assert loss.item() == pytest.approx(math.log1p(math.exp(-2)))


def test_a_prefix_of_two_by_hand():
    # Prefix 1 sees cosines [[1, 0], [0, 1]]; prefix 2 sees equal sets in another order: all 1.
    source = torch.eye(2)[torch.tensor([[0, 1], [1, 0]])]
    loss = loss_of(source, source, GroupLayout((2,)), temperature=1.0)
    assert loss.item() == pytest.approx((math.log1p(math.exp(-1)) + math.log(2)) / 2)


@st.composite
def batches(draw):
    """Sides, layout, temperature and mask for the literal twin."""
    layout = GroupLayout(tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))))
    batch, seed = draw(st.integers(1, 4)), draw(st.integers(0, 99))
    kind = draw(st.sampled_from(["random", "copied", "one-hot"]))
    sets = sets_of_kind(kind, 2 * batch, layout.num_candidates, draw(st.integers(1, 6)), seed)
    ids = draw(st.none() | st.lists(st.integers(0, 2), min_size=batch, max_size=batch))
    mask = None if ids is None else same_ids(*ids)
    return *sets.split(batch), layout, draw(st.sampled_from([0.03, 0.5, 2.0])), mask


@settings(max_examples=40)
@given(batches())
def test_the_loss_is_that_of_the_literal_twin(given):
    source, target, layout, temperature, mask = given
    prefixes = group_prefixes(layout)
    positions = [prefix.positions for prefix in prefixes]
    expected = mgcl(source, target, positions, temperature, mask)
    found = mgcl_loss(source, target, prefixes, temperature, mask)
    assert found.item() == pytest.approx(expected, rel=1e-5, abs=2e-5)


def test_any_selections_can_be_the_prefixes():
    source, target = pairs(3)
    chosen = [Selection(PAPER_LAYOUT, lengths) for lengths in ((1, 0), (2, 1), (2, 2))]
    found = mgcl_loss(source, target, chosen, 0.2)
    expected = mgcl(source.detach(), target.detach(), [each.positions for each in chosen], 0.2)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_the_prefixes_of_the_paper_are_all_lengths_of_each_group():
    expected = ["1+0", "2+0", "3+0", "4+0", "0+1", "0+2", "0+3", "0+4"]
    assert list(map(str, group_prefixes(PAPER_LAYOUT))) == expected
    assert list(map(str, whole_set(PAPER_LAYOUT))) == ["4+4"]


def test_without_mgcl_it_is_info_nce_on_the_whole_sets():
    source, target = pairs(5)
    found = mgcl_loss(source, target, whole_set(PAPER_LAYOUT), 0.1)
    torch.testing.assert_close(found, info_nce(setsim_matrix(source, target) / 0.1))
    one, other = (
        torch.autograd.grad(each, source, retain_graph=True)[0]
        for each in (found, info_nce(setsim_matrix(source, target) / 0.1))
    )
    torch.testing.assert_close(one, other)


# --- Its laws -------------------------------------------------------------------------------------


@every_layout
def test_the_modalities_are_alike(layout):
    source, target = pairs(6, layout)
    mask = same_ids(0, 1, 1, 2, 0, 3)
    there, back = (
        loss_of(*sides, layout, same_item=mask) for sides in ((source, target), (target, source))
    )
    torch.testing.assert_close(there, back)
    gradients = torch.autograd.grad(there, (source, target))
    torch.testing.assert_close(torch.autograd.grad(back, (source, target)), gradients)


@every_layout
def test_the_order_of_the_pairs_does_not_matter(layout):
    source, target = pairs(6, layout)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    turned = loss_of(source[order], target[order], layout)
    torch.testing.assert_close(turned, loss_of(source, target, layout))


@every_layout
@every_type
def test_identical_items_lose_the_logarithm_of_the_batch(layout, dtype):
    source, target = (side[:1].expand(7, -1, -1) for side in pairs(1, layout, dtype=dtype))
    assert loss_of(source, target, layout).item() == pytest.approx(math.log(7), rel=1e-6)


@every_type
def test_nothing_is_pulled_past_the_longest_prefix(dtype):
    layout = GroupLayout((3, 5))
    source, target = pairs(6, layout, dtype=dtype)
    prefixes = [Selection(layout, lengths) for lengths in ((1, 0), (2, 0), (0, 3))]
    for side in torch.autograd.grad(mgcl_loss(source, target, prefixes, 0.1), (source, target)):
        pulled = side.abs().amax(dim=(0, 2)) > 0
        assert pulled.tolist() == [True, True, False, True, True, True, False, False]


def test_a_prefix_pulls_no_vector_behind_it():
    # Whatever the later vectors are, a shorter prefix has the same loss.
    source, target = pairs(4)
    prefix = [Selection(PAPER_LAYOUT, (2, 0))]
    changed = torch.cat([source[:, :2], source[:, 2:].flip(0)], dim=1)
    assert torch.equal(
        mgcl_loss(changed, target, prefix, 0.1), mgcl_loss(source, target, prefix, 0.1)
    )


def test_the_loss_is_the_mean_over_prefixes():
    source, target = pairs(5)
    alone = [mgcl_loss(source, target, [prefix], 0.1) for prefix in group_prefixes(PAPER_LAYOUT)]
    torch.testing.assert_close(loss_of(source, target), torch.stack(alone).mean())


@every_type
def test_a_pair_alone_loses_nothing_and_is_not_pulled(dtype):
    source, target = pairs(1, dtype=dtype)
    loss = loss_of(source, target)
    assert loss.item() == 0
    assert not any(side.any() for side in torch.autograd.grad(loss, (source, target)))


# --- The same item --------------------------------------------------------------------------------


def test_pairs_of_one_item_are_not_negatives_of_each_other():
    source, target = pairs(3)
    mask = same_ids(0, 0, 1)
    alone = loss_of(source[:2], target[:2], same_item=mask[:2, :2])
    assert not any(side.any() for side in torch.autograd.grad(alone, (source, target)))
    assert loss_of(source, target, same_item=mask) < loss_of(source, target)


def test_without_any_equal_ids_the_mask_changes_nothing():
    source, target = pairs(4)
    for mask in (same_ids(0, 1, 2, 3), torch.zeros(4, 4, dtype=torch.bool)):
        assert torch.equal(loss_of(source, target, same_item=mask), loss_of(source, target))


def test_a_batch_of_one_item_loses_nothing():
    source, target = pairs(4)
    loss = loss_of(source, target, same_item=torch.ones(4, 4, dtype=torch.bool))
    assert loss.item() == 0
    assert not any(side.any() for side in torch.autograd.grad(loss, (source, target)))


# --- Gradients and number types -------------------------------------------------------------------


@every_layout
def test_the_gradient_is_that_of_finite_differences(layout):
    sides = pairs(3, layout, dim=3, dtype=torch.float64)
    mask = same_ids(0, 1, 0)
    assert torch.autograd.gradcheck(
        lambda source, target: loss_of(source, target, layout, same_item=mask), sides
    )


@every_layout
def test_single_precision_pulls_as_double_precision_does(layout):
    source, target = pairs(40, layout)
    wide = [side.detach().double().requires_grad_() for side in (source, target)]
    found = torch.autograd.grad(loss_of(source, target, layout, 0.03), (source, target))
    exact = torch.autograd.grad(loss_of(*wide, layout, 0.03), wide)
    for one, other in zip(found, exact, strict=True):
        assert float((one - other).norm() / other.norm()) < 1e-5


def test_autocast_does_not_coarsen_the_loss():
    source, target = pairs(6)
    expected = loss_of(source, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss_of(source, target)
        gradients = torch.autograd.grad(found, (source, target))
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)
    assert all(map(torch.equal, gradients, torch.autograd.grad(expected, (source, target))))


def test_half_vectors_lose_as_in_single_precision():
    source, target = (side.detach().bfloat16() for side in pairs(6))
    found = loss_of(source, target)
    assert found.dtype == torch.float32
    assert torch.equal(found, loss_of(source.float(), target.float()))


def test_what_is_not_a_number_shows_in_the_loss():
    source, target = pairs(3)
    broken = source.detach().clone()
    broken[1, 5, 2] = math.nan
    assert loss_of(broken, target).isnan()


# --- The objective --------------------------------------------------------------------------------


def test_the_objective_is_the_loss_with_its_settings():
    source, target = pairs(4)
    objective = MultiGroupContrastiveLoss(PAPER_LAYOUT, group_prefixes(PAPER_LAYOUT), 0.1)
    mask = same_ids(0, 0, 1, 2)
    assert torch.equal(objective(source, target), loss_of(source, target))
    assert torch.equal(objective(source, target, mask), loss_of(source, target, same_item=mask))


def test_objectives_are_values():
    one, other = (
        MultiGroupContrastiveLoss(PAPER_LAYOUT, group_prefixes(PAPER_LAYOUT), 0.03)
        for _ in range(2)
    )
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.temperature = 1.0


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, -0.1, math.inf, math.nan])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
    source, target = pairs(2)
    with pytest.raises(SettingError, match=f"positive number, got {temperature}; try"):
        loss_of(source, target, temperature=temperature)
    with pytest.raises(SettingError, match="positive number"):
        MultiGroupContrastiveLoss(PAPER_LAYOUT, whole_set(PAPER_LAYOUT), temperature)


def test_a_loss_over_no_prefix_is_refused():
    with pytest.raises(SettingError, match="no prefix"):
        MultiGroupContrastiveLoss(PAPER_LAYOUT, (), 0.1)


def test_prefixes_of_another_layout_are_refused():
    other = GroupLayout((3, 5))
    for layout, prefixes in (
        (PAPER_LAYOUT, whole_set(other)),
        (PAPER_LAYOUT, (*whole_set(PAPER_LAYOUT), *whole_set(other))),
    ):
        with pytest.raises(LayoutMismatchError, match=r"4\+4 .*3\+5|3\+5 .* 4\+4"):
            MultiGroupContrastiveLoss(layout, prefixes, 0.1)


def test_whole_sets_too_large_to_match_exactly_are_refused_when_the_loss_is_made():
    layout = GroupLayout((8, 8))
    MultiGroupContrastiveLoss(layout, group_prefixes(layout), 0.1)
    with pytest.raises(CapacityLimitError, match="sets of 16 vectors"):
        MultiGroupContrastiveLoss(layout, whole_set(layout), 0.1)


def test_candidates_of_another_layout_are_refused():
    source, target = pairs(2, GroupLayout((3, 4)))
    with pytest.raises(
        LayoutMismatchError, match=r"source sets have 7 vectors and layout 4\+4 has 8"
    ):
        loss_of(source, target)
    with pytest.raises(LayoutMismatchError, match="target sets have 7 vectors"):
        loss_of(pairs(2)[0], target)


def test_sides_that_are_not_pairs_are_refused():
    source, target = pairs(3)
    with pytest.raises(ShapeError, match="got 3 source and 2 target sets"):
        loss_of(source, target[:2])


def test_an_empty_batch_is_refused():
    source, target = pairs(2)
    with pytest.raises(EmptyBatchError, match="at least one pair"):
        loss_of(source[:0], target[:0])


def test_a_mask_that_does_not_fit_is_refused():
    source, target = pairs(3)
    with pytest.raises(ShapeError, match=r"shape \(2, 2\) for 3 pairs; .*\[3, 3\]"):
        loss_of(source, target, same_item=same_ids(0, 1))
    with pytest.raises(DtypeError, match=r"holds torch\.int64; give truths"):
        loss_of(source, target, same_item=torch.ones(3, 3, dtype=torch.int64))

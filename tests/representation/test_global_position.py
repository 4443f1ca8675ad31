"""Position 0 is the global feature, mapped as its mode says, and always a unit vector."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import SettingError
from adaptiveembed.representation.alignment import FeaturePairs, LinearMap
from adaptiveembed.representation.global_position import (
    FixedMap,
    PaddedFeature,
    ProjectedFeature,
    empty_position,
    require_one_space,
    shared_narrowing,
    unit_vectors,
)
from adaptiveembed.representation.settings import GlobalPosition

FROZEN, ALIGNED = GlobalPosition.FROZEN, GlobalPosition.ALIGNED
PROJECTED, LEARNED = GlobalPosition.PROJECTED, GlobalPosition.LEARNED


def gaussian(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.sampled_from([1e-9, 1.0, 1e9]), st.integers(1, 9))
def test_unit_vectors_are_the_directions(length, dim):
    vectors = length * gaussian(5, dim)
    expected = vectors.double() / vectors.double().norm(dim=-1, keepdim=True)
    torch.testing.assert_close(unit_vectors(vectors), expected.float())


def test_vectors_without_direction_become_one_fixed_unit_vector():
    vectors = torch.zeros(3, 4, requires_grad=True)
    found = unit_vectors(vectors)
    assert torch.equal(found, torch.full((3, 4), 0.5))
    found.sum().backward()
    assert torch.isfinite(vectors.grad).all()


def test_half_kinds_become_float32_and_double_stays():
    assert unit_vectors(torch.ones(1, 2, dtype=torch.bfloat16)).dtype == torch.float32
    assert unit_vectors(torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize(
    ("mode", "width", "kind", "parameters"),
    [
        (FROZEN, 3, PaddedFeature, 0),
        (FROZEN, 4, PaddedFeature, 0),
        (FROZEN, 5, FixedMap, 0),
        (ALIGNED, 3, FixedMap, 0),
        (ALIGNED, 5, FixedMap, 0),
        (PROJECTED, 5, ProjectedFeature, 20),
    ],
    ids=str,
)
def test_only_a_projection_is_trained(mode, width, kind, parameters):
    position = empty_position(mode, width, 4)
    assert isinstance(position, kind)
    assert sum(each.numel() for each in position.parameters()) == parameters


def test_a_learned_position_is_left_to_the_qformer():
    assert empty_position(LEARNED, 5, 4) is None


def test_a_frozen_feature_keeps_its_cosines_behind_the_padding():
    features = gaussian(6, 3)
    found = PaddedFeature(5)(features)
    assert not found[:, 3:].any()
    unit = torch.nn.functional.normalize(features, dim=-1)
    torch.testing.assert_close(found @ found.T, unit @ unit.T)


def test_a_fixed_map_takes_over_what_was_fitted_and_keeps_it():
    position, matrix = FixedMap(3, 2), gaussian(3, 2).double()
    position.fit(LinearMap(torch.tensor([1.0, 2.0, 3.0]).double(), matrix))
    features = gaussian(4, 3)
    expected = (features.double() - torch.tensor([1, 2, 3])) @ matrix
    torch.testing.assert_close(
        position(features), torch.nn.functional.normalize(expected, dim=-1).float()
    )
    assert set(position.state_dict()) == {"mean", "matrix"}
    assert {each.dtype for each in position.state_dict().values()} == {torch.float32}


def test_autocast_does_not_round_a_fixed_map():
    position = FixedMap(8, 4)
    position.fit(LinearMap(torch.zeros(8), gaussian(8, 4)))
    features = gaussian(5, 8, seed=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = position(features)
    assert torch.equal(found, position(features))


def test_a_feature_that_says_nothing_gets_a_unit_vector_in_every_mode():
    nothing = torch.zeros(1, 3)
    for mode in (FROZEN, ALIGNED, PROJECTED):
        for dim in (2, 4):
            found = empty_position(mode, 3, dim)(nothing)
            assert float(found.detach().norm()) == pytest.approx(1)


# --- Narrowing ------------------------------------------------------------------------------------


def test_a_declared_width_is_cut_off():
    pairs = FeaturePairs(gaussian(9, 5), gaussian(9, 5, seed=1))
    found = shared_narrowing(pairs, 3, matryoshka_widths=(3, 4))
    assert torch.equal(found(pairs.source.double()), pairs.source[:, :3].double())


def test_an_undeclared_width_is_projected_by_one_pca_of_both_sides():
    # Neither side alone shows which three directions the two of them need.
    source, target = torch.zeros(9, 5), torch.zeros(9, 5)
    source[:, [0, 3]], target[:, [3, 4]] = gaussian(9, 2), gaussian(9, 2, seed=1)
    pairs = FeaturePairs(source, target)
    found = shared_narrowing(pairs, 3, matryoshka_widths=(2, 4))
    left, right = found(source.double()), found(target.double())
    torch.testing.assert_close(left @ right.T, (source @ target.T).double())


def test_features_of_two_widths_share_no_space():
    require_one_space([5, 5])
    with pytest.raises(
        SettingError, match=r"widths 5 and 6, so that they share no space; use .*al"
    ):
        require_one_space([5, 6])

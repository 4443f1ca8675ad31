"""Synthetic pairs are repeatable, fit any layout, and are made as their description says."""

import pytest
import torch

from adaptiveembed.data.synthetic import SyntheticSettings, synthetic_pairs
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.groups import PAPER_LAYOUT, GroupLayout

ALL_CLEAR = SyntheticSettings(crowded_share=0.0, agreement_noise=0.5)
ALL_CROWDED = SyntheticSettings(crowded_share=1.0, agreement_noise=0.5, twin_distance=0.1)


def found_first(text: CandidateSets, image: CandidateSets, position: int) -> float:
    """Share of items whose own partner is nearest, looking at one position only."""
    cosines = text.vectors[:, position] @ image.vectors[:, position].T
    return (cosines.argmax(dim=1) == torch.arange(len(text))).double().mean().item()


def test_equal_arguments_give_equal_sets_and_another_seed_does_not():
    first, again, other = (synthetic_pairs(20, seed=seed) for seed in (3, 3, 4))
    for one, same in zip(first, again, strict=True):
        torch.testing.assert_close(one.vectors, same.vectors, rtol=0, atol=0)
    assert not torch.equal(first[0].vectors, other[0].vectors)


def test_the_global_generator_is_left_alone():
    state = torch.get_rng_state()
    synthetic_pairs(5)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (8,), (1, 2), (1,)])
def test_every_layout_works(sizes):
    layout = GroupLayout(sizes)
    for side in synthetic_pairs(9, layout, dim=5):
        assert side.vectors.shape == (9, sum(sizes), 5)
        assert side.layout == layout


def test_a_single_item_is_enough():
    assert [len(side) for side in synthetic_pairs(1)] == [1, 1]


def test_the_two_modalities_are_not_copies_of_each_other():
    text, image = synthetic_pairs(20)
    cosines = (text.vectors * image.vectors).sum(dim=-1)
    assert cosines.max() < 0.99


def test_clear_items_are_told_apart_by_position_zero():
    text, image = synthetic_pairs(100, settings=ALL_CLEAR)
    assert found_first(text, image, 0) > 0.95


def test_crowded_items_are_told_apart_by_finer_positions_and_not_by_position_zero():
    text, image = synthetic_pairs(100, settings=ALL_CROWDED)
    at_zero = found_first(text, image, 0)
    assert at_zero < 0.5
    # every second crowd is told apart by the finer positions of the first group
    assert found_first(text, image, 1) > at_zero


def test_both_groups_tell_some_crowds_apart():
    text, image = synthetic_pairs(100, PAPER_LAYOUT, settings=ALL_CROWDED)
    shares = [found_first(text, image, position) for position in (1, 4)]
    assert all(0.4 < share < 0.8 for share in shares)


def test_no_item_at_all_is_refused():
    with pytest.raises(SettingError, match="num_items is 0"):
        synthetic_pairs(0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("crowd_size", 0), ("crowded_share", 1.5), ("agreement_noise", -1.0), ("twin_distance", -0.1)],
)
def test_a_setting_that_cannot_work_is_refused_by_name_and_value(name, value):
    with pytest.raises(SettingError, match=f"{name} is {value}"):
        SyntheticSettings(**{name: value})


@pytest.mark.parametrize("seed", [-1, 2**63, 10**20])
def test_a_seed_that_no_generator_takes_is_refused_by_value(seed):
    with pytest.raises(SettingError, match=rf"seed is {seed}; give a whole number from 0 to \d+"):
        synthetic_pairs(3, seed=seed)

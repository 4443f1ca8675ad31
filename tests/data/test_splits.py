"""Splits are repeatable, disjoint, as large as asked, and hardly move when pairs are added."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.data.splits import SplitSettings, folds, hashed_order, split_source
from adaptiveembed.errors import DtypeError, DuplicateIdError, SettingError


def names(count):
    return [f"pair {place}" for place in range(count)]


@settings(max_examples=50)
@given(
    count=st.integers(100, 400),
    seed=st.integers(0, 5),
    validation=st.floats(0.03, 0.4),
    policy=st.just(0.0) | st.floats(0.03, 0.4),
)
def test_every_pair_is_in_one_part_and_parts_have_their_share(count, seed, validation, policy):
    chosen = SplitSettings(validation, 20, policy, seed)
    split = split_source(names(count), chosen)
    held = split.policy if policy else np.empty(0, np.int64)
    together = np.concatenate([split.representation, held, split.validation])
    assert sorted(together.tolist()) == list(range(count))
    assert len(split.validation) == min(round(validation * count), 20)
    assert len(held) == round(policy * count)
    for part in (split.representation, split.policy, split.validation):
        assert (np.diff(part) > 0).all()


def test_without_a_policy_share_utilities_come_from_what_stage_one_saw():
    split = split_source(names(100))
    np.testing.assert_array_equal(split.policy, split.representation)
    assert len(split.validation) == 5


def test_validation_is_five_in_a_hundred_and_never_more_than_its_bound():
    assert SplitSettings() == SplitSettings(validation_share=0.05, validation_limit=5_000)
    assert len(split_source(names(400), SplitSettings(validation_limit=7)).validation) == 7


def test_equal_arguments_give_equal_parts_and_another_seed_does_not():
    one, same, other = (
        split_source(names(200), SplitSettings(seed=seed)).validation for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, same)
    assert set(one) != set(other)


def test_the_order_of_the_pairs_changes_nothing():
    ids = names(200)
    shuffled = [ids[place] for place in np.random.default_rng(0).permutation(200)]
    chosen = SplitSettings(policy_share=0.2, seed=1)
    one, other = split_source(ids, chosen), split_source(shuffled, chosen)
    for part in ("representation", "policy", "validation"):
        mine = {ids[place] for place in getattr(one, part)}
        assert mine == {shuffled[place] for place in getattr(other, part)}


def test_pairs_that_are_added_leave_most_others_where_they_were():
    chosen = SplitSettings(validation_share=0.1, policy_share=0.2)
    before, after = (split_source(names(count), chosen) for count in (1_000, 1_010))
    for part in ("policy", "validation"):
        stayed = np.isin(getattr(before, part), getattr(after, part)).mean()
        assert stayed > 0.95


def test_holding_out_for_the_policy_leaves_validation_as_it_was():
    one, other = (
        split_source(names(300), SplitSettings(policy_share=p, seed=2)) for p in (0.0, 0.3)
    )
    np.testing.assert_array_equal(one.validation, other.validation)


def test_the_order_is_the_same_on_every_machine():
    assert hashed_order(["a", "b", "c", "ключ", "\ud800"], 7, "validation").tolist() == ORDER
    assert hashed_order([], 7, "validation").dtype == np.int64


ORDER = [2, 1, 3, 0, 4]


@given(count=st.integers(4, 100), num_folds=st.integers(2, 5), seed=st.integers(0, 3))
def test_folds_are_of_nearly_equal_size(count, num_folds, seed):
    if num_folds * 2 > count:
        return
    sizes = np.bincount(folds(names(count), num_folds, seed), minlength=num_folds)
    assert sizes.sum() == count
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(
        folds(names(count), num_folds, seed), folds(names(count), num_folds, seed)
    )


# --- What is refused ------------------------------------------------------------------------------


def test_too_few_pairs_for_a_part_are_refused_by_its_setting():
    expected = r"validation_share 0\.05 of 20 pairs is 1 and at least 2 are needed; add pairs or"
    with pytest.raises(SettingError, match=expected):
        split_source(names(20))
    with pytest.raises(SettingError, match=r"policy_share 0\.01 of 100 pairs is 1 and"):
        split_source(names(100), SplitSettings(policy_share=0.01))
    with pytest.raises(SettingError, match="5 pairs leave 1 to train on beside 2 for validation"):
        split_source(names(5), SplitSettings(0.4, policy_share=0.4))
    with pytest.raises(SettingError, match="of 0 pairs is 0"):
        split_source([])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"validation_share": 1.0}, "validation_share is 1.0; give a share"),
        ({"policy_share": -0.1}, "policy_share is -0.1; give a share"),
        ({"validation_share": 0.0}, "validation_share is 0; thresholds are set"),
        ({"validation_share": 0.5, "policy_share": 0.5}, "leave nothing to Stage I"),
        ({"validation_limit": 1}, "validation_limit is 1; give at least 2"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name_and_value(change, message):
    with pytest.raises(SettingError, match=message):
        SplitSettings(**change)


def test_ids_are_a_list_of_distinct_texts():
    with pytest.raises(DuplicateIdError, match="'a' more than once"):
        split_source(["a", "b", "a"])
    with pytest.raises(DtypeError, match="list of texts"):
        split_source("abc")


@pytest.mark.parametrize("num_folds", [1, 4, -1])
def test_folds_that_cannot_be_made_are_refused(num_folds):
    with pytest.raises(SettingError, match=f"{num_folds} folds of 6 pairs .* from 2 folds to 3"):
        folds(names(6), num_folds)

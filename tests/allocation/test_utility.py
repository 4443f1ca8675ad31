"""Utilities beside their literal twins, and their laws."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from adaptiveembed.allocation.actions import STOP, Actions
from adaptiveembed.allocation.utility import (
    UtilityKind,
    UtilityScale,
    UtilitySettings,
    marginal_utility,
    minus_log_rank,
    node_values,
    standardized_utility,
    state_utilities,
    sub_gallery_precision,
    training_utilities,
    utility_scale,
)
from adaptiveembed.errors import SettingError, ShapeError
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.space import coarse_to_fine, every_prefix
from tests.allocation.settings import SPACES
from tests.reference import utility as literal
from tests.reference.rank_table import rank_table as literal_rank_table
from tests.reference.setsim import setsim
from tests.structure.strategies import random_candidates

SPACE = SPACES["paper"]
TWO_PAIRS = GroupLayout((2, 2))
KINDS = [UtilitySettings(kind=kind) for kind in UtilityKind]
every_kind = pytest.mark.parametrize("settings", KINDS, ids=[each.kind for each in KINDS])
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)

TWINS = {
    UtilityKind.AVERAGE_PRECISION: literal.average_precision,
    UtilityKind.LOG_RANK: literal.minus_log_rank,
    UtilityKind.SUB_GALLERIES: lambda ranks: (
        sum(
            literal.sub_gallery_precision(ranks, share)
            for share in (Fraction(1), Fraction(1, 10), Fraction(1, 100))
        )
        / 3
    ),
}


def random_utilities(space, samples=30, seed=0):
    return np.random.default_rng(seed).standard_normal((len(space.edges), samples))


def rank_tables(nodes=5, samples=3, positives=1):
    one = st.lists(st.integers(1, 60), min_size=positives, max_size=positives, unique=True)
    table = st.lists(one.map(sorted), min_size=nodes * samples, max_size=nodes * samples)
    shape = (nodes, samples, positives)
    return table.map(lambda rows: np.array(rows, dtype=np.int64).reshape(shape))


def test_the_paths_of_one_sample_by_hand():
    # ranks at 1+0, 1+1, 2+0, 2+2, 4+4
    ranks = np.array([4, 2, 4, 1, 5]).reshape(5, 1, 1)
    found = marginal_utility(node_values(ranks), SPACE)[:, 0]
    assert found.tolist() == pytest.approx([1 / 4, 0, 1 / 2, 3 / 4, -4 / 5])


@every_kind
@profile(max_examples=25)
@given(rank_tables(positives=2))
def test_the_value_of_a_ranking_is_that_of_the_literal_twin(settings, ranks):
    expected = [[TWINS[settings.kind](row) for row in node] for node in ranks.tolist()]
    np.testing.assert_allclose(node_values(ranks, settings), expected, rtol=1e-9)


@every_kind
@profile(max_examples=25)
@given(rank_tables())
def test_a_better_rank_is_worth_more(settings, ranks):
    worse, better = node_values(ranks + 1, settings), node_values(ranks, settings)
    assert (better > worse).all()


@given(rank_tables())
def test_in_the_whole_gallery_a_sub_gallery_is_the_gallery(ranks):
    np.testing.assert_allclose(sub_gallery_precision(ranks, 1.0), average_precision(ranks))


@given(rank_tables(), st.floats(1e-4, 1))
def test_fewer_rivals_never_lower_the_expected_precision(ranks, share):
    few, many = sub_gallery_precision(ranks, share), sub_gallery_precision(ranks, 1.0)
    assert (few >= many * (1 - 1e-12)).all()
    assert (few <= 1 + 1e-12).all()


def test_the_expectation_is_what_random_sub_galleries_average_to():
    rng = np.random.default_rng(0)
    kept = rng.binomial(19, 0.25, size=200_000)
    found = sub_gallery_precision(np.array([[20]]), 0.25)
    assert found[0] == pytest.approx((1 / (1 + kept)).mean(), rel=0.01)


def test_filling_does_not_count():
    padded = np.array([[[3, 7, 0]]])
    for value in (minus_log_rank, lambda ranks: sub_gallery_precision(ranks, 0.3)):
        assert value(padded) == pytest.approx(value(padded[..., :2]))


@every_space
def test_marginal_utilities_are_those_of_the_literal_twin(space):
    values = np.random.default_rng(1).random((len(space), 6))
    edges = [(space.index(edge.source), space.index(edge.target)) for edge in space.edges]
    expected = literal.marginal_utilities(values.tolist(), edges)
    np.testing.assert_allclose(marginal_utility(values, space), expected)


@every_space
def test_utilities_add_up_along_every_way(space):
    values = np.random.default_rng(2).random((len(space), 4))
    gains = dict(zip(space.edges, marginal_utility(values, space), strict=True))
    reached = {space.root: values[0]}
    for edge in sorted(space.edges, key=lambda edge: space.step_of(edge.source)):
        arrived = reached[edge.source] + gains[edge]
        np.testing.assert_allclose(reached.setdefault(edge.target, arrived), arrived)
        np.testing.assert_allclose(arrived, values[space.index(edge.target)])


@every_space
def test_standardised_utilities_are_those_of_the_literal_twin(space):
    utilities = random_utilities(space)
    settings = UtilitySettings(epsilon=0.01)
    scale = utility_scale(utilities, space, settings)
    steps = [space.step_of(edge.source) for edge in space.edges]
    expected = literal.standardized(utilities.tolist(), steps, 0.01)
    np.testing.assert_allclose(standardized_utility(utilities, space, scale), expected)


@every_space
def test_each_step_has_mean_zero_and_deviation_one(space):
    utilities = 3 + 5 * random_utilities(space)
    found = standardized_utility(utilities, space, utility_scale(utilities, space))
    steps = np.array([space.step_of(edge.source) for edge in space.edges])
    for step in set(steps.tolist()):
        assert found[steps == step].mean() == pytest.approx(0, abs=1e-9)
        assert found[steps == step].std() == pytest.approx(1)


def test_without_centring_a_utility_keeps_its_sign():
    utilities = 1 + random_utilities(SPACE)
    scale = utility_scale(utilities, SPACE, UtilitySettings(center=False))
    found = standardized_utility(utilities, SPACE, scale)
    assert (np.sign(found) == np.sign(utilities)).all()
    centred = utility_scale(utilities, SPACE)
    assert scale.means == (0.0, 0.0, 0.0)
    assert scale.deviations == centred.deviations


def test_the_scale_is_of_the_whole_training_set_and_not_of_a_part():
    utilities = random_utilities(SPACE, 40)
    scale = utility_scale(utilities, SPACE)
    whole = standardized_utility(utilities, SPACE, scale)
    part = standardized_utility(utilities[:, :7], SPACE, scale)
    np.testing.assert_array_equal(part, whole[:, :7])


def test_utilities_that_are_all_alike_are_worth_nothing():
    utilities = np.full((5, 8), 0.3)
    found = standardized_utility(utilities, SPACE, utility_scale(utilities, SPACE))
    assert np.abs(found).max() < 1e-6


@every_space
def test_actions_have_the_utility_of_their_expansion_and_stop_none(space):
    utilities = random_utilities(space, 3)
    table, actions = state_utilities(utilities, space), Actions(space)
    assert table.shape == (3, *actions.admissible.shape)
    assert not table[..., STOP].any()
    assert not table[:, ~actions.admissible].any()
    for place, edge in enumerate(space.edges):
        found = table[:, actions.place(edge.source), 1 + place]
        torch.testing.assert_close(found, torch.from_numpy(utilities[place]).float())


@every_kind
def test_utilities_of_a_training_set_come_from_one_rank_table(settings):
    source, target = (random_candidates(15, SPACE.layout, 6, seed=seed) for seed in (1, 2))
    gallery = Gallery.from_candidates([f"i{item}" for item in range(15)], target)
    positives = np.arange(15)[:, None]
    found = training_utilities(gallery, source, positives, SPACE, settings)
    ranks = rank_table(gallery, source, positives, SPACE.nodes)
    expected = marginal_utility(node_values(ranks, settings), SPACE)
    np.testing.assert_array_equal(found, expected)
    assert found.shape == (5, 15)


def literal_scores(queries, items, node):
    positions = list(node.positions)
    return np.array(
        [[setsim(one[positions], each[positions]) for each in items] for one in queries]
    )


@pytest.mark.parametrize("space", [coarse_to_fine(TWO_PAIRS), every_prefix(TWO_PAIRS)])
def test_utilities_of_a_training_set_are_those_of_scores_compared_one_by_one(space):
    source, target = (random_candidates(9, TWO_PAIRS, 3, seed=seed) for seed in (1, 2))
    gallery = Gallery.from_candidates([f"i{item}" for item in range(9)], target)
    positives = np.random.default_rng(0).permutation(9)[:, None]
    scores = [literal_scores(source.numpy(), target.numpy(), node) for node in space.nodes]
    ranks = literal_rank_table(scores, positives, range(9))
    values = [[literal.average_precision(row) for row in node] for node in ranks.tolist()]
    edges = [(space.index(edge.source), space.index(edge.target)) for edge in space.edges]
    expected = literal.marginal_utilities(values, edges)
    found = training_utilities(gallery, source, positives, space)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(found).max() > 0.1


def test_tables_of_another_space_are_refused():
    with pytest.raises(ShapeError, match="values have 4 rows and the space has 5 nodes"):
        marginal_utility(np.zeros((4, 2)), SPACE)
    with pytest.raises(ShapeError, match="utilities have 4 rows and the space has 5 expansions"):
        utility_scale(np.zeros((4, 2)), SPACE)
    with pytest.raises(ShapeError, match="utilities have 4 rows"):
        state_utilities(np.zeros((4, 2)), SPACE)
    with pytest.raises(ShapeError, match="utilities have 4 rows"):
        standardized_utility(np.zeros((4, 2)), SPACE, UtilityScale((0.0,) * 3, (1.0,) * 3))


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(SettingError, match=r"epsilon is 0\.0"):
        UtilitySettings(epsilon=0.0)
    with pytest.raises(SettingError, match=r"shares are \(0\.5, 1\.5\); give at least one"):
        UtilitySettings(shares=(0.5, 1.5))

"""Several datasets are one training: one bank, two thresholds, each its own gallery (R21)."""

import numpy as np
import pytest
import torch

from adaptiveembed.allocation.utility import UtilityGallery, marginal_utility, node_values
from adaptiveembed.errors import (
    DuplicateIdError,
    EmptyBatchError,
    SettingError,
    TrainingError,
)
from adaptiveembed.pipeline.allocating import (
    dataset_ranks,
    direction_examples,
    joint_ranks,
    made_bank,
    read_inputs,
    standardised,
)
from adaptiveembed.pipeline.evaluating import evaluate_adaptive
from adaptiveembed.pipeline.fitting import embed_joint, fit
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.paired import JointPairs, PairedFeatures
from adaptiveembed.pipeline.rows import training_rows
from adaptiveembed.similarity.setsim import setsim_matrix
from adaptiveembed.structure.candidates import activate
from adaptiveembed.structure.direction import Direction, Modality
from tests.pipeline.tiny import tiny_pairs, tiny_recipe

TEXT, IMAGE = Modality.TEXT, Modality.IMAGE
BROUGHT = {each: EncoderFacts(FEATURES, FEATURES) for each in (TEXT, IMAGE)}


@pytest.fixture(scope="module")
def joint():
    return JointPairs((tiny_pairs(50, "one"), tiny_pairs(40, "two", start=50)))


@pytest.fixture(scope="module")
def trained(joint, tmp_path_factory):
    """A model of both datasets."""
    folder = tmp_path_factory.mktemp("joint") / "run"
    return AdaptiveEmbed.from_pretrained(fit(joint, tiny_recipe(), folder, BROUGHT), check=True)


def test_pairs_follow_one_another_and_know_their_dataset(joint):
    pairs = joint.pairs
    one, two = joint.datasets
    assert len(joint) == len(pairs) == 90
    assert pairs.ids == (*(f"one/{each}" for each in one.ids), *(f"two/{each}" for each in two.ids))
    assert pairs.splits == one.splits + two.splits
    assert joint.owners.tolist() == [0] * 50 + [1] * 40
    np.testing.assert_array_equal(
        pairs.source.global_features(),
        np.concatenate([one.source.global_features(), two.source.global_features()]),
    )


def test_one_dataset_alone_keeps_its_ids():
    pairs = tiny_pairs(10)
    assert JointPairs((pairs,)).pairs is pairs


def test_datasets_that_cannot_be_one_training_are_refused():
    pairs = tiny_pairs(10)
    with pytest.raises(EmptyBatchError, match="give the pairs of at least one dataset"):
        JointPairs(())
    with pytest.raises(DuplicateIdError, match="'pairs'"):
        JointPairs((pairs, tiny_pairs(10, start=10)))
    other = PairedFeatures(
        Direction(TEXT, Modality.AUDIO), pairs.ids, pairs.source, pairs.target, pairs.splits, "x"
    )
    with pytest.raises(SettingError, match="datasets of text→image and text→audio"):
        JointPairs((pairs, other))


def test_the_bank_holds_items_of_every_dataset_and_no_query(joint, trained):
    rows = training_rows(joint.pairs, tiny_recipe().splits)
    expected = {joint.pairs.ids[row] for row in rows.representation}
    for allocator in trained.allocators.values():
        assert set(allocator.bank.ids) == expected
    assert {each.partition("/")[0] for each in expected} == {"one", "two"}
    asked = {joint.pairs.ids[row] for row in joint.pairs.queries}
    assert not expected & asked


def test_there_is_one_threshold_for_each_direction(trained):
    assert set(trained.thresholds) == set(trained.directions)
    assert trained.facts.counts["representation"] + trained.facts.counts["validation"] <= 72


def literal_rank(queries, gallery, row, others, node):
    """The rank of one training item among other ones, scored by itself."""
    places = [row, *(each for each in others if each != row)]
    (scores,) = setsim_matrix(activate(queries[[row]], node), activate(gallery[places], node))
    return 1 + int((scores[1:] >= scores[0]).sum())


def sides_in(joint, trained, *, turned):
    """What was trained on as candidates, the direction, and its queries and gallery."""
    embedded = embed_joint(trained.embedder, joint)
    direction = joint.direction.reversed if turned else joint.direction
    return embedded, direction, embedded.sides(direction)


@pytest.mark.parametrize("turned", [False, True])
def test_utilities_come_from_ranks_in_the_gallery_of_the_own_dataset(joint, trained, turned):
    """A literal twin: every training item against the training items of its dataset alone."""
    recipe = trained.facts.recipe
    rows = training_rows(joint.pairs, recipe.splits)
    embedded, direction, sides = sides_in(joint, trained, turned=turned)
    found = dataset_ranks(embedded, direction, rows, rows.all, recipe.space)
    assert found.shape == (len(recipe.space.nodes), len(rows.all), 1)
    for node, ranks in zip(recipe.space.nodes, found, strict=True):
        for row, rank in zip(rows.all.tolist(), ranks[:, 0].tolist(), strict=True):
            own = rows.all[joint.owners[rows.all] == joint.owners[row]]
            assert rank == literal_rank(*sides, row, own.tolist(), node)


@pytest.mark.parametrize("turned", [False, True])
def test_joint_ranks_are_among_the_training_items_of_every_dataset(joint, trained, turned):
    recipe = trained.facts.recipe
    rows = training_rows(joint.pairs, recipe.splits)
    embedded, direction, sides = sides_in(joint, trained, turned=turned)
    found = joint_ranks(embedded, direction, rows, rows.all, recipe.space)
    assert found.shape == (len(recipe.space.nodes), len(rows.all), 1)
    for node, ranks in zip(recipe.space.nodes, found, strict=True):
        for row, rank in zip(rows.all.tolist(), ranks[:, 0].tolist(), strict=True):
            assert rank == literal_rank(*sides, row, rows.all.tolist(), node)


def test_the_setting_joint_changes_what_teaches_and_not_what_judges(joint, trained):
    own, other = (
        tiny_recipe("laptop", f"allocation.utility.gallery={each}") for each in UtilityGallery
    )
    assert own == trained.facts.recipe
    rows = training_rows(joint.pairs, own.splits)
    embedded, direction, _ = sides_in(joint, trained, turned=False)
    mine, theirs = (direction_examples(embedded, direction, rows, each) for each in (own, other))
    for recipe, examples, ranked in ((own, mine, dataset_ranks), (other, theirs, joint_ranks)):
        ranks = ranked(embedded, direction, rows, rows.policy, recipe.space)
        gains = marginal_utility(node_values(ranks, recipe.allocation.utility), recipe.space)
        torch.testing.assert_close(
            examples.training.utilities, standardised(gains, recipe.space, recipe.allocation)
        )
    assert not torch.equal(mine.training.utilities, theirs.training.utilities)
    np.testing.assert_array_equal(mine.validation_ranks, theirs.validation_ranks)
    np.testing.assert_array_equal(
        mine.validation_ranks,
        dataset_ranks(embedded, direction, rows, rows.validation, own.space),
    )


@pytest.mark.parametrize("ranked", [dataset_ranks, joint_ranks])
def test_ranks_of_some_rows_are_theirs_among_the_ranks_of_all(joint, trained, ranked):
    space = trained.facts.recipe.space
    rows = training_rows(joint.pairs, trained.facts.recipe.splits)
    embedded, direction, _ = sides_in(joint, trained, turned=False)
    every = ranked(embedded, direction, rows, rows.all, space)
    for asked in (rows.policy, rows.validation, rows.all[:1]):
        np.testing.assert_array_equal(
            ranked(embedded, direction, rows, asked, space), every[:, np.isin(rows.all, asked)]
        )


@pytest.mark.parametrize("left_out", [True, False])
def test_no_sample_is_shown_its_own_partner(joint, trained, left_out):
    """R12: a query's partner is not in the bank; the literal reading is a setting."""
    recipe = tiny_recipe(
        "laptop",
        "splits.policy_share=0",
        f"allocation.feedback.leave_partner_out={str(left_out).lower()}",
    )
    rows = training_rows(joint.pairs, recipe.splits)
    embedded, direction, _ = sides_in(joint, trained, turned=False)
    bank = made_bank(embedded, direction, rows, recipe.allocation)
    shown = read_inputs(embedded, direction, rows.policy, recipe, bank).top_items
    own = bank.places([joint.pairs.ids[row] for row in rows.policy])
    assert bool((shown == own[:, None, None]).any()) is not left_out


def test_each_dataset_is_evaluated_in_its_own_gallery(joint, trained):
    for data in joint.datasets:
        results = evaluate_adaptive(
            trained.embedder, trained.allocators, data, trained.facts.recipe.space
        )
        for table in results.tables:
            assert len(table.task.gallery) == len(data)
            assert len(table.task.queries) == len(data.queries)


def test_pairs_without_queries_are_trained_on_and_not_evaluated(trained):
    pairs = tiny_pairs(20)
    none = pairs.take(pairs.training)
    with pytest.raises(TrainingError, match="no pair of split 'query'"):
        evaluate_adaptive(trained.embedder, trained.allocators, none, trained.facts.recipe.space)

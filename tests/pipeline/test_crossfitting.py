"""Every pair teaches the policy by an embedder that never saw it, and none is kept from Stage I."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from adaptiveembed.data.splits import SplitSettings
from adaptiveembed.errors import SettingError
from adaptiveembed.pipeline import fitting
from adaptiveembed.pipeline.allocating import (
    Lessons,
    direction_examples,
    direction_lessons,
    made_bank,
    standardised,
)
from adaptiveembed.pipeline.crossfitting import crossfitted_lessons
from adaptiveembed.pipeline.fitting import embed_joint, fit
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.representing import fit_representation, starting_embedder
from adaptiveembed.pipeline.rows import fold_rows, training_rows
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia
from tests.pipeline.tiny import tiny_pairs, tiny_recipe

BROUGHT = {each: EncoderFacts(FEATURES, FEATURES) for each in (Modality.TEXT, Modality.IMAGE)}
FOLDS = "splits.policy_share=0", "splits.folds=2", "representation.training.batch_size=16"


@pytest.fixture(scope="module")
def joint():
    return JointPairs((tiny_pairs(90),))


@pytest.fixture(scope="module")
def recipe():
    return tiny_recipe("laptop", *FOLDS)


@pytest.fixture(scope="module")
def run(joint, recipe, tmp_path_factory):
    """A finished run with two folds; only to be read."""
    folder = tmp_path_factory.mktemp("folds") / "run"
    fit(joint, recipe, folder, BROUGHT)
    return folder


@pytest.mark.parametrize("num_folds", [2, 3, 5])
def test_every_pair_of_stage_one_is_apart_once(joint, num_folds):
    settings = SplitSettings(validation_share=0.1, folds=num_folds)
    rows = training_rows(joint.pairs, settings)
    folds = fold_rows(joint.pairs, rows, settings)
    apart = np.concatenate([one.policy for one in folds])
    np.testing.assert_array_equal(np.sort(apart), rows.representation)
    for one in folds:
        np.testing.assert_array_equal(
            np.union1d(one.policy, one.representation), rows.representation
        )
        assert not np.isin(one.policy, one.representation).any()
        np.testing.assert_array_equal(one.validation, rows.validation)
        assert len(one.representation) + len(one.policy) == len(rows.representation)


def test_each_fold_is_taught_by_the_embedder_of_the_others(joint, recipe, tmp_path):
    """A literal twin: fold by fold, joined by hand."""
    rows = training_rows(joint.pairs, recipe.splits)
    asked = []

    def represent(chosen, folder, what):
        asked.append((chosen, folder.name, what))
        found = fit_representation(joint.pairs, chosen, recipe, folder)
        return embed_joint(found.embedder, joint)

    found = crossfitted_lessons(joint, rows, recipe, tmp_path, represent)
    assert [(name, what) for _, name, what in asked] == [
        ("fold-1", "Stage I: without fold 1 of 2"),
        ("fold-2", "Stage I: without fold 2 of 2"),
    ]
    parts = {direction: [] for direction in found}
    for one, name, _ in asked:
        embedder = fit_representation(joint.pairs, one, recipe, tmp_path / name).embedder
        embedded = embed_joint(embedder, joint)
        for direction, each in parts.items():
            bank = made_bank(embedded, direction, one, recipe.allocation)
            assert set(bank.ids) == {joint.pairs.ids[row] for row in one.representation}
            each.append(direction_lessons(embedded, direction, one, recipe, bank))
    for direction, (one, two) in parts.items():
        got = found[direction]
        assert len(got.inputs) == len(rows.representation)
        np.testing.assert_array_equal(got.gains, np.concatenate([one.gains, two.gains], axis=1))
        torch.testing.assert_close(
            got.inputs.feedback, torch.cat([one.inputs.feedback, two.inputs.feedback])
        )
    assert not torch.equal(one.inputs.feedback, two.inputs.feedback)


def test_utilities_of_all_folds_are_on_one_scale(joint, recipe, run):
    """Standardised over the whole training set of a direction (R10), not fold by fold."""
    model = AdaptiveEmbed.from_pretrained(run / "model")
    rows = training_rows(joint.pairs, recipe.splits)
    embedded = embed_joint(model.embedder, joint)
    direction = joint.direction
    bank = made_bank(embedded, direction, rows, recipe.allocation)
    own = direction_lessons(embedded, direction, rows, recipe, bank)
    lessons = Lessons.concatenate([own, Lessons(own.inputs, 3 * own.gains)])
    examples = direction_examples(embedded, direction, rows, recipe, lessons)
    torch.testing.assert_close(
        examples.training.utilities,
        standardised(lessons.gains, recipe.space, recipe.allocation),
    )
    first, second = examples.training.utilities.chunk(2)
    torch.testing.assert_close(second, 3 * first)


def test_nothing_is_kept_from_the_model_that_is_deployed(joint, recipe, run):
    model = AdaptiveEmbed.from_pretrained(run / "model", check=True)
    rows = training_rows(joint.pairs, recipe.splits)
    assert model.facts.counts["representation"] == model.facts.counts["policy"]
    for allocator in model.allocators.values():
        assert set(allocator.bank.ids) == {joint.pairs.ids[row] for row in rows.representation}
    folders = sorted(one.name for one in (run / "stage-one").glob("fold-*"))
    assert folders == ["fold-1", "fold-2"]


def test_what_was_stopped_after_a_fold_ends_as_if_it_had_not_been(joint, recipe, run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    for part in ("model", "stage-two", "stage-one/fold-2"):
        shutil.rmtree(folder / part)
    fit(joint, recipe, folder, BROUGHT)
    for name in sorted(one.name for one in (run / "model").glob("*.safetensors")):
        assert (folder / "model" / name).read_bytes() == (run / "model" / name).read_bytes()


def test_policies_that_read_coordinates_are_refused():
    with pytest.raises(SettingError, match=r"folds is 2 and allocation\.policy\.kind is tst"):
        tiny_recipe("laptop", *FOLDS, "allocation.policy.kind=tst")
    assert tiny_recipe("metaembed", *FOLDS, "allocation.policy.kind=tst").splits.folds == 2


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(SettingError, match=r"folds is 2 and policy_share is 0\.25"):
        tiny_recipe("laptop", "splits.folds=2")
    with pytest.raises(SettingError, match="folds is 0; give 1 for none"):
        tiny_recipe("laptop", "splits.folds=0")


def test_the_policy_learns_from_the_lessons_of_the_folds(joint, recipe, tmp_path, monkeypatch):
    given, really = [], fitting.fit_allocation
    monkeypatch.setattr(
        fitting, "fit_allocation", lambda *args, **how: given.append(how) or really(*args, **how)
    )
    fit(joint, recipe, tmp_path / "run", BROUGHT)
    (how,) = given
    rows = training_rows(joint.pairs, recipe.splits)
    assert set(how["lessons"]) == {joint.direction, joint.direction.reversed}
    for lessons in how["lessons"].values():
        assert len(lessons.inputs) == len(rows.representation)


def test_what_stage_one_starts_from_knows_nothing_of_the_fold(joint, recipe):
    """Position 0 is fitted in closed form, and so are the scales of the states."""
    rows = training_rows(joint.pairs, recipe.splits)
    fold = fold_rows(joint.pairs, rows, recipe.splits)[0]
    before = starting_embedder(joint.pairs, fold, recipe).state_dict()
    after = starting_embedder(changed(joint.pairs, fold.policy), fold, recipe).state_dict()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
    learned = changed(joint.pairs, fold.representation[:3])
    other = starting_embedder(learned, fold, recipe).state_dict()
    assert any(not torch.equal(tensor, other[name]) for name, tensor in before.items())


def changed(pairs, rows):
    """The same pairs, some of them with other features."""

    def side(encoded):
        noise = torch.randn(encoded.global_feature.shape, generator=torch.manual_seed(1))
        mask = torch.zeros(len(encoded), 1)
        mask[rows] = 1
        return EncodedMedia(
            encoded.global_feature + mask * noise,
            encoded.hidden_states + (mask * noise).unsqueeze(1) * encoded.mask.unsqueeze(-1),
            encoded.mask,
        )

    return replace(pairs, source=side(pairs.source), target=side(pairs.target))


def test_too_many_folds_are_refused_before_the_work(joint, tmp_path):
    many = tiny_recipe("laptop", *FOLDS, "splits.folds=33", "representation.training.batch_size=8")
    with pytest.raises(SettingError, match=r"33 folds of 6\d pairs were asked for; give from 2"):
        fit(joint, many, tmp_path / "run", BROUGHT)
    assert not (tmp_path / "run").exists()

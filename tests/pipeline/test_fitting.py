"""From pairs of any kind to a model in a run folder that says what it is of."""

import json
import shutil

import numpy as np
import pytest

from adaptiveembed import __version__
from adaptiveembed.data.feature_writer import locked
from adaptiveembed.data.pairs import read_manifest
from adaptiveembed.errors import (
    FeatureStoreError,
    ModelFormatError,
    SettingError,
    TrainingError,
)
from adaptiveembed.pipeline.fitting import (
    LOCK,
    RECIPE,
    RECORD,
    all_figures,
    begin_run,
    fit,
    has_learned,
    model_folder,
    run_datasets,
)
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.pipeline.representing import embed_pairs
from adaptiveembed.pipeline.searching import Choice, Searcher, ask
from adaptiveembed.structure.direction import Modality
from tests.pipeline.tiny import NAMES, facts, picture_of, text_of, tiny_pairs, tiny_recipe
from tests.plain import answers

TEXTS = [text_of(*one) for one in facts(4)]


def same_answers(one, other):
    mine, theirs = one.encode_query(TEXTS), other.encode_query(TEXTS)
    assert mine.selections == theirs.selections
    np.testing.assert_array_equal(mine.candidates.vectors, theirs.candidates.vectors)


def test_a_manifest_and_its_path_give_the_model_of_its_dataset(corpus, model, tmp_path):
    for place, given in enumerate((str(corpus), read_manifest(corpus))):
        folder = tmp_path / f"{place}"
        found = AdaptiveEmbed.fit(given, recipe=tiny_recipe(), folder=folder, encoders=NAMES)
        same_answers(found, model)


def test_texts_with_paths_are_pairs_too(tmp_path):
    paths = [tmp_path / f"{place}.png" for place in range(60)]
    for path, one in zip(paths, facts(60), strict=True):
        picture_of(*one).save(path)
    pairs = [(text_of(*one), path) for one, path in zip(facts(60), paths, strict=True)]
    recipe = tiny_recipe("laptop", "splits.policy_share=0")
    model = AdaptiveEmbed.fit(pairs, recipe=recipe, folder=tmp_path / "fitted", encoders=NAMES)
    assert model.facts.counts["representation"] + model.facts.counts["validation"] == 54
    assert len(model.encode_query(TEXTS)) == 4


def test_what_is_no_pair_is_refused(tmp_path):
    """In a process without type checks, which would refuse it before we do."""
    folder = str(tmp_path / "fitted")
    wrong = [["a text"], [("a text", 3)], [("a", "b", "c")]]
    told = answers(*(f"ae.AdaptiveEmbed.fit({one!r}, folder={folder!r})" for one in wrong))
    for one, message in zip(wrong, told, strict=True):
        assert message == (
            f"DtypeError: got the pair {one[0]!r}; give a text and the path of its medium, "
            f"as a tuple"
        )
    assert not (tmp_path / "fitted").exists()


def test_encoded_pairs_are_trained_on_as_they_are(tmp_path):
    model = AdaptiveEmbed.fit(tiny_pairs(), recipe=tiny_recipe(), folder=tmp_path)
    assert {one.name for one in model.facts.encoders.values()} == {FEATURES}
    with pytest.raises(ModelFormatError, match="trained on pairs in memory; name the dataset"):
        run_datasets(tmp_path / "run")


def test_a_run_says_what_made_it_and_its_recipe_gives_the_same_recipe_again(run, dataset):
    record = json.loads((run / RECORD).read_text())
    assert record["library"] == __version__
    assert {"torch", "numpy", "transformers"} <= set(record["versions"])
    assert record["datasets"][dataset.pairs.name]["training"] == 72
    assert run_datasets(run) == [dataset.folder.resolve()]
    assert read_recipe(str(run / RECIPE)) == tiny_recipe()


def test_a_model_is_found_in_its_run_and_by_itself(run, tmp_path):
    assert model_folder(run) == model_folder(run / "model") == run / "model"
    with pytest.raises(ModelFormatError, match="neither a run nor a model"):
        model_folder(tmp_path)
    (tmp_path / RECIPE).write_text("")
    with pytest.raises(ModelFormatError, match=r"is not finished; .* with --resume"):
        model_folder(tmp_path)


def test_a_damaged_record_is_told_with_a_way_out(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    for content in ("{", "[1]"):
        (folder / RECORD).write_text(content)
        with pytest.raises(ModelFormatError, match="name the dataset with --data"):
            run_datasets(folder)


def test_settings_may_change_until_something_is_learned(tmp_path, run):
    data, folder = JointPairs((tiny_pairs(),)), tmp_path / "run"
    begin_run(data, tiny_recipe(), folder)
    assert not has_learned(folder)
    begin_run(data, tiny_recipe("laptop", "seed=4"), folder)
    assert read_recipe(str(folder / RECIPE)).seed == 4
    (folder / "stage-one" / "checkpoints" / "step-000000001").mkdir(parents=True)
    assert has_learned(folder)
    with pytest.raises(SettingError, match="differs in seed"):
        begin_run(data, tiny_recipe(), folder)
    assert has_learned(run)


def test_a_recipe_of_somebody_else_is_not_written_over(tmp_path):
    (tmp_path / RECIPE).write_text("mine")
    with pytest.raises(SettingError, match=r"something other than a run \(recipe\.toml\)"):
        begin_run(JointPairs((tiny_pairs(),)), tiny_recipe(), tmp_path)
    assert (tmp_path / RECIPE).read_text() == "mine"


@pytest.mark.parametrize(
    ("stage", "batch_size", "told"),
    [
        (
            "representation",
            47,
            r"Stage I stopped at step 1 of 2: .* the weight (qformers|projections)\.",
        ),
        ("allocation", 36, r"Stage II stopped at step 1 of 1: .* the weight \w+\."),
    ],
)
def test_weights_that_one_step_made_too_large_are_told(tmp_path, stage, batch_size, told):
    """No loss has seen them when the validation does."""
    training = f"{stage}.training"
    steps = ("learning_rate=1e30", "warmup=0", "weight_decay=0")
    changes = [f"{training}.optimizer.{each}" for each in steps]
    recipe = tiny_recipe("laptop", *changes, f"{training}.batch_size={batch_size}")
    with pytest.raises(TrainingError, match=f"^{told}.* reaches 1e.30, .* lower learning_rate"):
        AdaptiveEmbed.fit(tiny_pairs(), recipe=recipe, folder=tmp_path)


def test_figures_of_several_policies_are_their_mean():
    found = all_figures({"mAP": 0.5}, [{"mAP": 0.2, "a": 1.0}, {"mAP": 0.4, "b": 2.0}])
    assert found == pytest.approx(
        {"mAP": 0.5, "adaptive mAP": 0.3, "adaptive a": 1.0, "adaptive b": 2.0}
    )


# searching


def test_a_search_is_the_models_similarity_in_order(model, dataset):
    searcher = Searcher.over(model, dataset)
    _, pictures = embed_pairs(model.embedder, dataset.pairs)
    scores = model.similarity(model.encode_query(TEXTS[0]), pictures)[0]
    findings = searcher.answer(ask(model, TEXTS[0]), 5)
    assert [one.score for one in findings.found] == sorted(scores.tolist(), reverse=True)[:5]
    best = dataset.pairs.ids[int(scores.argmax())]
    assert findings.found[0].id == best
    for one in findings.found:
        mine, theirs = zip(*one.matched, strict=True)
        assert mine == findings.selection.labels
        assert sorted(theirs) == sorted(mine)


def test_a_choice_takes_the_place_of_the_policy(model, dataset):
    searcher = Searcher.over(model, dataset)
    asked = ask(model, TEXTS[1], Choice(threshold=0.5))
    assert asked.threshold == 0.5
    assert asked.caes.selections == model.encode_query(TEXTS[1], threshold=0.5).selections
    findings = searcher.answer(asked, 3)
    assert (findings.threshold, findings.selection) == (0.5, asked.selection)
    fixed = ask(model, TEXTS[1], Choice(capacity=4))
    assert (fixed.threshold, fixed.explanation, fixed.selection.capacity) == (None, None, 4)
    assert searcher.answer(fixed, 3).selection.capacity == 4


def test_more_items_than_there_are_is_all_of_them(model, dataset):
    asked = ask(model, TEXTS[0])
    assert len(Searcher.over(model, dataset).answer(asked, 10_000).found) == 90


def test_a_run_of_before_a_setting_existed_had_its_default_there(tmp_path):
    data, folder = JointPairs((tiny_pairs(),)), tmp_path / "run"
    begin_run(data, tiny_recipe(), folder)
    (folder / "stage-one" / "checkpoints" / "step-000000001").mkdir(parents=True)
    text = (folder / RECIPE).read_text()
    assert "folds = 1\n" in text
    (folder / RECIPE).write_text(text.replace("folds = 1\n", ""))
    begin_run(data, tiny_recipe(), folder)
    with pytest.raises(SettingError, match=r"differs in splits\.policy_share, splits\.folds"):
        begin_run(data, tiny_recipe("laptop", "splits.policy_share=0", "splits.folds=2"), folder)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("seed=-1", "seed is -1; give a whole number from 0"),
        (f"seed={10**23}", "give a whole number from 0 to below"),
        ("representation.training.seed=-3", "seed is -3; give a whole number"),
        ("allocation.bank.size=0", "size is 0; give a bank of at least 1 item"),
    ],
)
def test_seeds_and_sizes_that_cannot_be_are_refused_at_once(change, told):
    with pytest.raises(SettingError, match=told):
        tiny_recipe("laptop", change)


def test_two_trainings_in_one_folder_are_refused(tmp_path):
    data, folder = JointPairs((tiny_pairs(),)), tmp_path / "run"
    begin_run(data, tiny_recipe(), folder)
    encoders = {each: EncoderFacts(FEATURES, FEATURES) for each in (Modality.TEXT, Modality.IMAGE)}
    with (
        locked(folder, LOCK),
        pytest.raises(FeatureStoreError, match=r"process \d+ is writing to .*run; wait until"),
    ):
        fit(data, tiny_recipe(), folder, encoders)
    assert fit(data, tiny_recipe(), folder, encoders) == folder / "model"

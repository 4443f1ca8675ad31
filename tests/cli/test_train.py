"""Training explains its recipe, goes on where it was stopped, and refuses what it cannot do."""

import os
import shutil
import signal
import subprocess
import sys
import tomllib

import pytest

from adaptiveembed.pipeline.dataset import import_dataset
from adaptiveembed.pipeline.settings import to_table
from adaptiveembed.structure.direction import Modality
from tests.cli.test_data_and_encode import contents, write_features
from tests.cli.typing_ctrl_c import ctrl_c_in
from tests.pipeline.tiny import SET, tiny_recipe, write_corpus

STEPS = ["--set", "representation.training.epochs=4", "--set", "allocation.training.epochs=3"]
"""So many that Ctrl-C comes before the last one."""


def training(dataset, folder, *more):
    """A command that trains something tiny."""
    folders = getattr(dataset, "folder", dataset), "--output", folder
    return ["train", *more, *folders, *SET, *STEPS]


def test_a_dry_run_of_the_paper_recipe_prints_every_setting_with_its_meaning(call):
    done = call("train", "--recipe", "paper", "--dry-run")
    assert (done.status, done.err) == (0, "")
    table = tomllib.loads(done.out)
    stage_one, stage_two = table["representation"], table["allocation"]
    assert table["name"] == "paper"
    assert stage_one["temperature"] == 0.03
    assert stage_one["training"]["batch_size"] == 2048
    assert stage_one["embedder"]["layout"] == "4+4"
    for stage in (stage_one, stage_two):
        optimizer = stage["training"]["optimizer"]
        assert stage["training"]["epochs"] == 20
        assert optimizer["learning_rate"] == 1e-4
        assert optimizer["schedule"] == "constant"
        assert optimizer["clip_norm"] == "none"
    assert stage_two["feedback"]["depth"] == 50
    assert stage_two["bank"]["sampling"] == "all"
    lines = done.out.splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        if " = " in line and not line.startswith("#"):
            assert before.startswith("# "), line
    assert max(len(line) for line in lines if line.startswith("#")) <= 80


def test_what_is_set_stands_in_the_dry_run(call):
    done = call("train", "--dry-run", "--set", "seed=7", "--set", "allocation.training.epochs=2")
    table = tomllib.loads(done.out)
    assert (table["seed"], table["allocation"]["training"]["epochs"]) == (7, 2)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--set", "representation.embed.dim=8"], "did you mean embedder?"),
        (["--set", "representation.embedder.dimm=8"], "did you mean dim?"),
        (["--set", "colour=red"], "there is no setting colour; the keys there are name, method"),
        (["--set", "seed=one"], "seed is 'one'; give a whole number"),
        (["--set", "seed=1.5"], "seed is 1.5; give a whole number"),
        (["--set", "method=adaptiv"], "method is 'adaptiv'; did you mean adaptive? choose one of"),
        (["--set", "splits=3"], "splits is 3; it is a table [splits] with keys validation_share"),
        (["--set", "splits.policy_share=2"], "policy_share is 2.0; give a share below 1"),
        (["--set", "representation.training.epochs=0"], "epochs is 0; give a number above 0"),
        (["--set", "representation.embedder.layout=4+x"], "4+x"),
        (["--recipe", "papr"], "there is no recipe 'papr'; did you mean paper?"),
        (["--recipe", "nowhere.toml"], "there is no file nowhere.toml; correct the path"),
    ],
)
def test_a_wrong_setting_is_refused_by_key_and_value_with_what_is_allowed(
    call, dataset, tmp_path, given, told
):
    for more in (["--dry-run"], [dataset.folder, "--output", tmp_path / "run"]):
        assert told in call("train", *given, *more).error
    assert not (tmp_path / "run").exists()


def test_a_recipe_in_a_file_builds_on_another_and_is_explained_by_inspect(call, tmp_path):
    file = tmp_path / "wide.toml"
    file.write_text('base = "laptop"\nname = "wide"\n[representation.embedder]\ndim = 512\n')
    dry = call("train", "--recipe", file, "--dry-run").out
    assert tomllib.loads(dry)["representation"]["embedder"]["dim"] == 512
    assert call("inspect", file).out == dry
    file.write_text("base = laptop\n")
    assert f"{file} is not TOML" in call("train", "--recipe", file, "--dry-run").error


def test_a_training_is_interrupted_in_either_stage_and_ends_with_the_same_bits(
    call, dataset, tmp_path, monkeypatch
):
    assert call(*training(dataset, tmp_path / "undisturbed")).status == 0
    command = training(dataset, tmp_path / "run")
    for resume, title in (([], "Stage I:"), (["--resume"], "Stage II:")):
        with ctrl_c_in(title, monkeypatch):
            done = call(*command, *resume)
        assert done.status == 130
        assert done.err.endswith(
            "adaptiveembed: interrupted; the same command goes on with --resume\n"
        )
        assert "Traceback" not in done.err
        again = call(*command)
        assert "holds a run already; add --resume to go on with it" in again.error
        told = call("inspect", tmp_path / "run").out
        assert "not finished; the command that began it goes on with --resume" in told
        for use in ("evaluate", "search"):
            asked = call(use, tmp_path / "run", *(["a text"] if use == "search" else []))
            assert "is not finished; go on with it by the command that began it" in asked.error
    done = call(*command, "--resume")
    assert done.status == 0
    assert done.out == (
        f"The model is in {tmp_path / 'run' / 'model'}. Next: adaptiveembed evaluate "
        f"{tmp_path / 'run'}\n"
    )
    assert "\x1b" not in done.err
    for path, content in contents(tmp_path / "undisturbed" / "model").items():
        found = tmp_path / "run" / path.relative_to(tmp_path / "undisturbed")
        assert found.read_bytes() == content, path


def test_ctrl_c_in_the_only_step_of_stage_one_does_not_begin_stage_two(
    call, dataset, tmp_path, monkeypatch
):
    small = ["--set", "representation.training.epochs=1"]
    small += ["--set", "representation.training.batch_size=40"]
    command = [*training(dataset, tmp_path / "run"), *small]
    with ctrl_c_in("Stage I:", monkeypatch):
        done = call(*command)
    assert done.status == 130
    assert "Stage II" not in done.err
    assert not (tmp_path / "run" / "stage-two").exists()
    assert call(*command, "--resume").status == 0


def test_a_finished_training_is_not_done_again(call, dataset, run):
    before, command = contents(run), ["train", dataset.folder, "--output", run, *SET]
    assert "add --resume" in call(*command).error
    done = call(*command, "--resume")
    assert done.status == 0
    assert "Stage" not in done.err
    assert contents(run) == before


def test_ctrl_c_in_a_shell_leaves_no_traceback(dataset, tmp_path):
    """At once, and therefore anywhere between the first imports and the first step."""
    command = [*training(dataset, tmp_path / "run"), "--set", "representation.training.epochs=999"]
    with subprocess.Popen(
        [sys.executable, "-m", "adaptiveembed.cli", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stderr.readline() == "Stage I: candidates ...\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == (
        "",
        "adaptiveembed: interrupted; the same command goes on with --resume\n",
    )
    assert (tmp_path / "run" / "recipe.toml").exists()


def test_several_datasets_are_trained_jointly(call, dataset, tmp_path):
    other = shutil.copytree(dataset.folder, tmp_path / "other")
    done = call(*training(dataset, tmp_path / "run", other))
    assert done.status == 0
    found = call("evaluate", tmp_path / "run", "--data", other, "--output", tmp_path / "results")
    assert "other: mAP" in found.out
    same = shutil.copytree(dataset.folder, tmp_path / "deep" / dataset.folder.name)
    assert f"'{same.name}'" in call(*training(dataset, tmp_path / "again", same)).error


# what is refused: told once, and nothing lost


def test_no_dataset_or_no_output_is_refused(call, dataset, tmp_path):
    for given in (["--output", tmp_path / "run"], [dataset.folder]):
        assert "name at least one DATASET and an --output folder" in call("train", *given).error
    told = call(*training(tmp_path / "nowhere", tmp_path / "run")).error
    assert f"{tmp_path / 'nowhere'} holds no encoded pairs" in told
    assert "adaptiveembed encode MANIFEST" in told
    assert "leave out --resume" in call(*training(dataset, tmp_path / "run", "--resume")).error
    assert not (tmp_path / "run").exists()


def test_a_folder_of_something_else_is_refused_and_kept(call, dataset, tmp_path):
    (tmp_path / "thesis.txt").write_text("kept")
    assert "thesis.txt" in call(*training(dataset, tmp_path)).error
    assert "is a file" in call(*training(dataset, tmp_path / "thesis.txt")).error
    assert contents(tmp_path) == {tmp_path / "thesis.txt": b"kept"}


def test_pairs_too_few_for_a_recipe_are_told_with_every_setting_at_once(call, dataset, tmp_path):
    command = ["train", dataset.folder, "--output", tmp_path / "run"]
    told = call(*command, "--set", "splits.validation_share=0.1").error
    assert "representation.training.batch_size is 256, of 32" in told
    assert "allocation.feedback.depth is 50, of 32 items of the bank" in told
    remedy = told.partition("smaller settings: ")[2].split()
    assert remedy == [
        "--set",
        "representation.training.batch_size=32",
        "--set",
        "allocation.feedback.depth=32",
    ]
    assert not (tmp_path / "run").exists()
    folds = ["--set", "splits.policy_share=0", "--set", "splits.folds=2"]  # as in laptop
    quick = [*SET, *folds, *remedy]
    assert call(*command, *quick).status == 0


def test_a_bank_smaller_than_the_feedback_is_refused(call, dataset, tmp_path):
    told = call(*training(dataset, tmp_path / "run"), "--set", "allocation.bank.size=3").error
    assert "allocation.feedback.depth is 5, of 3 items of the bank" in told
    assert "--set allocation.feedback.depth=3" in told
    assert not (tmp_path / "run").exists()


def test_a_dataset_without_enough_pairs_to_train_on_is_refused(call, tmp_path):
    manifest = write_corpus(tmp_path / "own", 6)
    assert call("encode", manifest, "--output", tmp_path / "features").status == 0
    told = call(*training(tmp_path / "features", tmp_path / "run")).error
    assert "features have 5 pairs of split 'train': validation_share 0.1 of 5 pairs is 0" in told
    assert "add pairs or raise validation_share" in told
    assert not (tmp_path / "run").exists()


def test_features_that_are_all_the_same_are_refused(call, tmp_path):
    import numpy as np

    texts = write_features(tmp_path / "texts.npz")
    images = write_features(tmp_path / "images.npz")
    arrays = dict(np.load(texts))
    for name in ("global_feature", "hidden_states"):
        arrays[name][:] = arrays[name][0]
    np.savez(texts, **arrays)
    files = {Modality.TEXT: texts, Modality.IMAGE: images}
    import_dataset(files, tmp_path / "features")
    small = ["--set", "representation.training.batch_size=16"]
    told = call(*training(tmp_path / "features", tmp_path / "run"), *small).error
    assert "the global features of the text are all the same, so that nothing can be" in told
    assert "look for the cause in the encoder" in told


@pytest.fixture
def stopped(call, dataset, tmp_path, monkeypatch):
    """A run that was stopped in its first stage."""
    with ctrl_c_in("Stage I:", monkeypatch):
        assert call(*training(dataset, tmp_path / "run")).status == 130
    return tmp_path / "run"


def test_a_run_of_another_recipe_or_of_other_pairs_is_refused_and_kept(
    call, dataset, stopped, tmp_path
):
    before = contents(stopped)
    told = call(*training(dataset, stopped, "--resume"), "--set", "seed=5").error
    assert "differs in seed; choose another folder, or give the same settings" in told
    manifest = write_corpus(tmp_path / "own", 80)
    assert call("encode", manifest, "--output", tmp_path / "features").status == 0
    told = call(*training(tmp_path / "features", stopped, "--resume")).error
    assert "holds a run on other pairs" in told
    assert contents(stopped) == before
    assert call(*training(dataset, stopped, "--resume")).status == 0


def test_a_checkpoint_of_another_layout_is_refused_and_kept(call, dataset, stopped):
    layout = "representation.embedder.layout=2+2"
    command = [*training(dataset, stopped, "--resume"), "--set", layout]
    told = call(*command).error
    assert "differs in representation.embedder.layout" in told
    recipe = stopped / "recipe.toml"
    recipe.write_text(recipe.read_text().replace('layout = "4+4"', 'layout = "2+2"'))
    assert to_table(tiny_recipe())["representation"]["embedder"]["layout"] == "4+4"
    before = contents(stopped)
    told = call(*command).error
    assert "checkpoint" in told
    assert contents(stopped) == before


def test_a_flipped_byte_in_a_checkpoint_is_refused_by_name_and_nothing_is_lost(
    call, dataset, stopped
):
    *_, path = sorted(stopped.rglob("checkpoints/*/model.safetensors"))
    whole = path.read_bytes()
    spoiled = bytearray(whole)
    spoiled[-5] ^= 1
    path.write_bytes(spoiled)
    before = contents(stopped)
    told = call(*training(dataset, stopped, "--resume")).error
    assert path.parent.name in told
    assert contents(stopped) == before
    path.write_bytes(whole)
    assert call(*training(dataset, stopped, "--resume")).status == 0


def test_a_run_that_learned_nothing_may_be_begun_anew_with_other_settings(call, dataset, tmp_path):
    hopeless = ["--set", "representation.temperature=1e-40"]
    told = call(*training(dataset, tmp_path / "run"), *hopeless).error
    assert told.startswith("Stage I stopped at step 1 of ")
    assert "a temperature too small divides beyond what numbers hold; raise it" in told
    assert call(*training(dataset, tmp_path / "run")).status == 0

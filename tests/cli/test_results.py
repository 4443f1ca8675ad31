"""What was trained is evaluated, searched, inspected and studied by commands."""

import json
import re
import shutil

import numpy as np
import pytest

from adaptiveembed.data.pairs import read_manifest
from adaptiveembed.pipeline.dataset import import_dataset
from adaptiveembed.structure.direction import Modality
from tests.cli.test_data_and_encode import contents, write_features
from tests.cli.typing_ctrl_c import ctrl_c_in
from tests.pipeline.test_baselines import encode as by_shared_encoders
from tests.pipeline.tiny import SET, facts, text_of

TEXT = text_of(*facts(1)[0])


@pytest.fixture
def copied(run, tmp_path):
    """A copy of the run, to be written into or spoiled."""
    return shutil.copytree(run, tmp_path / "run")


# evaluate


def test_an_evaluation_is_printed_and_written_into_the_run(call, copied):
    done = call("evaluate", copied)
    assert done.status == 0
    for told in ("fixed 1+0", "best of 20", "adaptive", "oracle of 20", "text→", "transfer"):
        assert told in done.out
    assert f"Report and ranks are in {copied / 'evaluation'}" in done.out
    tables = done.out.split("Report and ranks")[0]
    assert max(map(len, tables.splitlines())) <= 80
    assert "\x1b" not in done.out + done.err
    report = json.loads((copied / "evaluation" / "report.json").read_text())
    assert "adaptive" in {row["method"] for row in report["rows"]}
    before = contents(copied / "evaluation")
    assert call("evaluate", copied).out == done.out
    assert contents(copied / "evaluation") == before


def test_runs_are_evaluated_side_by_side(call, dataset, copied, tmp_path):
    rival = tmp_path / "metaembed"
    layout = "representation.embedder.layout=16+64"
    command = ["train", dataset.folder, "--recipe", "metaembed", "--output", rival, *SET]
    assert call(*command, "--set", layout).status == 0
    done = call("evaluate", copied, rival, "--output", tmp_path / "both")
    assert done.status == 0
    assert "MetaEmbed 1/1" in done.out
    assert "adaptive" in done.out
    assert not (copied / "evaluation").exists()
    assert (tmp_path / "both" / "report.html").exists()
    told = call("search", rival, "a text").error
    assert "metaembed" in told
    assert "run: metaembed" in call("inspect", rival).out


@pytest.fixture
def rival(corpus, tmp_path):
    """The corpus by encoders of one space."""
    return by_shared_encoders(read_manifest(corpus), tmp_path / "rival")


def test_baselines_stand_in_the_tables_of_a_run_and_are_compared_with_its_policy(
    call, copied, rival
):
    given = [
        part
        for kind in ("single", "maxsim", "pooled")
        for part in ("--baseline", f"{kind}={rival}")
    ]
    done = call("evaluate", copied, *given)
    assert done.status == 0
    rows = ["single vector (rival)", "MaxSim (rival)"]
    rows += [f"pooled to {count} (rival)" for count in (2, 4, 8)]
    report = json.loads((copied / "evaluation" / "report.json").read_text())
    assert [row["method"] for row in report["rows"]][-5:] == rows
    against = next(one for one in report["more"] if "against the others" in one["title"])
    assert [line[0] for line in against["lines"]][-5:] == rows
    for told in ("evaluating MaxSim (rival) text→image: 1,620 of 1,620", "pooling image (rival)"):
        assert told in done.err
    page = (copied / "evaluation" / "report.html").read_text()
    assert "pooled to 4 (rival): " in page
    assert "other encoders" in page
    assert max(map(len, done.out.split("Report and ranks")[0].splitlines())) <= 80


def test_baselines_are_evaluated_without_a_run(call, dataset, rival, tmp_path):
    command = ["evaluate", "--baseline", f"maxsim={rival}", "--data", dataset.folder]
    done = call(*command, "--output", tmp_path / "alone")
    assert done.status == 0
    assert "MaxSim" in done.out
    names = {path.name for path in (tmp_path / "alone").iterdir()}
    assert {"report.html", "report.md", "report.json", "evaluation.json"} <= names
    assert "need --data DATASET" in call(*command).error
    assert "need --data DATASET" in call(*command[:3], "--output", tmp_path / "alone").error
    assert "there is nothing to evaluate" in call("evaluate", "--data", dataset.folder).error


def test_a_baseline_that_cannot_be_compared_is_told_before_anything_is_evaluated(
    call, copied, dataset, rival, tmp_path
):
    others = tmp_path / "nowhere"
    for given, told in (
        (f"double={rival}", "there is no baseline 'double'; choose one of single, maxsim, pooled"),
        (f"single={dataset.folder}", "which are of two spaces"),
        (f"single={others}", f"{others} holds no encoded pairs"),
    ):
        done = call("evaluate", copied, "--baseline", given)
        assert told in done.error
        assert "evaluating" not in done.err
    assert not (copied / "evaluation").exists()


@pytest.mark.parametrize("command", [["evaluate"], ["search", "a text"]])
def test_what_is_no_run_and_no_dataset_is_refused(call, run, corpus, tmp_path, command):
    name, *query = command
    nowhere = tmp_path / "nowhere"
    assert "neither a run nor a model; correct the path" in call(name, nowhere, *query).error
    for given in (nowhere, corpus):
        told = call(name, run, *query, "--data", given).error
        assert f"{given} holds no encoded pairs" in told
    shutil.copytree(run / "model", tmp_path / "model")
    told = call(name, tmp_path / "model", *query).error
    assert "name the dataset with --data" in told


def test_a_dataset_without_queries_is_not_evaluated(call, copied, dataset, tmp_path):
    folder = shutil.copytree(dataset.folder, tmp_path / "features")
    pairs = folder / "pairs.jsonl"
    pairs.write_text(pairs.read_text().replace('"query"', '"train"'))
    told = call("evaluate", copied, "--data", folder).error
    assert "no pair of split 'query'" in told
    assert "split = query" in told


def test_features_of_another_encoder_or_width_are_refused(call, copied, tmp_path):
    files = {Modality(name): write_features(tmp_path / f"{name}.npz") for name in ("text", "image")}
    import_dataset(files, tmp_path / "features")
    before = contents(copied)
    for name, *query in (["evaluate"], ["search", "a text"]):
        told = call(name, copied, *query, "--data", tmp_path / "features").error
        assert "and needed is words-1; encode it with tests.pipeline.tiny:Words" in told
    assert contents(copied) == before


# search


def test_a_text_finds_pictures_with_its_capacity_and_what_matched(call, run):
    done = call("search", run, TEXT, "-k", 3)
    assert done.status == 0
    assert TEXT in done.out
    assert "selection" in done.out
    assert "g0-" in done.out
    assert len([line for line in done.out.splitlines() if "item-" in line]) == 3
    assert max(map(len, done.out.splitlines())) <= 80
    assert call("search", run, TEXT, "-k", 3).out == done.out


def test_a_picture_finds_texts_and_several_queries_are_answered_in_turn(call, corpus, run):
    picture = corpus.parent / "pictures/000.png"
    done = call("search", run, TEXT, "another text", "--file", picture, "-k", 1)
    places = [done.out.index(one) for one in (TEXT, "another text", picture.name)]
    assert places == sorted(places)
    assert done.out.count("rank") == 3


def test_paths_below_the_current_folder_are_short(call, corpus, run, monkeypatch):
    monkeypatch.chdir(corpus.parent)
    assert " pictures/" in call("search", run, TEXT).out


def test_an_explanation_names_odds_threshold_and_the_nearest_of_the_bank(call, run):
    done = call("search", run, TEXT, "--explain", "--threshold", "0.99")
    told = " ".join(done.out.split())
    assert "at 1+0: stop " in told
    assert "no expansion is above the threshold of 99%, so it stops" in told
    assert "nearest of the bank: item-" in told
    told = " ".join(call("search", run, TEXT, "--explain", "--threshold", "0").out.split())
    assert "above the threshold of 0%, so it goes on to" in told
    assert "8 vectors, selection 4+4" in told


def test_a_selection_or_a_capacity_replaces_the_policy(call, run):
    assert "4 vectors, selection 2+2" in call("search", run, TEXT, "--selection", "2+2").out
    assert "8 vectors, selection 4+4" in call("search", run, TEXT, "--capacity", "8").out
    assert "nearest" not in call("search", run, TEXT, "--capacity", "8", "--explain").out


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "there is no query; give a text in quotes, --file FILE, or --features"),
        (["a", "--selection", "9+9"], "asks for 9 vectors of group 0, which has 4"),
        (["a", "--capacity", "3"], "no selection has capacity 3; choose one of 1, 2, 4, 8"),
        (["a", "--capacity", "2", "--threshold", "1"], "exclude each other"),
        (["--file", "nowhere.png"], "nowhere.png cannot be read"),
        (["--file", "nowhere.wav"], "this model is for text and image, got audio"),
        (["--file", "nowhere.xyz"], "ends in .xyz, which tells no modality"),
    ],
)
def test_what_cannot_be_asked_is_told_before_the_gallery_is_embedded(call, run, given, told):
    done = call("search", run, *given)
    assert told in done.error
    assert "embedding" not in done.err


def test_a_corrupt_picture_as_query_is_refused(call, run, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert "broken.png" in call("search", run, "--file", tmp_path / "broken.png").error


def test_a_model_of_features_that_were_brought_along_is_asked_by_features(call, tmp_path):
    files = {Modality(name): write_features(tmp_path / f"{name}.npz") for name in ("text", "image")}
    import_dataset(files, tmp_path / "features")
    small = ["--set", "representation.training.batch_size=16"]
    run = tmp_path / "run"
    assert call("train", tmp_path / "features", "--output", run, *SET, *small).status == 0
    assert call("evaluate", run).status == 0
    told = call("search", run, "a text").error
    assert "no encoder is known" in told
    assert "--features text=FILE" in told
    few = write_features(tmp_path / "few.npz", ids=range(3))
    done = call("search", run, "--features", f"image={few}", "-k", 1)
    assert done.status == 0
    assert done.out.count("rank") == 3
    assert re.match(r"\s*0\n\d vectors?, selection \d\+\d ", done.out)
    done = call("search", run, "--features", f"image={few}", "-k", 1, "--capacity", 1)
    assert done.out.lstrip().startswith("0\n1 vector")
    for given, told in (
        (f"smell={files[Modality.TEXT]}", "there is no modality 'smell'"),
        (f"audio={files[Modality.TEXT]}", "this model is for text and image, got audio"),
        (f"text={tmp_path / 'nowhere.npz'}", "there is no file"),
        (f"text={write_features(tmp_path / 'wide.npz', width=9, states=9)}", "have width 9"),
        (f"text={write_features(tmp_path / 'nan.npz', spoiled='global_feature')}", "'7' holds NaN"),
        (f"text={stated(files[Modality.TEXT], tmp_path)}", "have fingerprint another"),
    ):
        assert told in call("search", run, "--features", given).error


def stated(file, folder):
    """The same features with a fingerprint of their encoder."""
    np.savez(folder / "stated.npz", **np.load(file), fingerprint=np.array("another"))
    return folder / "stated.npz"


# a spoiled model, met by a command


@pytest.mark.parametrize("part", ["embedder", "policy"])
def test_a_flipped_byte_in_a_model_is_refused_by_every_command(call, copied, part):
    path = copied / "model" / f"{part}.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    for command in (["evaluate", copied], ["search", copied, "a"], ["inspect", copied]):
        told = call(*command).error
        assert f"{part}.safetensors is not the file that was saved" in told
        assert "bring the folder back from a copy" in told


# inspect


def test_inspect_says_what_everything_is(call, corpus, dataset, run):
    for path, *expected in (
        (corpus, "manifest: 90 pairs (72 train, 18 query)"),
        (dataset.folder, "dataset: text→image, 72 to train on, 18 queries", "words-1"),
        (dataset.folder / "text", "features: 90 items, width 24, with hidden states"),
        (run, "run: laptop, method adaptive, seed 0", "model: laptop", "threshold text→image"),
        (run / "model", "model: laptop, text→image, by adaptiveembed", "adaptive mAP: "),
    ):
        done = call("inspect", path)
        assert (done.status, done.err) == (0, "")
        assert all(one in done.out for one in expected)


def test_inspect_checks_every_byte_where_asked_to(call, dataset, run, tmp_path):
    assert "the self-test comes out as it was stored" in call("inspect", run, "--check").out
    folder = shutil.copytree(dataset.folder, tmp_path / "features")
    assert call("inspect", folder, "--check").out.count("every byte is as it was written") == 2
    path = folder / "text" / "global_feature.f16"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    assert f"{folder / 'text'}" in call("inspect", folder, "--check").error


def test_inspect_refuses_what_is_not_ours(call, tmp_path):
    (tmp_path / "x.png").write_bytes(b"")
    for path in (tmp_path, tmp_path / "x.png"):
        assert (
            f"{path} is no manifest, recipe, dataset, run or model" in call("inspect", path).error
        )
    nowhere = tmp_path / "nowhere"
    assert f"there is no file or folder {nowhere}" in call("inspect", nowhere).error


# study


def test_a_study_goes_on_where_it_was_interrupted_and_shows_the_same_again(
    call, dataset, tmp_path, monkeypatch
):
    folder = tmp_path / "study"
    command = ["study", dataset.folder, "--output", folder, "--seeds", 1, *SET]
    command += ["--against", "without-mgcl"]
    with ctrl_c_in("evaluating", monkeypatch):
        done = call(*command)
    assert done.status == 130
    assert done.err.endswith("interrupted; what is done is kept, and the same command goes on\n")
    models = {path: path.read_bytes() for path in folder.rglob("model/config.json")}
    assert models
    done = call(*command)
    assert done.status == 0
    assert "the policy against all" in " ".join(done.out.split())
    assert all(path.read_bytes() == content for path, content in models.items())
    assert call(*command).out == done.out


def test_a_study_of_what_is_no_dataset_or_recipe_is_refused(call, dataset, tmp_path):
    told = call("study", tmp_path / "nowhere", "--output", tmp_path / "study").error
    assert "holds no encoded pairs" in told
    told = call("study", dataset.folder, "--output", tmp_path / "study", "--recipe", "x").error
    assert "there is no recipe 'x'" in told


def test_nothing_that_reads_a_dataset_changes_it(call, dataset, run):
    before = contents(dataset.folder)
    call("search", run, TEXT)
    call("inspect", dataset.folder, "--check")
    assert contents(dataset.folder) == before

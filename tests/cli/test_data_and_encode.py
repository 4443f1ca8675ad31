"""Data are checked, encoded, imported and exported by commands that can be given again."""

import shutil

import numpy as np
import pytest

from adaptiveembed.data.features import FeatureStore
from adaptiveembed.pipeline.dataset import open_dataset
from tests.cli.typing_ctrl_c import ctrl_c_in
from tests.kills.encoding import kill_and_compare
from tests.pipeline.tiny import ENCODERS, write_corpus

BY_TINY = [part for one in ENCODERS for part in ("--encoder", one)]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_scenes_are_written_with_the_next_command(call, tmp_path):
    done = call("data", "scenes", tmp_path / "scenes", "--items", 3)
    assert done.status == 0
    assert "drawing scenes: 3 of 3" in done.err
    manifest, command = done.out.removeprefix("The manifest is ").split(". Next: ")
    assert call("data", "check", manifest).out.startswith(f"{manifest}: 3 pairs (")
    assert command.startswith(f"adaptiveembed encode {manifest} ")


def test_scenes_are_not_written_among_other_things(call, tmp_path):
    (tmp_path / "thesis.txt").write_text("kept")
    told = call("data", "scenes", tmp_path, "--items", 3).error
    assert "holds something other than scenes (thesis.txt); choose a new or an empty" in told
    assert contents(tmp_path) == {tmp_path / "thesis.txt": b"kept"}


def test_a_manifest_in_order_is_counted(call, corpus):
    done = call("data", "check", corpus)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{corpus}: 90 pairs (72 train, 18 query), all in order\n"


def test_a_manifest_is_encoded_once_and_the_next_command_is_told(call, corpus, tmp_path):
    folder = tmp_path / "features"
    command = ["encode", corpus, "--output", folder, *BY_TINY]
    first, again = call(*command), call(*command)
    assert (first.status, again.status) == (0, 0)
    assert "text: 90 encoded, 0 stored before, 0 failed\nimage: 90 encoded" in first.out
    assert "text: 0 encoded, 90 stored before, 0 failed\nimage: 0 encoded, 90" in again.out
    assert first.out.endswith(
        f"The dataset is in {folder}. Next: adaptiveembed train {folder} --output RUN\n"
    )
    assert "encoding image: 90 of 90 (failed 0" in first.err
    assert "\x1b" not in first.out + first.err
    assert len(open_dataset(folder).pairs) == 90


def test_the_built_in_encoder_is_the_default(call, tmp_path):
    manifest = write_corpus(tmp_path / "own", 4)
    assert call("encode", manifest, "--output", tmp_path / "features").status == 0
    names = {one.name for one in open_dataset(tmp_path / "features").encoders.values()}
    assert names == {"training-free"}


def test_ctrl_c_keeps_what_is_encoded_and_the_same_command_goes_on(
    call, corpus, dataset, tmp_path, monkeypatch
):
    folder = tmp_path / "features"
    command = ["encode", corpus, "--output", folder, "--batch-size", 20, *BY_TINY]
    with ctrl_c_in("encoding image", monkeypatch):
        done = call(*command)
    assert done.status == 130
    assert done.err.endswith(
        "adaptiveembed: interrupted; what is encoded is kept, and the same command goes on\n"
    )
    assert "Traceback" not in done.err
    again = call(*command)
    assert "image: 70 encoded, 20 stored before, 0 failed" in again.out
    found, whole = open_dataset(folder).pairs, dataset.pairs
    np.testing.assert_array_equal(found.target.global_features(), whole.target.global_features())


def test_features_go_out_and_come_in_again(call, dataset, tmp_path):
    files = {name: tmp_path / f"{name}.npz" for name in ("text", "image")}
    for name, file in files.items():
        done = call("data", "export", dataset.folder, name, file)
        assert done.out == f"90 items are in {file}\n"
    given = [f"{name}={file}" for name, file in files.items()]
    folder = tmp_path / "features"
    done = call("data", "import", folder, *given, "--pairs", dataset.folder / "pairs.jsonl")
    assert done.status == 0
    assert done.out == (
        f"The dataset is in {folder}: text→image, 72 to train on, 18 queries.\n"
        f"Next: adaptiveembed train {folder} --output RUN\n"
    )
    found = open_dataset(folder)
    assert found.pairs.ids == dataset.pairs.ids
    for name in files:
        one, other = (FeatureStore.open(each / name) for each in (folder, dataset.folder))
        np.testing.assert_array_equal(one.global_features(), other.global_features())
    before = contents(tmp_path)
    assert "give a new folder" in call("data", "import", folder, *given).error
    assert "exists" in call("data", "export", dataset.folder, "text", files["text"]).error
    assert contents(tmp_path) == before


# what is wrong with media and manifests: told, and nothing lost


def test_a_manifest_that_is_not_there_is_named(call, tmp_path):
    for command in (["data", "check"], ["encode", "--output", tmp_path / "f"]):
        told = call(*command, tmp_path / "nowhere.csv").error
        assert f"{tmp_path / 'nowhere.csv'}" in told
    assert list(tmp_path.iterdir()) == []


def lines_of(manifest):
    return manifest.read_text().splitlines()


def write_lines(manifest, lines):
    manifest.write_text("\n".join(lines) + "\n")


WRONG = {
    "duplicate id": (
        lambda lines: [*lines, lines[2]],
        ["line 8: id 'item-001' stands in line 3 already"],
    ),
    "no text": (
        lambda lines: [lines[0], "only,,pictures/000.png,train", *lines[1:]],
        ["line 2: text is missing"],
    ),
    "no medium": (
        lambda lines: [lines[0], "only,a word,,train", *lines[1:]],
        ["line 2: media is missing"],
    ),
    "no column": (
        lambda lines: [line.replace("media", "file") for line in lines],
        ["there is no column media; did you mean file? rename it to media"],
    ),
    "several": (
        lambda lines: [*lines, "a,,x.png,train", lines[1]],
        ["line 8: text is missing", "line 9: id 'item-000' stands in line 2 already"],
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_manifest_is_refused_with_every_line_before_anything_is_written(
    call, tmp_path, wrong
):
    change, problems = WRONG[wrong]
    manifest = write_corpus(tmp_path / "own", 6)
    write_lines(manifest, change(lines_of(manifest)))
    for command in (["data", "check"], ["encode", "--output", tmp_path / "features"]):
        told = call(*command, manifest).error
        assert "correct" in told
        assert all(problem in told for problem in problems)
    assert not (tmp_path / "features").exists()


def test_media_that_are_not_there_are_listed_by_the_check(call, tmp_path):
    manifest = write_corpus(tmp_path / "own", 6)
    shutil.rmtree(manifest.parent / "pictures")
    told = call("data", "check", manifest).error
    assert told.startswith("6 media are not where they were looked for; ")
    assert f"  item-000: {manifest.parent / 'pictures' / '000.png'}\n" in told


def spoil(manifest):
    """A corrupt picture, and one that is not there."""
    (manifest.parent / "pictures/003.png").write_bytes(b"no picture at all")
    (manifest.parent / "pictures/001.png").unlink()


def test_broken_media_are_listed_and_left_out(call, tmp_path):
    manifest = write_corpus(tmp_path / "own", 6)
    spoil(manifest)
    done = call("encode", manifest, "--output", tmp_path / "features", *BY_TINY)
    assert done.status == 0
    assert "image: 4 encoded, 0 stored before, 2 failed" in done.out
    lines = {line.split(":")[0].strip(): line for line in done.out.splitlines() if "item-" in line}
    assert "No such file" in lines["item-001"]
    assert "003.png" in lines["item-003"]
    assert open_dataset(tmp_path / "features").left_out == ("item-001", "item-003")
    told = call("inspect", tmp_path / "features").out
    assert "2 pairs are left out, because a side of them is not encoded" in told


def test_strict_ends_at_broken_media_and_keeps_what_was_encoded(call, tmp_path):
    manifest = write_corpus(tmp_path / "own", 6)
    spoil(manifest)
    command = ["encode", manifest, "--output", tmp_path / "features", *BY_TINY]
    told = call(*command, "--strict", "--batch-size", 1).error
    assert "item 'item-001'" in told
    assert "text: 0 encoded, 6 stored before" in call(*command).out


def test_texts_that_are_all_the_same_are_refused(call, tmp_path):
    manifest = write_corpus(tmp_path / "own", 6)
    rows = [line.split(",") for line in lines_of(manifest)]
    write_lines(manifest, [",".join([row[0], "a cat", *row[2:]]) for row in rows[1:]])
    write_lines(manifest, ["id,text,media,split", *lines_of(manifest)])
    for command in (["data", "check"], ["encode", "--output", tmp_path / "features"]):
        told = call(*command, manifest).error
        assert told.startswith("all 6 texts are 'a cat', and nothing can be learned")
    assert not (tmp_path / "features").exists()


@pytest.mark.parametrize(
    ("encoder", "told"),
    [
        ("video=training-free", "the manifest is of text and image; name one of these"),
        ("text=nowhere:Thing", "nowhere"),
        ("text=tests.pipeline.tiny:Nothing", "Nothing"),
        ("text=tests.pipeline.tiny:Cells", "text"),
    ],
)
def test_an_encoder_that_cannot_be_is_refused_before_anything_is_written(
    call, corpus, tmp_path, encoder, told
):
    done = call("encode", corpus, "--output", tmp_path / "features", "--encoder", encoder)
    assert told in done.error
    assert not (tmp_path / "features").exists()


def write_features(file, *, spoiled=None, width=8, states=8, ids=range(40)):
    ids = [f"{one}" for one in ids]
    generator = np.random.default_rng(len(file.stem))
    arrays = {
        "ids": np.array(ids),
        "global_feature": generator.normal(size=(len(ids), width)).astype(np.float32),
        "hidden_states": generator.normal(size=(len(ids), 3, states)).astype(np.float32),
        "mask": np.ones((len(ids), 3), bool),
    }
    if spoiled is not None:
        arrays[spoiled][7] = np.nan
    np.savez(file, **arrays)
    return file


BAD_FEATURES = {
    "NaN features": ({"spoiled": "global_feature"}, "global_feature of item '7' holds NaN"),
    "NaN states": ({"spoiled": "hidden_states"}, "hidden_states of item '7' hold"),
    "widths": ({"states": 5}, "hidden_states"),
    "duplicate ids": ({"ids": [*range(39), 3]}, "'3'"),
}


@pytest.mark.parametrize("wrong", BAD_FEATURES)
def test_wrong_features_are_refused_and_leave_nothing(call, tmp_path, wrong):
    options, told = BAD_FEATURES[wrong]
    texts = write_features(tmp_path / "texts.npz")
    images = write_features(tmp_path / "images.npz", **options)
    before = contents(tmp_path)
    done = call("data", "import", tmp_path / "features", f"text={texts}", f"image={images}")
    assert told in done.error
    assert "images.npz" in done.error
    assert contents(tmp_path) == before
    assert not (tmp_path / "features").exists()


def test_files_that_are_none_are_refused(call, tmp_path):
    texts = write_features(tmp_path / "texts.npz")
    for name, file, told in (
        ("image", tmp_path / "nowhere.npz", "nowhere.npz"),
        ("smell", texts, "there is no modality 'smell'; choose one of text, image, video, audio"),
        ("text", texts, "features of text were given; give a file for each of two modalities"),
    ):
        done = call("data", "import", tmp_path / "features", f"text={texts}", f"{name}={file}")
        assert told in done.error
    assert not (tmp_path / "features").exists()
    assert (
        "there is no modality 'smell'" in call("data", "export", tmp_path, "smell", "x.npz").error
    )


def test_what_is_killed_while_it_encodes_ends_as_if_it_had_not_been(tmp_path):
    """The long form is ``python -m tests.kills.encoding``, of more pictures and kills."""
    *_, killed, summary = kill_and_compare(tmp_path, pictures=140, kills=1, seed=0)
    assert killed.startswith("kill 1: ")
    assert killed.endswith(" of 280 items there")
    assert not killed.startswith("kill 1: 280")
    assert summary == "all 140 pairs are equal, bit for bit"

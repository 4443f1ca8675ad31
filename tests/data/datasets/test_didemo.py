"""Descriptions are joined by video, and a video is what its file name says without an ending."""

import json

import pytest

from adaptiveembed.data.datasets import Benchmark, build, write
from adaptiveembed.errors import ManifestError
from tests.data.datasets.originals import moment, rows, write_didemo

QUERIES = [
    (
        "77@N00_5105_77ea",
        "the man waves the camera pans The man is gone.",
        "test/77@N00_5105_77ea.mp4",
        "query",
        {"descriptions": 3},
    ),
    ("12@N01_333_bb", "a bare full stop", "z/12@N01_333_bb.mp4", "query", {"descriptions": 1}),
    ("55@N02_4_cc", "three", "55@N02_4_cc.MPG", "query", {"descriptions": 1}),
    ("66@N03_5_dd", "copied", "a/66@N03_5_dd.mp4", "query", {"descriptions": 1}),
]
"""Written down by hand: the named file first, else the first video of the stem."""


def built(tmp_path):
    return build(Benchmark.DIDEMO, tmp_path / "data", tmp_path / "videos")


def test_didemo_gives_one_pair_for_each_stem(tmp_path):
    write_didemo(tmp_path / "data", tmp_path / "videos")
    write(built(tmp_path), tmp_path / "didemo.jsonl")
    found = rows(tmp_path / "didemo.jsonl", tmp_path / "videos")
    train = [
        (
            f"1@N0{n}_51{n}_a{n}",
            f"dog {n} barks dog {n} sleeps",
            f"train/1@N0{n}_51{n}_a{n}.avi",
            "train",
            {"descriptions": 2},
        )
        for n in range(9)
    ]
    assert found == [*train, *QUERIES]


def test_names_are_counted_beside_videos(tmp_path):
    write_didemo(tmp_path / "data", tmp_path / "videos")
    assert built(tmp_path).origin.counts == {
        "descriptions": {"train": 18, "query": 6},
        "file names": {"train": 9, "query": 5},
    }


def test_a_file_without_the_ending_of_a_video_is_no_medium_and_named(tmp_path):
    """Nobody could encode it: how a name ends is all that tells its modality."""
    write_didemo(tmp_path / "data", tmp_path / "videos")
    (tmp_path / "videos/z/12@N01_333_bb.mp4").unlink()
    (absent,) = built(tmp_path).without_media
    assert absent.id == "12@N01_333_bb"
    assert absent.why == (
        f"{tmp_path}/videos/**/12@N01_333_bb.*; test/12@N01_333_bb. is there: if it is "
        f"a video, let its name say so"
    )


def test_every_entry_that_is_wrong_is_named(tmp_path):
    write_didemo(tmp_path / "data", tmp_path / "videos")
    path = tmp_path / "data/test_data.json"
    good = moment(1, "9@N_9_x.mov", "fine")
    rows_of = [
        good,
        good | {"video": "."},
        good | {"video": "a/9@N_9_x.mov"},
        good | {"description": None},
        {"video": "9@N_9_x.mov"},
        "9@N_9_x.mov",
        moment(1, "1@N03_513_a3.mp4", "of the training split, by another name"),
    ]
    path.write_text(json.dumps(rows_of))
    with pytest.raises(ManifestError) as caught:
        built(tmp_path)
    assert str(caught.value).split("\n  ") == [
        f"{path} has 6 problems; take the publisher's file again:",
        "entry 2: video is '.', and the name of a file is needed",
        "entry 3: video is 'a/9@N_9_x.mov', and the name of a file is needed",
        "entry 4: description is None, and a text in Unicode is needed",
        "entry 5: description is missing",
        "entry 6: it is '9@N_9_x.mov', and an object with video, description is needed",
        "entry 7: video '1@N03_513_a3' stands in the file of another split already",
    ]
    path.write_text("{}")
    with pytest.raises(ManifestError, match="it holds a dict, and a list of moments is needed"):
        built(tmp_path)

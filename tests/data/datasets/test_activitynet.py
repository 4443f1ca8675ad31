"""Sentences about events are joined in the order of the rule, whatever their times say."""

import json

import pytest

from adaptiveembed.data.datasets import Benchmark, BuildRules, EventOrder, build, write
from adaptiveembed.errors import ManifestError
from tests.data.datasets.originals import rows, write_activitynet

ORDERED = {
    EventOrder.START: (
        "A young woman is seen standing in a room. The girl dances around the room. "
        "She continues dancing. It ends"
    ),
    EventOrder.FILE: (
        "The girl dances around the room. A young woman is seen standing in a room. "
        "She continues dancing. It ends"
    ),
}
MEDIA = {
    "v_QOlSCBRmfWY": "v1-3/train_val/v_QOlSCBRmfWY.mkv",
    "v_-query_1": "v1-2/val/v_-query_1.webm",
    "v_uqiMw7tQ1Cc": "v1-2/val/v_uqiMw7tQ1Cc.MP4",
}


def twin(videos, split, order):
    """Row by row; the next sentence is the one with the smallest start that is left."""
    for name, values in videos.items():
        left = list(zip(values["timestamps"], values["sentences"], strict=True))
        said = []
        while left:
            earliest = min(start for (start, _), _ in left)
            place = next(
                place
                for place, ((start, _), _) in enumerate(left)
                if order is EventOrder.FILE or start == earliest
            )
            said.append(left.pop(place)[1].strip())
        metadata = {"duration": values["duration"], "sentences": len(values["sentences"])}
        path = MEDIA.get(name, f"v1-2/train/{name}.mp4")
        yield name, " ".join(filter(None, said)), path, split, metadata


def built(tmp_path, order=EventOrder.START):
    rules = BuildRules(event_order=order)
    return build(Benchmark.ACTIVITYNET, tmp_path / "captions", tmp_path / "videos", rules)


@pytest.mark.parametrize("order", EventOrder)
def test_activitynet_gives_the_manifest_of_its_twin_in_either_order(tmp_path, order):
    train, queries = write_activitynet(tmp_path / "captions", tmp_path / "videos")
    write(built(tmp_path, order), tmp_path / "activitynet.jsonl")
    found = rows(tmp_path / "activitynet.jsonl", tmp_path / "videos")
    assert found == [*twin(train, "train", order), *twin(queries, "query", order)]
    assert {row[0]: row[1] for row in found}["v_QOlSCBRmfWY"] == ORDERED[order]
    assert built(tmp_path, order).origin.rules == {"event_order": order.value}


def test_what_is_odd_is_counted_and_kept(tmp_path):
    write_activitynet(tmp_path / "captions", tmp_path / "videos")
    assert built(tmp_path).origin.counts == {
        "sentences": {"train": 45, "query": 3},
        "videos with sentences out of order": {"train": 1, "query": 1},
        "events that end before they start": {"train": 1, "query": 0},
        "events that end behind their video": {"train": 1, "query": 0},
    }


def told(tmp_path, content):
    """What is said of a file of queries that holds this."""
    write_activitynet(tmp_path / "captions", tmp_path / "videos")
    path = tmp_path / "captions/val_1.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(ManifestError) as caught:
        built(tmp_path)
    first, *others = str(caught.value).split("\n  ")
    assert first.startswith(f"{path} has ")
    return others


def test_every_video_that_is_wrong_is_named(tmp_path):
    good = {"duration": 5, "timestamps": [[0, 1]], "sentences": ["A."]}
    videos = {
        "v_1": good,
        "../v": good,
        "v_2": good | {"duration": "5"},
        "v_3": good | {"timestamps": [[0, 1, 2]]},
        "v_4": good | {"timestamps": [[True, 1]]},
        "v_5": good | {"sentences": ["A.", "B."]},
        "v_6": good | {"sentences": [3]},
        "v_7": {"duration": 5},
        "v_8": [],
    }
    assert told(tmp_path, videos) == [
        "video 2: '../v' cannot name a file",
        "video 3: v_2: duration is '5', and a number is needed",
        "video 4: v_3: timestamps is [[0, 1, 2]], and a list of pairs of numbers is needed",
        "video 5: v_4: timestamps is [[True, 1]], and a list of pairs of numbers is needed",
        "video 6: v_5: it has 1 timestamps and 2 sentences",
        "video 7: v_6: sentences is [3], and a list of texts in Unicode is needed",
        "video 8: v_7: timestamps is missing",
        "video 9: v_8: it is [], and an object with duration, timestamps, sentences is needed",
    ]


def test_a_video_of_both_splits_is_refused(tmp_path):
    good = {"duration": 5, "timestamps": [[0, 1]], "sentences": ["A."]}
    train = tmp_path / "captions/train.json"
    assert told(tmp_path, {"v_plain03": good}) == [f"video 1: v_plain03 stands in {train} already"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[]", "it holds a list, and an object of videos is needed"),
        (b'{"v_1": {', "it is not JSON: Expecting property name enclosed in double quotes"),
        (b'{"v_1": 1, "v_1": 2}', "it is not JSON: key 'v_1' stands more than once in one object"),
        (b'{"v_1": {"duration": NaN}}', "it is not JSON: JSON has no NaN"),
        (b'{"\xff"}', "byte 3 is not UTF-8"),
        (b"[" * 100_000, "it is not JSON: "),
    ],
)
def test_a_file_that_is_something_else_is_told(tmp_path, content, expected):
    (found,) = told(tmp_path, content)
    assert found.startswith(expected)

"""Captions become one text for each recording; the split is a seeded shuffle, or a list."""

import random

import pytest

from adaptiveembed.data.datasets import Benchmark, BuildRules, build, write
from adaptiveembed.data.datasets.items import Split
from adaptiveembed.errors import ManifestError, SettingError
from tests.data.datasets.originals import rows, write_macs


def built(tmp_path, rules=None):
    return build(Benchmark.MACS, tmp_path / "macs", tmp_path / "tau", rules)


def expected(recordings, queries):
    """The rows of both splits, the training split first, each in the order of the file."""
    made = [
        (
            each["filename"],
            " ".join(one["sentence"].strip() for one in each["annotations"]),
            f"audio/{each['filename']}",
            "query" if each["filename"] in queries else "train",
            {"captions": len(each["annotations"])},
        )
        for each in recordings
    ]
    return [row for split in ("train", "query") for row in made if row[3] == split]


def test_macs_gives_one_pair_for_each_recording_and_a_tenth_of_queries(tmp_path):
    recordings = write_macs(tmp_path / "macs", tmp_path / "tau")
    write(built(tmp_path), tmp_path / "macs.jsonl")
    found = rows(tmp_path / "macs.jsonl", tmp_path / "tau")
    order = sorted(each["filename"] for each in recordings)
    random.Random(1234).shuffle(order)
    assert found == expected(recordings, order[:2])
    texts = {row[0]: row[1] for row in found}
    assert texts["park-bern-1-1-a.wav"] == "yes 12:30"
    assert texts["park-barcelona-1-1-a.wav"] == "steps 1 0 steps 1 1 steps 1 2"


def test_3930_recordings_are_split_as_in_the_paper(tmp_path):
    (tmp_path / "macs").mkdir()
    lines = (f"- filename: a-{n}.wav\n  annotations:\n  - sentence: s {n}\n" for n in range(3_930))
    (tmp_path / "macs/MACS.yaml").write_text(f"files:\n{''.join(lines)}")
    (tmp_path / "tau/audio").mkdir(parents=True)
    (tmp_path / "tau/audio/a-0.wav").touch()
    found = built(tmp_path)
    assert [found.annotated(split) for split in Split] == [3_537, 393]


def test_the_shuffle_depends_on_the_seed_and_on_names_alone(tmp_path):
    recordings = write_macs(tmp_path / "macs", tmp_path / "tau")

    def queries(rules=None):
        return {pair.id for pair in built(tmp_path, rules).manifest.split("query")}

    before = queries()
    assert any(queries(BuildRules(seed=seed)) != before for seed in range(3))
    path = tmp_path / "macs/MACS.yaml"
    head, *entries = path.read_text().split("- filename:")
    path.write_text("- filename:".join([head, *reversed(entries)]))
    gone = next(name for name in before)
    (tmp_path / "tau/audio" / gone).unlink()
    assert queries() == before - {gone}
    assert len(recordings) == 25


def test_a_list_decides_in_place_of_the_shuffle(tmp_path):
    recordings = write_macs(tmp_path / "macs", tmp_path / "tau")
    names = ["park-oslo-7-7-a.wav", "park-bern-1-1-a.wav", "airport-oslo-15-15-a.wav"]
    (tmp_path / "mine.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*names, "", ""]).encode())
    found = built(tmp_path, BuildRules(query_list=tmp_path / "mine.txt"))
    write(found, tmp_path / "macs.jsonl")
    assert rows(tmp_path / "macs.jsonl", tmp_path / "tau") == expected(recordings, names)
    assert found.origin.rules == {"split": "list", "query_list": "mine.txt"}
    assert found.origin.files[1] == tmp_path / "mine.txt"
    assert built(tmp_path).origin.rules == {"split": "shuffle of the sorted names", "seed": 1234}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"park-oslo-7-7-a.wav\nelse.wav\n", "line 2: 'else.wav' is no recording of MACS"),
        (b"park-oslo-7-7-a.wav\n" * 2, "line 2: 'park-oslo-7-7-a.wav' stands in line 1 already"),
        (b"\n", "it names no recording; write one name in each line"),
        (b"\xff\n", "is not UTF-8"),
    ],
)
def test_a_list_with_anything_wrong_in_it_is_refused(tmp_path, content, expected):
    write_macs(tmp_path / "macs", tmp_path / "tau")
    (tmp_path / "mine.txt").write_bytes(content)
    with pytest.raises(ManifestError, match=expected) as caught:
        built(tmp_path, BuildRules(query_list=tmp_path / "mine.txt"))
    assert str(tmp_path / "mine.txt") in str(caught.value)
    assert "publisher" not in str(caught.value)


def test_a_list_that_is_not_there_is_named(tmp_path):
    write_macs(tmp_path / "macs", tmp_path / "tau")
    with pytest.raises(ManifestError, match=r"there is no file .*mine.txt"):
        built(tmp_path, BuildRules(query_list=tmp_path / "mine.txt"))


def test_a_seed_below_zero_is_refused():
    with pytest.raises(SettingError, match="seed is -1; give a whole number from 0"):
        BuildRules(seed=-1)


def test_every_recording_that_is_wrong_is_named_with_its_line(tmp_path):
    write_macs(tmp_path / "macs", tmp_path / "tau")
    path = tmp_path / "macs/MACS.yaml"
    path.write_text(
        "files:\n"
        "- filename: a.wav\n"
        "  annotations:\n"
        "  - sentence: fine\n"
        "- filename: ../b.wav\n"
        "  annotations: []\n"
        "- filename: c.wav\n"
        "  annotations:\n"
        "  - sentence: [a]\n"
        "- filename: d.wav\n"
        "- e.wav\n"
        "- filename: a.wav\n"
        "  annotations: []\n"
    )
    with pytest.raises(ManifestError) as caught:
        built(tmp_path)
    assert str(caught.value).split("\n  ") == [
        f"{path} has 5 problems; take the publisher's file again:",
        "line 5: filename is '../b.wav', and the name of a file is needed",
        "line 7: c.wav, annotation 1: sentence is ['a'], and a text in Unicode is needed",
        "line 10: annotations is missing",
        "line 11: it is 'e.wav', and an object with filename, annotations is needed",
        "line 12: 'a.wav' stands in line 2 already",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("files: [", "it is not YAML: while parsing"),
        ("- a\n", "it has no list named files with recordings in it"),
        ("files: []\n", "it has no list named files with recordings in it"),
        ("", "it has no list named files with recordings in it"),
        ("files: !!python/object/apply:os.system [exit]\n", "line 1: it is 'exit', and an object"),
    ],
)
def test_a_file_that_is_something_else_is_told_and_nothing_of_it_runs(tmp_path, content, expected):
    write_macs(tmp_path / "macs", tmp_path / "tau")
    (tmp_path / "macs/MACS.yaml").write_text(content)
    with pytest.raises(ManifestError, match=expected):
        built(tmp_path)

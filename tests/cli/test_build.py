"""Benchmarks are built by one command, whose help says which files it needs."""

import pytest

from adaptiveembed.cli.building import EVENT_ORDERS, NARRATED, NARRATIVES, SUMMARIES
from adaptiveembed.data.datasets import FACTS, Benchmark, EventOrder, NarrativeChoice
from adaptiveembed.data.pairs import read_manifest
from tests.data.datasets.originals import write_activitynet, write_coco, write_macs


def test_the_command_knows_every_benchmark_and_every_rule():
    """It spells them itself, for help that imports nothing heavy."""
    assert list(SUMMARIES) == [each.value for each in Benchmark]
    assert list(NARRATED) == [
        each.value for each, facts in FACTS.items() if "narratives" in facts.known
    ]
    assert list(NARRATIVES) == [each.value for each in NarrativeChoice]
    assert list(EVENT_ORDERS) == [each.value for each in EventOrder]


@pytest.mark.parametrize("name", SUMMARIES)
def test_help_teaches_files_places_and_publishers(call, name):
    done = call("data", "build", name, "--help")
    assert done.status == 0
    assert max(map(len, done.out.splitlines())) <= 80
    facts = FACTS[Benchmark(name)]
    told = " ".join(done.out.split())
    for alternatives in facts.files.values():
        assert all(names[0] in told for names in alternatives)
    for words in (facts.title, facts.annotations_from, facts.media_from, facts.called):
        assert words in told
    assert all(remark in told for remark in facts.remarks)
    for place in facts.media.values():
        folder = place.partition("{")[0].removeprefix("**/")
        assert f"{folder}ID" in told


def test_a_benchmark_is_built_with_its_counts_and_the_next_command(call, tmp_path):
    write_coco(tmp_path / "narratives", tmp_path / "coco")
    (tmp_path / "coco/train2017/000000000107.jpg").unlink()
    output = tmp_path / "made.jsonl"
    command = ["data", "build", "coco", "--annotations", tmp_path / "narratives"]
    command += ["--media", tmp_path / "coco", "--output", output]
    done = call(*command, "--narrative", "concat")
    assert done.status == 0
    assert "reading annotations: 5 of 5" in done.err
    lines = done.out.splitlines()
    assert lines[:2] == [
        "1 media are not where they were looked for:",
        f"  107: {tmp_path / 'coco/train2017/000000000107.jpg'}",
    ]
    assert lines[3].split() == ["train", "16", "1", "15", "118,287", "-118,272"]
    assert lines[-2:] == [
        f"The manifest is {output}, how it was made is in {tmp_path / 'made.build.json'}.",
        f"Next: adaptiveembed encode {output} --output features",
    ]
    assert (
        call("data", "check", output).out
        == f"{output}: 17 pairs (15 train, 2 query), all in order\n"
    )
    assert "1 media are not where" in call(*command, "--strict").error


def test_choices_reach_the_manifest(call, tmp_path):
    write_activitynet(tmp_path / "captions", tmp_path / "videos")
    command = ["data", "build", "activitynet", "--annotations", tmp_path / "captions"]
    command += ["--media", tmp_path / "videos", "--output", tmp_path / "made.jsonl"]
    assert call(*command, "--event-order", "file").status == 0
    texts = {pair.id: pair.text for pair in read_manifest(tmp_path / "made.jsonl")}
    assert texts["v_-query_1"] == "B. A."


def test_macs_takes_a_seed_or_a_list_and_not_both(call, tmp_path):
    write_macs(tmp_path / "macs", tmp_path / "tau")
    (tmp_path / "mine.txt").write_text("park-oslo-7-7-a.wav\n")
    command = ["data", "build", "macs", "--annotations", tmp_path / "macs"]
    command += ["--media", tmp_path / "tau", "--output", tmp_path / "made.jsonl"]
    done = call(*command, "--seed", 1, "--query-list", tmp_path / "mine.txt")
    assert done.status == 2
    assert "not allowed with argument" in done.err
    assert call(*command, "--query-list", tmp_path / "mine.txt").status == 0
    queries = read_manifest(tmp_path / "made.jsonl").split("query")
    assert queries.ids == ("park-oslo-7-7-a.wav",)


def test_a_rule_of_another_benchmark_is_refused(call, tmp_path):
    command = ["data", "build", "didemo", "--annotations", tmp_path, "--media", tmp_path]
    done = call(*command, "--output", tmp_path / "made.jsonl", "--narrative", "first")
    assert done.status == 2

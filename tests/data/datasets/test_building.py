"""What is missing is named, what was chosen is recorded, and counts stand beside the paper's."""

import dataclasses
import json

import pytest

from adaptiveembed.data.datasets import (
    FACTS,
    Benchmark,
    BuildRules,
    NarrativeChoice,
    build,
    compared,
    write,
)
from adaptiveembed.data.datasets.building import record_path, told_absent
from adaptiveembed.data.datasets.items import Split
from adaptiveembed.data.pairs import missing_media, read_manifest
from adaptiveembed.errors import ManifestError
from tests.data.datasets.originals import (
    touch,
    write_activitynet,
    write_clotho,
    write_coco,
    write_didemo,
    write_macs,
)

WRITERS = {
    Benchmark.COCO: write_coco,
    Benchmark.ACTIVITYNET: write_activitynet,
    Benchmark.DIDEMO: write_didemo,
    Benchmark.CLOTHO: write_clotho,
    Benchmark.MACS: write_macs,
}
PAPER = """
COCO                 & 118,287 & 5,000  & 123,287
Flickr30K            & 29,783  & 1,000  & 30,783
ADE20K               & 20,210  & 2,000  & 22,210
OpenImages           & 504,413 & 41,620 & 546,033
ActivityNet Captions & 10,009  & 4,917  & 14,926
DiDeMo               & 8,395   & 1,004  & 9,399
Clotho               & 3,839   & 1,045  & 4,884
MACS                 & 3,537   & 393    & 3,930
"""
"""The paper's table of datasets: training pairs, queries, gallery."""


def written(tmp_path, benchmark=Benchmark.COCO):
    WRITERS[benchmark](tmp_path / "annotations", tmp_path / "media")


def built(tmp_path, benchmark=Benchmark.COCO, **options):
    return build(benchmark, tmp_path / "annotations", tmp_path / "media", **options)


# --- Facts ----------------------------------------------------------------------------------------


def test_the_facts_hold_the_counts_of_the_papers_table():
    lines = [line.replace(",", "").split("&") for line in PAPER.strip().splitlines()]
    table = {name.strip(): [int(number) for number in numbers] for name, *numbers in lines}
    assert {facts.title: [*facts.paper.values()] for facts in FACTS.values()} == {
        name: numbers[:2] for name, numbers in table.items()
    }
    assert all(train + query == gallery for train, query, gallery in table.values())
    assert list(FACTS) == list(Benchmark)


@pytest.mark.parametrize("benchmark", WRITERS)
def test_what_others_counted_is_counted_by_the_reader_under_the_same_name(tmp_path, benchmark):
    written(tmp_path, benchmark)
    assert set(FACTS[benchmark].known) <= set(built(tmp_path, benchmark).origin.counts)


# --- Missing media --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("benchmark", "name", "item", "looked_for"),
    [
        (Benchmark.COCO, "train2017/000000000107.jpg", "107", "train2017/000000000107.jpg"),
        (Benchmark.DIDEMO, "55@N02_4_cc.MPG", "55@N02_4_cc", "**/55@N02_4_cc.*"),
        (Benchmark.CLOTHO, "evaluation/Sound 3.wav", "evaluation/Sound 3.wav", None),
        (Benchmark.MACS, "audio/park-bern-1-1-a.wav", "park-bern-1-1-a.wav", None),
    ],
)
def test_a_missing_medium_is_named_and_left_out_or_refused(
    tmp_path, benchmark, name, item, looked_for
):
    written(tmp_path, benchmark)
    whole = built(tmp_path, benchmark, strict=True)
    (tmp_path / "media" / name).unlink()
    less = built(tmp_path, benchmark)
    assert set(whole.manifest.ids) - set(less.manifest.ids) == {item}
    told = [
        "1 media are not where they were looked for:",
        f"  {item}: {tmp_path / 'media' / (looked_for or name)}",
    ]
    assert told_absent(less) == told
    with pytest.raises(ManifestError) as caught:
        built(tmp_path, benchmark, strict=True)
    assert str(caught.value) == "\n".join(told)


def test_folders_and_links_to_nothing_are_no_media(tmp_path):
    written(tmp_path, Benchmark.ACTIVITYNET)
    for place, name in enumerate(("v_plain00", "v_plain01")):
        path = tmp_path / f"media/v1-2/train/{name}.mp4"
        path.unlink()
        path.mkdir() if place else path.symlink_to(tmp_path / "gone.mp4")
    found = built(tmp_path, Benchmark.ACTIVITYNET)
    assert [each.id for each in found.without_media] == ["v_plain00", "v_plain01"]


def test_many_missing_media_are_cut_and_counted(tmp_path):
    written(tmp_path, Benchmark.CLOTHO)
    for path in (tmp_path / "media/development").iterdir():
        path.unlink()
    told = told_absent(built(tmp_path, Benchmark.CLOTHO))
    assert (told[0], len(told)) == ("27 media are not where they were looked for:", 22)
    assert told[-1] == "  and 7 more"


def test_no_media_at_all_are_refused_with_the_paths_looked_for(tmp_path):
    written(tmp_path)
    with pytest.raises(ManifestError, match=r"18 media are not .*\n  100: .*000000000100\.jpg\n"):
        build(Benchmark.COCO, tmp_path / "annotations", tmp_path)


@pytest.mark.parametrize("name", ["annotations", "media"])
def test_a_folder_that_is_not_there_is_named(tmp_path, name):
    written(tmp_path)
    (tmp_path / name).rename(tmp_path / "elsewhere")
    with pytest.raises(ManifestError, match=f"there is no folder {tmp_path / name}; give"):
        built(tmp_path)


# --- What is written ------------------------------------------------------------------------------


def test_the_record_holds_rules_files_and_counts(tmp_path):
    written(tmp_path)
    (tmp_path / "media/val2017/000000000139.jpg").unlink()
    path = write(
        built(tmp_path, rules=BuildRules(narrative=NarrativeChoice.LONGEST)), tmp_path / "c.jsonl"
    )
    assert path == record_path(tmp_path / "c.jsonl") == tmp_path / "c.build.json"
    record = json.loads(path.read_text())
    sizes = {each.name: each.stat().st_size for each in (tmp_path / "annotations").iterdir()}
    assert {each["name"]: each["bytes"] for each in record.pop("files")} == sizes
    assert record == {
        "version": 1,
        "benchmark": "coco",
        "rules": {"narrative": "longest"},
        "counts": {
            "train": {
                "annotated": 16,
                "without media": 0,
                "without text": 0,
                "written": 16,
                "paper": 118_287,
            },
            "query": {
                "annotated": 2,
                "without media": 1,
                "without text": 0,
                "written": 1,
                "paper": 5_000,
            },
        },
        "met": {
            "narratives": {"train": 18, "query": 6},
            "images with several narratives": {"train": 2, "query": 1},
        },
    }


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("benchmark", WRITERS)
def test_a_manifest_of_any_format_reads_back_with_all_its_media(tmp_path, benchmark, ending):
    written(tmp_path, benchmark)
    made = built(tmp_path, benchmark)
    write(made, tmp_path / f"made{ending}")
    found = read_manifest(tmp_path / f"made{ending}")
    assert missing_media(found) == ()
    assert found.splits == ("train", "query")
    assert [found.ids, found.texts, found.media] == [
        made.manifest.ids,
        made.manifest.texts,
        made.manifest.media,
    ]


def test_the_same_build_again_changes_nothing_and_another_is_refused(tmp_path):
    written(tmp_path)
    path = tmp_path / "c.jsonl"
    write(built(tmp_path), path)
    before = path.read_bytes(), record_path(path).read_bytes()
    write(built(tmp_path), path)
    with pytest.raises(ManifestError, match="exists; remove it or choose another name"):
        write(built(tmp_path, rules=BuildRules(narrative=NarrativeChoice.LONGEST)), path)
    assert (path.read_bytes(), record_path(path).read_bytes()) == before


# --- Beside the paper -----------------------------------------------------------------------------


def test_counts_stand_beside_the_papers_with_reasons(tmp_path):
    written(tmp_path)
    (tmp_path / "media/train2017/000000000107.jpg").unlink()
    path = tmp_path / "annotations/coco_val_localized_narratives.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines()[1].replace("872000", "7"))
    path.write_text(path.read_text().replace('"caption": "A field."', '"caption": ""'))
    touch(tmp_path / "media", "val2017/000000000007.jpg")
    unknown = (
        "it is not known why, unless a reason stands below: look whether the files are complete"
    )
    assert list(compared(built(tmp_path)))[:10] == [
        "             annotated    left out     written       paper  difference",
        "  train             16           1          15     118,287    -118,272",
        "  query              3           2           1       5,000      -4,999",
        "  gallery           19           3          16     123,287    -123,271",
        "  narratives: 18 train, 7 query (counted by others: 134,272 train, 8,573 query)",
        "  images with several narratives: 2 train, 1 query",
        "  train: 1 left out, for their media are missing",
        f"  train: the annotation files name 118,271 fewer than the paper; {unknown}",
        "  query: 2 left out, for nobody said anything of them",
        f"  query: the annotation files name 4,997 fewer than the paper; {unknown}",
    ]


def test_no_difference_needs_no_reason(tmp_path, monkeypatch):
    facts = FACTS[Benchmark.CLOTHO]
    paper = {Split.TRAIN: 27, Split.QUERY: 1}
    monkeypatch.setitem(FACTS, Benchmark.CLOTHO, dataclasses.replace(facts, paper=paper))
    written(tmp_path, Benchmark.CLOTHO)
    assert list(compared(built(tmp_path, Benchmark.CLOTHO)))[1:] == [
        "  train             27           0          27          27           0",
        "  query              1           0           1           1           0",
        "  gallery           28           0          28          28           0",
        "  captions: 134 train, 5 query",
        *(f"  {remark}" for remark in facts.remarks),
    ]

"""The paper's tables as data: whole, of encoders that there are, and refused where they are not."""

import pytest

from adaptiveembed.data.datasets.benchmarks import FACTS, Benchmark
from adaptiveembed.encoders.pretrained.settings import parse_name
from adaptiveembed.errors import SettingError
from adaptiveembed.pipeline.paper_tables import (
    PaperRow,
    PaperTable,
    Reached,
    RowKind,
    read_table,
    side_by_side,
    table_names,
)
from adaptiveembed.pipeline.reproducing import Reproduction
from adaptiveembed.structure.direction import Modality


def test_there_are_the_tables_of_three_media():
    assert table_names() == ("audio-text", "image-text", "video-text")


@pytest.mark.parametrize("name", table_names())
def test_tables_stand_on_known_benchmarks_and_encoders(name):
    table = read_table(name)
    assert set(table.sources) <= set(table.columns)
    for column in table.columns:
        assert FACTS[Benchmark(column)].modality is table.medium
    for encoder in table.encoders.values():
        parse_name(encoder)
    methods = [row.method for row in table.rows]
    assert len(set(methods)) == len(methods)
    assert {row.encoder for row in table.rows} == set(table.encoders)
    for row in table.rows:
        assert bool(row.budget) == (row.kind is RowKind.METAEMBED)
        # ColQwen2 on OpenImages is open in the paper
        missing = 2 if row.method == "ColQwen2" else 0
        assert len(row.paper) == 2 * len(table.columns) - missing


def table(**changes):
    settings = {
        "name": "mine",
        "title": "Mine",
        "medium": Modality.AUDIO,
        "sources": ("a",),
        "columns": {"a": "A", "b": "B"},
        "encoders": {"ear": "clap:somewhere"},
        "rows": (
            PaperRow("One", RowKind.SINGLE, "ear", (1.0, 2.0, 3.5), tokens=1.0),
            PaperRow("Two", RowKind.ADAPTIVE, "ear", (4.0, 5.0, 6.0, 7.25)),
        ),
    }
    return PaperTable(**(settings | changes))


def test_what_the_paper_prints_stands_below_ours():
    found = {("Two", "a"): Reached(0.5, 0.25, 1.96), ("Two", "b"): Reached(1.0, 0.125, 3.0)}
    section = side_by_side(table(), found)
    assert section.header == ("method", "tokens", "A T2A", "A A2T", "B T2A", "B A2T")
    assert section.lines == (
        ("One", "–", "–", "–", "–", "–"),
        ("  in the paper", "1", "1.00", "2.00", "3.50", "–"),
        ("Two", "2.0", "50.00", "25.00", "100.00", "12.50"),
        ("  in the paper", "–", "4.00", "5.00", "6.00", "7.25"),
    )


def test_rows_and_encoders_are_chosen_by_name():
    chosen = table().with_rows(["Two"]).with_encoders({"ear": "clap:elsewhere"})
    assert [row.method for row in chosen.rows] == ["Two"]
    assert chosen.encoders == {"ear": "clap:elsewhere"}
    with pytest.raises(SettingError, match=r"no row 'Three'; its rows are One, Two"):
        table().with_rows(["Three"])
    with pytest.raises(SettingError, match=r"no encoder 'eye'; its encoders are ear"):
        table().with_encoders({"eye": "clip:x"})


def test_tables_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"no table 'coco'; choose one of audio-text"):
        read_table("coco")
    with pytest.raises(SettingError, match="stands on the encoder 'ear'; the encoders are eye"):
        table(encoders={"eye": "clip:x"})
    with pytest.raises(SettingError, match="has 3 figures for 1 columns of two"):
        table(columns={"a": "A"})
    file = tmp_path / "own.toml"
    for content, told in (
        ("title = 1", "'medium'"),
        ('title="x"\nmedium="smell"\nsources=[]\ncolumns={}\nencoders={}\nrows=[]', "smell"),
        (
            (
                'title="x"\nmedium="image"\nsources=[]\ncolumns={}\nencoders={}\n'
                '[[rows]]\nmethod="m"\nkind="double"\nencoder="e"\npaper=[]'
            ),
            r"rows\.0\.kind",
        ),
    ):
        file.write_text(content)
        with pytest.raises(SettingError, match=told):
            read_table(str(file))


def test_manifests_that_are_not_there_are_named_before_the_work(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(SettingError, match=r"has no b\.jsonl; make them by: .* data build b"):
        Reproduction(table(), tmp_path, tmp_path / "out").run()
    assert not (tmp_path / "out").exists()


def test_a_row_that_cannot_be_made_is_told_and_the_others_are_not_lost(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("not json\n")
    outcome = Reproduction(table(), tmp_path, tmp_path / "out").run()
    assert set(outcome.problems) == {"One", "Two"}
    assert "line 1" in outcome.problems["One"]
    assert (tmp_path / "out" / "table.md").read_text().count("| – | – | – | – |") == 2

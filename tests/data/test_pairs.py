"""A manifest is what its file says, or one error that names every line that is wrong."""

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.data.manifest_writing import replace_manifest, write_manifest
from adaptiveembed.data.pairs import Manifest, Pair, Side, missing_media, read_manifest
from adaptiveembed.errors import DuplicateIdError, ManifestError

GOOD = '{"id": "%s", "text": "a cat", "media": "cat.png"}'


def read_lines(tmp_path, *lines, name="pairs.jsonl", **options):
    path = tmp_path / name
    path.write_bytes("\n".join(lines).encode() + b"\n")
    return read_manifest(path, **options)


def problems(tmp_path, *lines, name="pairs.jsonl", **options):
    """What the error says, line by line, without its first."""
    with pytest.raises(ManifestError) as caught:
        read_lines(tmp_path, *lines, name=name, **options)
    first, *others = str(caught.value).split("\n  ")
    assert first.startswith(str(tmp_path / name))
    return others


def table(tmp_path, **columns):
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    return tmp_path / "pairs.parquet"


# --- What is read ---------------------------------------------------------------------------------


def test_every_format_gives_the_same_pairs(tmp_path):
    rows = [
        {"id": "1", "text": "a cat", "media": "pictures/cat.png", "split": "train", "by": "Ann"},
        {"id": "2", "text": 'two, "or" more\nlines', "media": "/far/dog.png", "split": None},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.csv").write_text(
        "id,text,media,split,by\n"
        "1,a cat,pictures/cat.png,train,Ann\n"
        '2,"two, ""or"" more\nlines",/far/dog.png,,\n'
    )
    names = ("id", "text", "media", "split", "by")
    columns = {name: [row.get(name) for row in rows] for name in names}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    expected = (
        Pair("1", "a cat", tmp_path / "pictures" / "cat.png", "train", {"by": "Ann"}),
        Pair("2", 'two, "or" more\nlines', Path("/far/dog.png"), None, {}),
    )
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        found = read_manifest(str(tmp_path / name))
        assert found.pairs == expected
        assert found.path == tmp_path / name


def test_a_spreadsheet_with_its_mark_and_line_ends_is_read(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b"\xef\xbb\xbfid,text,media\r\n1,na\xc3\xafve,a.png\r\n")
    assert read_manifest(path).texts == ("naïve",)


def test_metadata_keep_their_kind_where_the_file_has_kinds(tmp_path):
    line = '{"id": "1", "text": "t", "media": "m", "year": 1999, "tags": ["a"], "note": null}'
    assert read_lines(tmp_path, line)[0].metadata == {"year": 1999, "tags": ["a"]}
    day = dt.date(2020, 1, 2)
    path = table(tmp_path, id=["1"], text=["t"], media=["m"], day=[day])
    assert read_manifest(path)[0].metadata == {"day": day}


def test_one_side_is_enough_where_only_one_is_needed(tmp_path):
    line = '{"id": "1", "media": "a.png"}'
    found = read_lines(tmp_path, line, needed=frozenset({Side.MEDIA}))
    assert found.texts == (None,)
    assert found.media == (tmp_path / "a.png",)
    assert read_lines(tmp_path, line, needed=frozenset()).pairs == found.pairs


def test_an_id_is_enough_where_the_features_were_made_elsewhere(tmp_path):
    found = read_lines(tmp_path, '{"id": "1", "split": "query"}', '{"id": "2"}', needed=None)
    assert found.pairs == (Pair("1", split="query"), Pair("2"))
    lines = '{"id": "1"}', '{"text": "t"}'
    assert problems(tmp_path, *lines, needed=None) == ["line 2: id is missing"]


# --- What is wrong --------------------------------------------------------------------------------


def test_every_problem_of_a_file_is_told_at_once_in_the_order_of_its_lines(tmp_path):
    lines = [
        GOOD % "a",
        "",
        '{"id": "b", "text": "a cat"}',
        '{"id": "c", "media": "cat.png"}',
        '{"text": "a cat", "media": "cat.png"}',
        GOOD % "a",
        '{"id": 7, "text": ["a cat"], "media": "cat.png", "split": true}',
        '{"id": " ", "text": "", "media": "https://a.b"}',
        "[1, 2]",
        '{"id": "d", "id": "e", "text": "a cat", "media": "cat.png"}',
        '{"id": "f", "text": "a cat", "media": "cat.png", "score": NaN}',
        '{"id": "g", "text": "\\ud800", "media": "cat\\u0000.png"}',
        '{"id',
    ]
    assert problems(tmp_path, *lines) == [
        "line 2: it is blank; remove it",
        "line 3: media is missing",
        "line 4: text is missing",
        "line 5: id is missing",
        "line 6: id 'a' stands in line 1 already",
        "line 7: id is 7, which is not a text; write it in quotes",
        "line 7: split is True, which is not a text; write it in quotes",
        "line 7: text is ['a cat'], which is not a text; write it in quotes",
        "line 8: id is empty",
        "line 8: media is 'https://a.b', which is not a path; download it and give its path",
        "line 8: text is empty",
        'line 9: it holds no object; write {"id": …, "text": …}, not \'[1, 2]\'',
        "line 10: it is not JSON: key 'id' stands in it more than once",
        "line 11: it is not JSON: JSON has no NaN",
        "line 12: media is 'cat\\x00.png', which is not a path; download it and give its path",
        "line 12: text is '\\ud800', which is not valid Unicode",
        "line 13: it is not JSON: Unterminated string starting at: line 1 column 2 (char 1)",
    ]


def test_bytes_that_are_no_text_are_named_by_line_and_place(tmp_path):
    for name in ("pairs.jsonl", "pairs.csv"):
        path = tmp_path / name
        path.write_bytes(
            b"id,text,media\n1,\xe9t\xe9,a.png\n" if name.endswith("csv") else b'{"\xff"}'
        )
        with pytest.raises(
            ManifestError, match=r"line [12]: byte [23] is not UTF-8; save the file"
        ):
            read_manifest(path)


def test_a_long_list_of_problems_is_cut_and_counted(tmp_path):
    lines = [f'{{"id": "{place}", "text": "t"}}' for place in range(1_200)] + [GOOD % "last"]
    *listed, last = problems(tmp_path, *lines)
    assert len(listed) == 20
    assert last == "… and 1,180 more"
    with pytest.raises(ManifestError, match="has 1,200 problems; correct them and try again"):
        read_manifest(tmp_path / "pairs.jsonl")


def test_a_missing_column_is_told_once_with_what_may_be_meant(tmp_path):
    lines = [f'{{"ID": "{place}", "caption": "t", "media": "m"}}' for place in range(3)]
    columns = "its columns are ID, caption, media"
    assert problems(tmp_path, *lines) == [
        f"there is no column id; did you mean ID? rename it to id; {columns}",
        f"there is no column text; did you mean caption? rename it to text; {columns}",
    ]
    columns = "its columns are id, texts, media, score"
    assert problems(tmp_path, "id,texts,media,score", "1,t,m,2", name="pairs.csv") == [
        f"there is no column text; did you mean texts? rename it to text; {columns}"
    ]


def test_a_row_with_no_side_at_all_is_refused_even_where_none_is_needed(tmp_path):
    lines = ('{"id": "1", "note": "n"}', '{"id": "2", "text": "t"}')
    assert problems(tmp_path, *lines, needed=frozenset()) == [
        "line 1: text and media are missing; give at least one of them"
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["id,text,media", "1,a cat, or two,a.png", "", "2,t,"],
            ["has 4 fields", "blank", "media"],
        ),
        (["id,text,media", '1,"t,a.png', "2,t,b.png"], ["line 2: it is not CSV: unexpected end"]),
        (["id;text;media", "1;t;a.png"], ["line 1: its columns are separated by semicolons"]),
        (["id,text,id,", "1,t,2,m"], ["column 'id' stands there 2 times", "no name", "no column"]),
        ([""], ["line 1: there is no header; name the columns in the first line"]),
        (['"id,text,media', "1,t,a.png"], ["line 1: it is not CSV"]),
    ],
)
def test_csv_that_does_not_fit_is_named_by_line(lines, expected, tmp_path):
    found = problems(tmp_path, *lines, name="pairs.csv")
    assert len(found) == len(expected)
    for problem in expected:
        assert any(problem in line for line in found), (problem, found)


def test_a_line_of_csv_is_named_by_where_its_record_begins(tmp_path):
    lines = ["id,text,media", '1,"two', 'lines",a.png', "2,,b.png"]
    assert problems(tmp_path, *lines, name="pairs.csv") == ["line 4: text is missing"]


def test_a_parquet_table_is_named_by_row_and_kind(tmp_path):
    path = table(tmp_path, id=[1, 2], text=["t", None], media=["m", "m"])
    expected = r"row 1: id is 1, which is not a text; .*\n  row 2: id is 2, .*\n  row 2: text is"
    with pytest.raises(ManifestError, match=expected):
        read_manifest(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"id,text,media\n", b"PAR1" * 100])
def test_a_file_that_is_no_parquet_table_is_named(content, tmp_path):
    (tmp_path / "pairs.parquet").write_bytes(content)
    with pytest.raises(ManifestError, match=r"pairs\.parquet has a problem; .*\n.*not a Parquet"):
        read_manifest(tmp_path / "pairs.parquet")


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.csv", "pairs.parquet"])
def test_a_file_without_pairs_is_refused(name, tmp_path):
    path = tmp_path / name
    header = {"pairs.csv": b"id,text,media\n", "pairs.jsonl": b""}
    if name in header:
        path.write_bytes(header[name])
    else:
        table(tmp_path, id=pa.array([], pa.string()))
    with pytest.raises(ManifestError, match="it holds no pairs; add at least one"):
        read_manifest(path)


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(ManifestError, match=r"there is no file .*none\.csv; correct the path"):
        read_manifest(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ManifestError, match=r"folder\.csv cannot be read \(Is a directory\)"):
        read_manifest(tmp_path / "folder.csv")
    for name, ending in (("pairs.json", r"\.json"), ("pairs", "nothing")):
        with pytest.raises(ManifestError, match=rf"ends in {ending}; a manifest is JSON Lines"):
            read_manifest(tmp_path / name)


# --- Manifests ------------------------------------------------------------------------------------


def small_manifest():
    splits = ("train", None, "test", "train")
    pairs = [
        Pair(name, f"text {name}", split=one) for name, one in zip("abcd", splits, strict=True)
    ]
    return Manifest(tuple(pairs))


def test_splits_are_taken_by_name_and_keep_the_order():
    manifest = small_manifest()
    assert manifest.splits == ("train", "test")
    assert manifest.split("train").ids == ("a", "d")
    with pytest.raises(ManifestError, match="no split 'dev'; its splits are train, test"):
        manifest.split("dev")
    with pytest.raises(ManifestError, match="no split 'dev'; it has no splits"):
        Manifest((Pair("a"),)).split("dev")


def test_pairs_are_taken_by_place_and_counted():
    manifest = small_manifest()
    assert manifest.take(np.array([2, 0])).ids == ("c", "a")
    assert manifest[1].text == "text b"
    assert [pair.id for pair in manifest] == list("abcd")
    assert repr(manifest) == "Manifest(4 pairs)"


def test_an_id_stands_for_one_pair():
    with pytest.raises(DuplicateIdError, match="'a' more than once"):
        Manifest((Pair("a"), Pair("a")))


def test_identical_texts_are_noticed():
    same = [Pair(name, "a cat") for name in "abc"]
    assert Manifest(tuple(same)).has_identical_texts()
    assert not Manifest((*same, Pair("d", "a dog"))).has_identical_texts()
    assert not Manifest((same[0],)).has_identical_texts()


def test_media_that_are_not_there_are_listed_with_where_they_were_looked_for(tmp_path):
    (tmp_path / "cat.png").write_bytes(b"a picture")
    (tmp_path / "folder.png").mkdir()
    lines = [
        f'{{"id": "{place}", "text": "t", "media": "{name}"}}'
        for place, name in enumerate(("cat.png", "dog.png", "folder.png"))
    ]
    missing = missing_media(read_lines(tmp_path, *lines))
    assert [pair.media for pair in missing] == [tmp_path / "dog.png", tmp_path / "folder.png"]


# --- Writing --------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
paths = texts.filter(lambda name: "\0" not in name and "/" not in name)


@st.composite
def manifests(draw):
    ids = draw(st.lists(texts, min_size=1, max_size=5, unique=True))
    names = draw(st.sets(st.sampled_from(["by", "ключ", "a b"])))
    return [
        Pair(
            name,
            draw(texts),
            Path("pictures") / draw(paths.filter(lambda one: one not in (".", ".."))),
            draw(st.none() | texts),
            {key: draw(texts) for key in sorted(names) if draw(st.booleans())},
        )
        for name in ids
    ]


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@settings(max_examples=60)
@given(pairs=manifests())
def test_a_written_manifest_is_read_as_the_same_pairs(tmp_path_factory, ending, pairs):
    folder = tmp_path_factory.mktemp("manifests")
    here = [
        Pair(pair.id, pair.text, folder / pair.media, pair.split, pair.metadata) for pair in pairs
    ]
    write_manifest(Manifest(tuple(here)), folder / f"pairs{ending}")
    assert read_manifest(folder / f"pairs{ending}").pairs == tuple(here)


def test_a_folder_with_its_manifest_can_be_moved(tmp_path):
    folder = tmp_path / "one"
    pairs = (Pair("a", "t", folder / "a.png"), Pair("b", "t", tmp_path / "far.png"))
    write_manifest(Manifest(pairs), folder / "pairs.csv")
    folder.rename(tmp_path / "two")
    found = read_manifest(tmp_path / "two" / "pairs.csv")
    assert found.media == (tmp_path / "two" / "a.png", tmp_path / "far.png")


def test_metadata_that_are_no_text_are_json_in_csv(tmp_path):
    pair = Pair("a", "t", tmp_path / "m", None, {"year": 1999, "tags": ["x"]})
    write_manifest(Manifest((pair,)), tmp_path / "pairs.csv")
    assert read_manifest(tmp_path / "pairs.csv")[0].metadata == {"year": "1999", "tags": '["x"]'}


@pytest.mark.parametrize(
    ("ending", "metadata", "message"),
    [
        (".jsonl", [{"day": dt.date(2020, 1, 2)}], "pair '0' cannot be written as text"),
        (".csv", [{"score": float("nan")}], "pair '0' cannot be written as text"),
        (".parquet", [{"x": 1}, {"x": "a"}], "values of x are not of one kind .*write .jsonl"),
        (".jsonl", [{"text": "t"}], "pair '0' has metadata named text; rename it"),
        (".txt", [{}], r"ends in \.txt; write \.jsonl, \.csv, \.parquet"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_nothing_is_written(
    ending, metadata, message, tmp_path
):
    pairs = [Pair(str(place), "t", None, None, one) for place, one in enumerate(metadata)]
    with pytest.raises(ManifestError, match=message):
        write_manifest(Manifest(tuple(pairs)), tmp_path / f"pairs{ending}")
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "pairs.csv").write_text("mine")
    with pytest.raises(ManifestError, match="exists; remove it or choose another name"):
        write_manifest(small_manifest(), tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text() == "mine"


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_what_is_written_already_may_be_written_again(ending, tmp_path):
    path = tmp_path / f"pairs{ending}"
    write_manifest(small_manifest(), path)
    written = path.stat().st_mtime_ns
    write_manifest(small_manifest(), path)
    assert path.stat().st_mtime_ns == written
    with pytest.raises(ManifestError, match="exists"):
        write_manifest(Manifest((Pair("other", "t"),)), path)


def test_a_manifest_is_replaced_where_that_is_asked_for(tmp_path):
    path = tmp_path / "pairs.jsonl"
    for manifest in (small_manifest(), Manifest((Pair("other", "t"),))):
        replace_manifest(manifest, path)
        assert read_manifest(path, needed=frozenset()).ids == manifest.ids
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_is_cut_off_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_manifest(small_manifest(), tmp_path / "pairs.csv")
    assert not list(tmp_path.iterdir())

"""Five captions become one text; file names are kept to the letter."""

import pytest

from adaptiveembed.data.datasets import Benchmark, build, write
from adaptiveembed.errors import ManifestError
from tests.data.datasets.originals import rows, write_clotho

BY_HAND = {
    "development/Distorted AM Radio noise.wav": 'A muddled noise B, so to say C "D" E F.',
    "development/01 A pug struggles to breathe 1_14_2008.wav": "1 2 3 4 5",
    "development/Café  (2) .wav": "Dishes clatter and\npeople talk",
    "development/Sound 3.wav": "Rain 3 falls 0. Rain 3 falls 1. Rain 3 falls 2. Rain 3 falls 3. "
    "Rain 3 falls 4.",
    "evaluation/Sound 3.wav": "The same name, another sound.",
}
KEYWORDS = {
    "development/Sound 0.wav": ["rain", "wet"],
    "development/Café  (2) .wav": ["café", "dishes"],
}


def built(tmp_path):
    return build(Benchmark.CLOTHO, tmp_path / "captions", tmp_path / "sounds")


@pytest.mark.parametrize("keywords", [True, False])
def test_clotho_gives_one_pair_for_each_sound(tmp_path, keywords):
    train, queries = write_clotho(tmp_path / "captions", tmp_path / "sounds", keywords=keywords)
    write(built(tmp_path), tmp_path / "clotho.jsonl")
    found = rows(tmp_path / "clotho.jsonl", tmp_path / "sounds")
    files = [("development", "train", row) for row in train]
    files += [("evaluation", "query", row) for row in queries]
    assert len(found) == 28
    for row, (folder, split, (name, *captions)) in zip(found, files, strict=True):
        path = f"{folder}/{name}"
        text = " ".join(caption.strip() for caption in captions if caption.strip())
        words = {"keywords": KEYWORDS[path]} if keywords and path in KEYWORDS else {}
        assert row == (path, text, path, split, words)
    assert BY_HAND.items() <= {row[0]: row[1] for row in found}.items()


def test_files_that_were_read_and_captions_are_recorded(tmp_path):
    write_clotho(tmp_path / "captions", tmp_path / "sounds")
    origin = built(tmp_path).origin
    assert [path.name for path in origin.files] == [
        "clotho_captions_development.csv",
        "clotho_captions_evaluation.csv",
        "clotho_metadata_development.csv",
    ]
    assert origin.counts == {"captions": {"train": 134, "query": 5}}


def test_every_line_that_is_wrong_is_named(tmp_path):
    write_clotho(tmp_path / "captions", tmp_path / "sounds")
    path = tmp_path / "captions/clotho_captions_evaluation.csv"
    path.write_bytes(
        b"file_name,caption_1,caption_2,caption_3,caption_4,caption_5\r\n"
        b"a.wav,1,2,3,4,5\r\n"
        b"b.wav,1,2,3,4\r\n"
        b"../c.wav,1,2,3,4,5\r\n"
        b'd.wav,"1\r\n1",2,3,4,5\r\n'
        b"a.wav,1,2,3,4,5\r\n"
        b",1,2,3,4,5\r\n"
        b"\xe9.wav,1,2,3,4,5\r\n"
    )
    with pytest.raises(ManifestError) as caught:
        built(tmp_path)
    assert str(caught.value).split("\n  ") == [
        f"{path} has 5 problems; take the publisher's file again:",
        "line 3: it has 5 fields and the header has 6; put fields that hold commas in quotes",
        "line 4: file_name is '../c.wav', and the name of a file is needed",
        "line 7: 'a.wav' stands in line 2 already",
        "line 8: file_name is '', and the name of a file is needed",
        "line 9: byte 1 is not UTF-8; save the file as UTF-8",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("file_name,caption_1\na.wav,1\n", "line 2: caption_2 is missing"),
        ("", "it names no sounds"),
    ],
)
def test_a_table_that_is_something_else_is_told(tmp_path, content, expected):
    write_clotho(tmp_path / "captions", tmp_path / "sounds")
    (tmp_path / "captions/clotho_captions_evaluation.csv").write_text(content)
    with pytest.raises(ManifestError, match=expected):
        built(tmp_path)


def test_rows_of_metadata_that_are_cut_off_have_no_keywords(tmp_path):
    write_clotho(tmp_path / "captions", tmp_path / "sounds", keywords=False)
    path = tmp_path / "captions/clotho_metadata_evaluation.csv"
    path.write_text("file_name,keywords,sound_id\nSound 3.wav\nSound 4.wav,a;b,1\n")
    assert built(tmp_path).manifest[-1].metadata == {"keywords": []}


def test_metadata_without_keywords_are_refused_by_name(tmp_path):
    write_clotho(tmp_path / "captions", tmp_path / "sounds")
    path = tmp_path / "captions/clotho_metadata_evaluation.csv"
    path.write_text("file_name,license\na.wav,cc0\n")
    with pytest.raises(ManifestError, match="columns file_name and keywords") as caught:
        built(tmp_path)
    assert str(path) in str(caught.value)

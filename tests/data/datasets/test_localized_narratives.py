"""One text for each image by a rule, from lines of which traces are never decoded."""

import json
import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.data.datasets import Benchmark, BuildRules, NarrativeChoice, build, write
from adaptiveembed.data.datasets.localized_narratives import narrative_values
from adaptiveembed.errors import ManifestError
from tests.data.datasets.originals import FIVE_TIMES, narrative, rows, touch, write_coco

KEYS = ("dataset_id", "image_id", "annotator_id", "caption")
"""What is read of a line."""
CHOICES = {
    NarrativeChoice.FIRST: "There is a room, and a vase.",
    NarrativeChoice.LONGEST: "A room with a television, a table, two chairs and a window.",
    NarrativeChoice.CONCAT: (
        "There is a room, and a vase. A room with a television, a table, two chairs and a window. "
        'A sign says "timed_caption": closed. Une salle à manger.'
    ),
    NarrativeChoice.ANNOTATOR: "A room with a television, a table, two chairs and a window.",
}
"""Of the image that was narrated five times, written down by hand."""


def twin(lines, split, folder, choice):
    """The rows of one split, image by image, by looking through all lines for each."""
    images = dict.fromkeys(str(int(image)) for _, image, _, _ in lines)
    for image in images:
        told = [(who, text.strip()) for _, each, who, text in lines if int(each) == int(image)]
        said = [(who, text) for who, text in told if text]
        best = {
            NarrativeChoice.FIRST: lambda each: 0,
            NarrativeChoice.LONGEST: lambda each: -len(each[1]),
            NarrativeChoice.ANNOTATOR: lambda each: each[0],
        }
        metadata = {"narratives": len(told)}
        if choice is NarrativeChoice.CONCAT:
            text = " ".join(text for _, text in said)
            if len(told) == 1:
                metadata["annotator_id"] = said[0][0]
        else:
            who, text = sorted(said, key=best[choice])[0]
            metadata["annotator_id"] = who
        yield image, text, f"{folder}/{int(image):012d}.jpg", split, metadata


def built(tmp_path, choice=NarrativeChoice.FIRST, **options):
    rules = BuildRules(narrative=choice)
    return build(Benchmark.COCO, tmp_path / "narratives", tmp_path / "coco", rules, **options)


@pytest.mark.parametrize("choice", NarrativeChoice)
def test_coco_gives_the_manifest_of_its_twin_under_every_rule(tmp_path, choice):
    train, queries = write_coco(tmp_path / "narratives", tmp_path / "coco")
    write(built(tmp_path, choice), tmp_path / "coco.jsonl")
    found = rows(tmp_path / "coco.jsonl", tmp_path / "coco")
    assert found == [
        *twin(train, "train", "train2017", choice),
        *twin(queries, "query", "val2017", choice),
    ]
    assert len(found) == 18
    assert {row[0]: row[1] for row in found}["139"] == CHOICES[choice]


@pytest.mark.parametrize("choice", NarrativeChoice)
def test_ties_and_blanks_go_as_in_the_twin(tmp_path, choice):
    """Many narratives of few images by few annotators, of few lengths, some of them blank."""
    draw = random.Random(0)
    (tmp_path / "narratives").mkdir()
    told = {}
    for split, first in (("train", 100), ("val", 200)):
        told[split] = [
            (f"mscoco_{split}2017", str(first + draw.randrange(40)), draw.randrange(3), caption)
            for caption in draw.choices((" a", "b ", "cc", "dd", " ", ""), k=200)
        ]
        told[split] += [(f"mscoco_{split}2017", str(first + n), 9, "last") for n in range(40)]
        text = "".join(f"{narrative(*each, traces=False)}\n" for each in told[split])
        (tmp_path / f"narratives/coco_{split}_captions.jsonl").write_text(text)
        touch(tmp_path / "coco", *(f"{split}2017/{first + n:012d}.jpg" for n in range(40)))
    write(built(tmp_path, choice), tmp_path / "coco.jsonl")
    assert rows(tmp_path / "coco.jsonl", tmp_path / "coco") == [
        *twin(told["train"], "train", "train2017", choice),
        *twin(told["val"], "query", "val2017", choice),
    ]


def test_images_and_narratives_are_counted_of_each_split(tmp_path):
    write_coco(tmp_path / "narratives", tmp_path / "coco")
    origin = built(tmp_path).origin
    assert origin.counts == {
        "narratives": {"train": 18, "query": 6},
        "images with several narratives": {"train": 2, "query": 1},
    }
    assert origin.rules == {"narrative": "first"}


def test_an_image_of_blank_narratives_alone_is_left_out_and_named(tmp_path):
    write_coco(tmp_path / "narratives", tmp_path / "coco")
    path = tmp_path / "narratives/coco_val_localized_narratives.jsonl"
    path.write_text(path.read_text() + narrative("mscoco_val2017", "5", 1, "  ") + "\n")
    found = built(tmp_path)
    assert [(each.id, each.split) for each in found.without_text] == [("5", "query")]
    assert "5" not in found.manifest.ids
    with pytest.raises(ManifestError, match=r"1 items have no text:\n  5: nobody said anything"):
        built(tmp_path, strict=True)


class Set(NamedTuple):
    """How files and pictures of one image dataset are called."""

    benchmark: Benchmark
    files: tuple[str, str]
    dataset: str
    image: str
    media: tuple[str, str]
    parts: int = 1
    """Files of the training split, where they hold traces."""


OTHERS = (
    Set(
        Benchmark.FLICKR30K,
        ("flickr30k_train", "flickr30k_val"),
        "Flickr30k",
        "1000092795",
        ("flickr30k-images/{}.jpg", "flickr30k-images/{}.jpg"),
    ),
    Set(
        Benchmark.ADE20K,
        ("ade20k_train", "ade20k_validation"),
        "ADE20k",
        "ADE_train_00000001",
        (
            "ADEChallengeData2016/images/training/{}.jpg",
            "ADEChallengeData2016/images/validation/{}.jpg",
        ),
    ),
    Set(
        Benchmark.OPENIMAGES,
        ("open_images_train_v6", "open_images_validation"),
        "open_images_train",
        "000a1249af2bc5f0",
        ("train/{}.jpg", "validation/{}.jpg"),
        parts=10,
    ),
)


def write_other(tmp_path, one, kind):
    """Twelve images of each split, their dataset spelled in several ways; their rows."""
    expected = []
    for split, name, media in zip(("train", "query"), one.files, one.media, strict=True):
        images = [f"{one.image}{split}{number}" for number in range(12)]
        spelled = (one.dataset.lower(), one.dataset.upper(), f"{one.dataset}_{split}")
        traces = kind != "captions"
        lines = [
            narrative(spelled[n % 3], image, n, f" A thing {n}.", traces=traces)
            for n, image in enumerate(images)
        ]
        write_parts(
            tmp_path / f"{name}_{kind}", lines, one.parts if traces and split == "train" else 1
        )
        touch(tmp_path / "media", *(media.format(image) for image in images))
        expected += [
            (
                image,
                f"A thing {n}.",
                media.format(image),
                split,
                {"annotator_id": n, "narratives": 1},
            )
            for n, image in enumerate(images)
        ]
    return expected


def write_parts(path, lines, parts):
    for part in range(parts):
        own = lines[len(lines) * part // parts : len(lines) * (part + 1) // parts]
        ending = f"-{part:05d}-of-{parts:05d}" if parts > 1 else ""
        content = "".join(f"{line}\n" for line in own)
        path.with_name(f"{path.name}{ending}.jsonl").write_text(content)


@pytest.mark.parametrize("kind", ["captions", "localized_narratives"])
@pytest.mark.parametrize("one", OTHERS, ids=lambda one: one.benchmark.value)
def test_the_other_sets_are_read_by_their_own_names(tmp_path, one, kind):
    expected = write_other(tmp_path, one, kind)
    write(build(one.benchmark, tmp_path, tmp_path / "media"), tmp_path / "made.jsonl")
    assert rows(tmp_path / "made.jsonl", tmp_path / "media") == expected


# --- What is wrong --------------------------------------------------------------------------------


def problems(tmp_path, lines):
    """What is said of a file of queries with these lines, without the first line of it."""
    write_coco(tmp_path / "narratives", tmp_path / "coco")
    path = tmp_path / "narratives/coco_val_localized_narratives.jsonl"
    path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    with pytest.raises(ManifestError) as caught:
        built(tmp_path)
    first, *others = str(caught.value).split("\n  ")
    assert first.startswith(f"{path} has ")
    assert first.endswith("take the publisher's file again:")
    return others


def test_every_line_that_is_wrong_is_named_with_its_number(tmp_path):
    whole = narrative("mscoco_val2017", "1", 1, "A.")
    lines = [
        whole,
        narrative("Flickr30k", "1", 1, "A."),
        narrative("mscoco_val2017", "../1", 1, "A."),
        narrative("mscoco_val2017", "1a", 1, "A."),
        whole.replace('"1"', "true"),
        narrative("mscoco_val2017", "2", 1.5, "A."),
        '{"dataset_id": "mscoco_val2017", "image_id": "3", "annotator_id": 1}',
        narrative("mscoco_val2017", "3", 1, "\ud800", traces=False),
        "[1]",
        "",
        whole[:150],
        narrative("mscoco_val2017", "101", 1, "In both."),
    ]
    found = problems(tmp_path, [f"{line}\n" for line in lines])
    assert found[:9] == [
        "line 2: dataset_id is 'Flickr30k', and one that begins with 'mscoco' is needed",
        "line 3: image_id is '../1', and a text that can name a file is needed",
        "line 4: image_id is '1a', and a number is needed",
        "line 5: image_id is True, and a text that can name a file is needed",
        "line 6: annotator_id is 1.5, and a whole number is needed",
        "line 7: caption is missing",
        "line 8: caption is '\\ud800', and a text in Unicode is needed",
        f"line 9: it is [1], and an object with {', '.join(KEYS)} is needed",
        "line 10: it is blank",
    ]
    assert found[9].startswith("line 11: it is not JSON: ")
    assert found[9].endswith(" (character 151)")
    assert found[10:] == ["line 12: image '101' stands in a file of the split train already"]


def test_a_file_cut_off_in_its_traces_is_told(tmp_path):
    lines = [f"{narrative(*each)}\n" for each in FIVE_TIMES]
    for cut in range(lines[-1].index('"timed_caption"') + 20, len(lines[-1]) - 2, 7):
        with pytest.raises(ValueError, match=r"line 1 column"):
            narrative_values(lines[-1][:cut].encode())
    (found,) = problems(tmp_path, [*lines[:-1], lines[-1][:-9]])
    assert found.startswith("line 5: it is not JSON: ")


def test_a_long_list_of_problems_is_cut_and_counted(tmp_path):
    found = problems(tmp_path, ["{}\n"] * 1_020)
    assert len(found) == 21
    assert found[19:] == ["line 20: dataset_id is missing", "… and 1,000 more"]


def test_bytes_that_are_no_text_are_told(tmp_path):
    assert "can't decode byte" in problems(tmp_path, [b'{"dataset_id": "\xff"}\n'])[0]


def test_an_empty_file_is_told(tmp_path):
    assert problems(tmp_path, []) == ["it is empty"]


def test_a_part_that_is_not_there_is_named(tmp_path):
    write_coco(tmp_path / "narratives", tmp_path / "coco")
    name = "coco_train_localized_narratives-00002-of-00004.jsonl"
    (tmp_path / "narratives" / name).unlink()
    with pytest.raises(ManifestError) as caught:
        built(tmp_path)
    assert f"put there coco_train_captions.jsonl, or else {name}, under" in str(caught.value)


# --- What is read of a line -----------------------------------------------------------------------


@given(st.text(), st.text(), st.integers(0, 999), st.booleans())
def test_what_is_read_of_a_line_is_what_all_of_it_says(caption, image, annotator, as_ascii):
    """Whatever the caption holds, the words before which reading stops among it."""
    for text in (caption, f'{caption}, "timed_caption": [', f'"timed_caption": {caption}\\'):
        values = json.loads(narrative("mscoco", image, annotator, text))
        line = json.dumps(values, ensure_ascii=as_ascii).encode("utf-8", "surrogatepass")
        for key in KEYS:
            assert narrative_values(line)[key] == values[key]


def test_traces_are_not_decoded():
    line = narrative("mscoco_val2017", "1", 1, "A.").replace("0.2086", "broken").encode()
    assert set(narrative_values(line)) == set(KEYS)


def test_lines_of_other_makers_are_read_too():
    """With keys in another order, and without blanks between them."""
    values = json.loads(narrative("mscoco_val2017", "1", 1, "A."))
    for line in (
        json.dumps(dict(reversed(values.items()))),
        json.dumps(values, separators=(",", ":")),
        json.dumps({"timed_caption": values.pop("timed_caption")} | values),
    ):
        assert narrative_values(line.encode())["caption"] == "A."

"""What the preparation of the open clip art pairs makes of descriptions, pictures and packages."""

import hashlib
import json

import pytest
import torch
from PIL import Image, ImageDraw

from adaptiveembed.data.pairs import read_manifest
from examples.openclipart import prepare
from examples.openclipart.prepare import Metadata, PreparationError, Wheel
from tests.examples import lite0

SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg">
  <metadata>
    <rdf:RDF xmlns:cc="http://web.resource.org/cc/" xmlns:dc="http://purl.org/dc/elements/1.1/"
             xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
      <cc:Work rdf:about="">
        <dc:title>{title}</dc:title>
        <dc:description>{description}</dc:description>
        <dc:subject><rdf:Bag>{keywords}</rdf:Bag></dc:subject>
        <dc:creator><cc:Agent><dc:title>Somebody</dc:title></cc:Agent></dc:creator>
        <dc:language>{language}</dc:language>
      </cc:Work>
    </rdf:RDF>
  </metadata>
  <path d="M 0 0"/>
</svg>
"""


def write_svg(path, title, description="", keywords=(), language="en"):
    listed = "".join(f"<rdf:li>{keyword}</rdf:li>" for keyword in keywords)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        SVG.format(title=title, description=description, keywords=listed, language=language),
        encoding="utf-8",
    )


def described(title="", description="", keywords=(), language="en"):
    return Metadata(title, description, tuple(keywords), language)


# Descriptions.


def test_a_drawing_says_title_description_keywords_and_language(tmp_path):
    write_svg(tmp_path / "a.svg", "A  red\n boat", "It sails &amp; sinks.", ["boat", "", "sea"])
    assert prepare.read_metadata(tmp_path / "a.svg") == Metadata(
        "A red boat", "It sails & sinks.", ("boat", "", "sea"), "en"
    )


@pytest.mark.parametrize("content", ["<svg", "<svg></svg>", ""])
def test_a_drawing_that_says_nothing_or_is_broken_is_passed_over(content, tmp_path):
    (tmp_path / "a.svg").write_text(content)
    assert prepare.read_metadata(tmp_path / "a.svg") is None


def test_a_text_is_title_description_and_keywords():
    text = prepare.text_of("Baseball Bat", "Made of wood.", ["bat", "ball_game", "bat"])
    assert text == "Baseball Bat. Made of wood. bat, ball game."


def test_a_text_leaves_out_what_says_nothing():
    assert prepare.text_of("Bat", "bat", ["", "hash", "unsorted", "11", "0xa125234"]) == "Bat."
    assert prepare.text_of("Bat", "me@example.org", []) == "Bat."
    assert prepare.text_of("Bat", "From http://example.org/bat", []) == "Bat. From."
    assert prepare.text_of("Bat", "HASH(0x858b108)", []) == "Bat."
    assert prepare.text_of("", "", ["-"]) == ""


def test_letters_of_other_scripts_are_left_out():
    assert (
        prepare.text_of("Soviet shuttle", "Buran (Буран), é", []) == "Soviet shuttle. Buran (), é."
    )


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("tiger02", "tiger"),
        ("Stickyman 001", "Stickyman"),
        ("happyMonkey_2", "happy Monkey 2"),
        ("Ice Cream Cone (3 Scoop)", "Ice Cream Cone (3 Scoop)"),
    ],
)
def test_serial_numbers_are_taken_from_titles_and_counts_are_kept(title, said):
    assert prepare.tidy(prepare.title_of("any/file", title, 1)) == said


@pytest.mark.parametrize(
    ("title", "pictures"),
    [
        ("", 1),
        ("Lemon theme", prepare.SHARED),
        ("Clipart by Somebody - piggybank", 1),
        ("Part of the Flat Icon Collection (Wed)", 1),
    ],
)
def test_the_name_of_the_file_stands_for_the_title_of_a_collection(title, pictures):
    assert prepare.tidy(prepare.title_of("a/14_red-tree2", title, pictures)) == "red tree"


def test_titles_and_descriptions_of_many_pictures_are_not_used():
    many = {
        f"icons/{name}": described("Lemon theme", "Some icons", ["icon"])
        for name in ("open", "close", "save", "print", "undo")
    }
    texts = prepare.texts({**many, "x/boat": described("A boat", "Red")})
    assert texts["icons/save"] == "save. icon."
    assert texts["x/boat"] == "A boat. Red."


def test_descriptions_in_other_languages_and_empty_ones_are_left_out():
    languages = {"a": "en", "b": "", "c": "en_US", "d": "All", "e": "fr-FR", "f": "it", "g": "pl"}
    texts = prepare.texts(
        {name: described(f"title {name}", language=code) for name, code in languages.items()}
        | {"12": described()}
    )
    assert set(texts) == {"a", "b", "c", "d"}


def test_texts_of_the_same_words_are_the_same():
    texts = {"b": "Red boat. sea.", "a": "sea boat, RED", "c": "2 red boats on the sea"}
    pairs = [(name, prepare.words(texts[name])) for name in sorted(texts)]
    assert prepare.first_of_each(pairs) == ["a", "c"]


# Pictures.


def drawing(side=600, page=(600, 600), at=(0, 0)):
    """A red disc on a transparent page."""
    picture = Image.new("RGBA", page)
    corner = (at[0] + side - 1, at[1] + side - 1)
    ImageDraw.Draw(picture).ellipse((*at, *corner), fill="red")
    return picture


def saved(picture, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return path


def test_copies_are_bounded_and_on_white_paper(tmp_path):
    copy = prepare.bounded(saved(drawing(), tmp_path / "disc.png"))
    assert (copy.mode, copy.size) == ("RGB", (256, 256))
    assert copy.getpixel((0, 0)) == (255, 255, 255)
    assert copy.getpixel((128, 128)) == (255, 0, 0)


def test_small_pictures_keep_their_size(tmp_path):
    assert prepare.bounded(saved(drawing(60, (60, 60)), tmp_path / "disc.png")).size == (60, 60)


def test_empty_parts_of_the_page_are_cut_off(tmp_path):
    source = saved(drawing(100, (800, 1100), at=(500, 20)), tmp_path / "disc.png")
    assert prepare.bounded(source).size == (100, 100)


def test_one_drawing_on_two_pages_looks_the_same(tmp_path):
    alone = prepare.bounded(saved(drawing(90, (90, 90)), tmp_path / "alone.png"))
    small = prepare.bounded(saved(drawing(90, (300, 400), at=(7, 9)), tmp_path / "small.png"))
    assert prepare.look(alone) == prepare.look(small) != b""


def test_drawings_of_other_shape_or_colour_look_different(tmp_path):
    disc = prepare.bounded(saved(drawing(), tmp_path / "disc.png"))
    looks = {
        prepare.look(picture)
        for picture in (
            disc,
            disc.resize((256, 100)),
            disc.transpose(Image.Transpose.FLIP_LEFT_RIGHT).point(lambda value: value // 2),
            Image.new("RGB", (50, 50), "green"),
        )
    }
    assert len(looks) == 4


@pytest.mark.parametrize("picture", [Image.new("RGBA", (9, 9)), Image.new("L", (9, 9), 255)])
def test_blank_pictures_look_like_nothing(picture, tmp_path):
    source = saved(picture, tmp_path / "blank.png")
    assert prepare.copied_picture(source, tmp_path / "copies/blank.png") == b""


def test_pictures_beyond_the_guard_of_pillow_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    for side in (40, 60):  # a warning, then an error
        source = saved(drawing(side, (side, side)), tmp_path / f"{side}.png")
        assert prepare.copied_picture(source, tmp_path / "copy.png") == b""
    assert not (tmp_path / "copy.png").exists()


def test_a_copy_that_is_there_is_not_made_again(tmp_path):
    copy = saved(Image.new("RGB", (20, 20), "green"), tmp_path / "copy.png")
    before = copy.read_bytes()
    assert prepare.copied_picture(tmp_path / "missing.png", copy)
    assert copy.read_bytes() == before


def test_only_the_pictures_of_pairs_are_kept(tmp_path):
    for name in ("a/1.png", "a/2.png", "b/3.png", "b/4.unfinished"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    prepare.keep_only(tmp_path, ["a/2"])
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["a", "2.png"]


# The manifest.


def test_queries_are_fifteen_in_a_hundred_and_depend_on_the_ids_alone():
    ids = [f"animals/{number}" for number in range(200)]
    queries = prepare.query_ids(ids)
    assert len(queries) == 30
    assert prepare.query_ids(ids[::-1]) == queries


def test_the_manifest_is_one_that_the_library_reads(tmp_path):
    saved(drawing(9, (9, 9)), tmp_path / "pictures/a/b.png")
    prepare.write_manifest(tmp_path / "manifest.jsonl", [("a/b", "Un café. red.", True)])
    (pair,) = read_manifest(tmp_path / "manifest.jsonl")
    assert (pair.id, pair.text, pair.split) == ("a/b", "Un café. red.", "query")
    assert pair.media == tmp_path / "pictures/a/b.png"


@pytest.fixture
def packages(tmp_path):
    """A tree like that of the packages: two drawings of their own, the others left out."""
    root = tmp_path / "unpacked/usr/share/openclipart"
    for name, title, picture in (
        ("a/disc", "A red disc", drawing(90, (99, 99))),
        ("a/same_text", "red disc, a", drawing(50, (90, 99)).rotate(90)),
        ("b/other", "A red ball", drawing(90, (120, 120))),
        ("b/page", "Page", Image.new("RGB", (90, 120), "blue")),
        ("b/blank", "Blank", Image.new("RGBA", (9, 9))),
    ):
        write_svg(root / f"svg/{name}.svg", title)
        saved(picture, root / f"png/{name}.png")
    write_svg(root / "svg/c/without_picture.svg", "None")
    (root / "svg/c/linked.svg").symlink_to(root / "svg/a/disc.svg")
    saved(drawing(), root / "png/c/linked.png")
    return tmp_path


def test_each_text_and_each_picture_remains_once(packages, monkeypatch, capsys):
    monkeypatch.setattr(prepare, "PLAUSIBLE", range(1, 5))
    said = prepare.pairs_of_the_packages(packages)
    assert read_manifest(packages / "manifest.jsonl").ids == ("a/disc", "b/page")
    assert sorted(path.name for path in (packages / "pictures").rglob("*.png")) == [
        "disc.png",
        "page.png",
    ]
    assert "2 pairs" in said
    assert "1 of a text already there, 1 blank or too large, 1 of a picture already there" in said
    assert "5 pictures, 4 distinct texts" in capsys.readouterr().out


@pytest.mark.usefixtures("capsys")
def test_an_implausible_number_of_pairs_is_an_error_and_no_manifest(packages):
    with pytest.raises(PreparationError, match="2 pairs remain"):
        prepare.pairs_of_the_packages(packages)
    assert not (packages / "manifest.jsonl").exists()


# Packages and steps.


def test_what_is_there_is_not_made_again(tmp_path, monkeypatch, capsys):
    (tmp_path / "manifest.jsonl").touch()
    (tmp_path / "models/minilm").mkdir(parents=True)
    monkeypatch.setattr(prepare, "efficientnet", lambda _: "made now")
    prepare.prepare(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "manifest.jsonl: there already",
        "models/minilm: there already",
        "models/efficientnet_lite0: made now",
    ]


def test_packages_that_lie_there_are_taken(tmp_path):
    names = [f"{name}_1_all.deb" for name in prepare.DEBIAN_PACKAGES]
    (tmp_path / "downloads").mkdir()
    for name in names:
        (tmp_path / "downloads" / name).touch()
    assert [file.name for file in prepare.debian_files(tmp_path)] == names


def test_apt_keeps_to_a_folder_of_its_own(tmp_path):
    options = prepare.apt_options(tmp_path)
    assert f"Dir::State::Lists={tmp_path}/lists" in options
    assert f"Dir::Cache={tmp_path}/cache" in options


def test_another_wheel_than_the_one_we_know_is_refused(tmp_path):
    wheel = Wheel("some-name", "0.1", hashlib.sha256(b"right").hexdigest())
    (tmp_path / "downloads").mkdir()
    file = tmp_path / "downloads/some_name-0.1-py3-none-any.whl"
    file.write_bytes(b"right")
    assert prepare.wheel_file(tmp_path, wheel) == file
    file.write_bytes(b"wrong")
    with pytest.raises(PreparationError, match="delete the file and start again"):
        prepare.wheel_file(tmp_path, wheel)


def test_a_program_that_fails_is_quoted_with_what_to_do(tmp_path):
    with pytest.raises(PreparationError, match=r"(?s)sh failed; do this\. It said:\n  no network"):
        prepare.run(["sh", "-c", "echo no network >&2; exit 3"], tmp_path, "do this")


def test_what_was_said_before_a_failure_is_quoted_too(tmp_path):
    said = prepare.run(["sh", "-c", "echo no mirror"], tmp_path, "do this")
    with pytest.raises(PreparationError, match=r"(?s)no mirror\n  no package"):
        prepare.run(["sh", "-c", "echo no package; exit 1"], tmp_path, "do this", said=said)


def test_a_program_that_is_missing_is_named_with_what_to_do(tmp_path):
    with pytest.raises(PreparationError, match="there is no a-missing-program on this machine; do"):
        prepare.run(["a-missing-program"], tmp_path, "do this")


def test_errors_are_one_line_and_no_traceback(tmp_path, monkeypatch):
    def fail(_folder):
        raise PreparationError("nothing can be reached")

    monkeypatch.setattr(prepare, "pairs_of_the_packages", fail)
    monkeypatch.setattr("sys.argv", ["prepare.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="error: nothing can be reached"):
        prepare.main()


def test_what_a_killed_run_left_behind_is_removed(tmp_path):
    (tmp_path / ".unfinished/half").mkdir(parents=True)
    with prepare.temporary_folder(tmp_path) as private:
        assert list(private.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_unfinished_leaves_nothing(tmp_path):
    def fail():
        with prepare.new_model(tmp_path, "minilm") as model:
            (model / "config.json").touch()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list((tmp_path / "models").iterdir()) == []


# Weights.


def test_every_published_convolution_is_folded_under_our_name():
    folded = prepare.folded_tensors(lite0.random_weights(seed=0))
    assert len(folded) == 2 * (1 + 16 * 3 - 1 + 1)
    assert {"stem.weight", "blocks.0.depthwise.bias", "blocks.15.expand.weight"} <= set(folded)
    assert "blocks.0.expand.weight" not in folded


def test_folding_by_hand():
    weights = lite0.random_weights(seed=0)
    folded = prepare.folded_tensors(weights)
    factor = weights["_bn1.weight"] / torch.sqrt(weights["_bn1.running_var"] + 1e-3)
    expected = weights["_conv_head.weight"][5, 7] * factor[5]
    assert folded["head.weight"][5, 7].item() == pytest.approx(expected.item(), rel=1e-6)
    expected = weights["_bn1.bias"][5] - weights["_bn1.running_mean"][5] * factor[5]
    assert folded["head.bias"][5].item() == pytest.approx(expected.item(), rel=1e-5)


def test_what_the_picture_encoder_must_be_shown_stands_beside_its_weights(tmp_path):
    with prepare.new_model(tmp_path, "efficientnet_lite0") as model:
        prepare.save_lite0(lite0.random_weights(seed=0), model)
    config = json.loads((tmp_path / "models/efficientnet_lite0/config.json").read_text())
    assert config == {"side": 224, "mean": 127.0, "deviation": 128.0}

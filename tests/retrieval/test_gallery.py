"""A gallery is what it was given, in memory and on disk, or an error that says what is wrong."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from adaptiveembed.errors import (
    DtypeError,
    DuplicateIdError,
    EmptyBatchError,
    GalleryFormatError,
    NotFiniteError,
    NotNormalizedError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.retrieval import Gallery, gallery, search
from adaptiveembed.similarity.kernels.compiler import has_byte_product
from adaptiveembed.structure import PAPER_LAYOUT, CandidateSets, GroupLayout
from tests.retrieval.galleries import make_world, worlds
from tests.similarity.sets import unit_sets

PAIR = GroupLayout((1, 1))
KINDS = [torch.float32, torch.float16]
every_kind = pytest.mark.parametrize("dtype", KINDS, ids=str)


def small_gallery(items=4, dim=6, dtype=torch.float32, layout=PAIR):
    return make_world("random", items, 1, layout, dim, dtype=dtype).gallery


def same(found, expected):
    """Equal bits in everything that a search reads."""
    assert (found.ids, found.layout) == (expected.ids, expected.layout)
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert found.rows.dtype == expected.rows.dtype
    if expected.inverse_norms is not None:
        np.testing.assert_array_equal(found.inverse_norms, expected.inverse_norms)
    if expected.screen is not None:
        for name, array in vars(expected.screen).items():
            np.testing.assert_array_equal(getattr(found.screen, name), array)


# --- In memory ------------------------------------------------------------------------------------


@every_kind
def test_candidates_come_back_as_they_were_given(dtype):
    candidates = CandidateSets(unit_sets(5, 8, 6, dtype=dtype), PAPER_LAYOUT)
    made = Gallery.from_candidates([f"id {item}" for item in range(5)], candidates)
    places = np.array([3, 0, 3])
    assert torch.equal(made.candidates(places).vectors, candidates.vectors[places])
    assert (len(made), made.dim, made.layout) == (5, 6, PAPER_LAYOUT)


def test_vectors_lie_by_position():
    candidates = CandidateSets(unit_sets(5, 8, 6), PAPER_LAYOUT)
    made = Gallery.from_candidates(tuple("abcde"), candidates)
    np.testing.assert_array_equal(made.rows, candidates.vectors.permute(1, 0, 2))
    assert made.rows.flags.c_contiguous


def test_bfloat16_becomes_float32_of_unit_length():
    candidates = CandidateSets(unit_sets(5, 2, 64, dtype=torch.bfloat16), PAIR)
    made = Gallery.from_candidates(tuple("abcde"), candidates)
    assert made.rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made.rows, axis=-1), 1, rtol=0, atol=1e-6)
    directions = torch.nn.functional.normalize(candidates.vectors.float(), dim=-1)
    np.testing.assert_allclose(made.rows.transpose(1, 0, 2), directions, rtol=0, atol=1e-6)


def test_ids_lead_to_places():
    made = small_gallery()
    assert made.indices_of(["item 2", "item 0", "item 2"]).tolist() == [2, 0, 2]
    assert made.indices_of([]).dtype == np.int64


@every_kind
def test_taking_items_keeps_their_ids_and_vectors_in_the_order_asked(dtype):
    made = small_gallery(dtype=dtype)
    taken = made.take(np.array([3, 1]))
    assert taken.ids == ("item 3", "item 1")
    np.testing.assert_array_equal(taken.rows, made.rows[:, [3, 1]])
    assert len(made.take(np.array([], np.int64))) == 0


@every_kind
def test_taken_items_are_screened_and_scaled_as_in_a_gallery_of_their_own(dtype):
    whole = small_gallery(items=20, dtype=dtype)
    assert whole.screen is not None or not has_byte_product()
    places = np.array([7, 2, 19])
    taken = whole.take(places)
    same(taken, Gallery(taken.ids, whole.rows[:, places].copy(), PAIR))


def test_a_short_text_describes_it():
    made = small_gallery(dtype=torch.float16)
    assert repr(made) == "Gallery(4 items, layout 1+1, dim 6, float16)"


# --- On disk --------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(world=worlds())
def test_saved_and_opened_is_the_same_bit_for_bit(tmp_path_factory, world):
    folder = tmp_path_factory.mktemp("galleries") / "new folder" / "gallery"
    world.gallery.save(folder)
    opened = Gallery.open(folder)
    same(opened, world.gallery)
    found, expected = (search(each, world.queries, 9) for each in (opened, world.gallery))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.scores, expected.scores)


@every_kind
def test_an_empty_gallery_is_saved_and_opened(dtype, tmp_path):
    world = make_world("random", 0, 2, PAIR, 6, dtype=dtype)
    world.gallery.save(tmp_path / "gallery")
    opened = Gallery.open(tmp_path / "gallery")
    same(opened, world.gallery)
    assert opened.dim == 6
    assert (search(opened, world.queries, 3).indices == -1).all()


@every_kind
def test_an_opened_gallery_is_mapped_and_not_read(dtype, tmp_path):
    small_gallery(dtype=dtype).save(tmp_path / "gallery")
    assert isinstance(Gallery.open(str(tmp_path / "gallery")).rows, np.memmap)


@every_kind
def test_an_opened_gallery_computes_nothing_again(dtype, tmp_path, monkeypatch):
    world = make_world("random", 1500, 3, PAIR, 16, dtype=dtype)
    expected = search(world.gallery, world.queries, 5)
    world.gallery.save(tmp_path / "gallery")

    def refuse(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr(gallery, "byte_gallery", refuse)
    monkeypatch.setattr(gallery, "inverse_norms", refuse)
    found = search(Gallery.open(tmp_path / "gallery"), world.queries, 5)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_gallery_saved_without_a_screen_makes_one_when_it_is_searched(tmp_path, monkeypatch):
    world = make_world("random", 1500, 3, PAIR, 16)
    with monkeypatch.context() as patch:
        patch.setattr(gallery, "has_byte_product", lambda: False)
        world.gallery.save(tmp_path / "gallery")
    assert not list((tmp_path / "gallery").glob("screen*"))
    opened = Gallery.open(tmp_path / "gallery")
    same(opened, Gallery(world.gallery.ids, world.gallery.rows, PAIR))


def test_a_saved_screen_is_left_aside_where_bytes_have_no_product(tmp_path, monkeypatch):
    world = make_world("random", 1500, 3, PAIR, 16)
    expected = search(world.gallery, world.queries, 5)
    world.gallery.save(tmp_path / "gallery")
    monkeypatch.setattr(gallery, "has_byte_product", lambda: False)
    opened = Gallery.open(tmp_path / "gallery")
    assert opened.screen is None
    np.testing.assert_array_equal(search(opened, world.queries, 5).scores, expected.scores)


def test_ids_of_any_text_survive(tmp_path):
    ids = ["", "ключ", 'a "b"\n', "\u2028", "0"]
    made = Gallery.from_candidates(ids, CandidateSets(unit_sets(5, 2, 3), PAIR))
    made.save(tmp_path / "gallery")
    assert Gallery.open(tmp_path / "gallery").ids == tuple(ids)


def test_an_opened_gallery_can_be_saved_again(tmp_path):
    made = small_gallery(dtype=torch.float16)
    made.save(tmp_path / "one")
    Gallery.open(tmp_path / "one").save(tmp_path / "two")
    same(Gallery.open(tmp_path / "two"), made)


def test_nothing_is_overwritten(tmp_path):
    made = small_gallery()
    made.save(tmp_path / "gallery")
    with pytest.raises(GalleryFormatError, match="gallery exists; remove it or choose another"):
        small_gallery(items=2).save(tmp_path / "gallery")
    same(Gallery.open(tmp_path / "gallery"), made)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(GalleryFormatError, match="file exists"):
        made.save(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_save_that_is_cut_off_leaves_nothing(error, written, tmp_path, monkeypatch):
    real, calls = np.save, []

    def save(path, *arguments, **options):
        calls.append(path)
        if len(calls) > written:
            raise error
        real(path, *arguments, **options)

    monkeypatch.setattr(np, "save", save)
    with pytest.raises(error):
        small_gallery(dtype=torch.float16).save(tmp_path / "gallery")
    assert not list(tmp_path.iterdir())


# --- Damaged --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A saved gallery of 4 items, 2 positions and 6 dimensions in half precision."""
    small_gallery(dtype=torch.float16).save(tmp_path / "gallery")
    return tmp_path / "gallery"


def write_array(name, array):
    return lambda folder: np.save(folder / name, array)


def write_text(name, text):
    return lambda folder: (folder / name).write_text(text)


def write_facts(**changes):
    def change(folder):
        facts = json.loads((folder / "gallery.json").read_text()) | changes
        kept = {name: value for name, value in facts.items() if value is not None}
        (folder / "gallery.json").write_text(json.dumps(kept))

    return change


def rows_of(*shape):
    return np.full(shape, shape[-1] ** -0.5, np.float16)


FILES = ["gallery.json", "ids.json", "rows.npy", "inverse_norms.npy"]
FILES += [f"screen_{part}.npy" for part in ("words", "scales", "bands") if has_byte_product()]
DAMAGE = {
    "gallery.json a list": ("gallery.json", write_text("gallery.json", "[]")),
    "gallery.json empty": ("gallery.json", write_text("gallery.json", "{}")),
    "of another program": ("gallery.json", write_facts(format="theirs")),
    "no layout": ("gallery.json", write_facts(layout=None)),
    "layout in words": ("gallery.json", write_facts(layout="two")),
    "layout a number": ("gallery.json", write_facts(layout=2)),
    "no shape": ("gallery.json", write_facts(shape=None)),
    "shape of two axes": ("gallery.json", write_facts(shape=[2, 4])),
    "no dtype": ("gallery.json", write_facts(dtype=None)),
    "shape of more items": ("rows.npy", write_facts(shape=[2, 5, 6])),
    "dtype of another kind": ("rows.npy", write_facts(dtype="float32")),
    "rows of fewer items": ("rows.npy", write_array("rows.npy", rows_of(2, 3, 6))),
    "rows of more dimensions": ("rows.npy", write_array("rows.npy", rows_of(2, 4, 7))),
    "rows of another kind": ("rows.npy", write_array("rows.npy", rows_of(2, 4, 6).astype("f4"))),
    "rows column by column": ("rows.npy", write_array("rows.npy", rows_of(2, 4, 6).copy("F"))),
    "rows a single number": ("rows.npy", write_array("rows.npy", np.float16(1))),
    "norms of fewer items": (
        "inverse_norms.npy",
        write_array("inverse_norms.npy", np.ones((2, 3), np.float32)),
    ),
    "norms of another kind": ("inverse_norms.npy", write_array("inverse_norms.npy", np.eye(2, 4))),
    "ids no list": ("ids.json", write_text("ids.json", "{}")),
    "layout of more positions": ("gallery is damaged", write_facts(layout="2+1")),
    "fewer ids": ("gallery is damaged", write_text("ids.json", '["a", "b", "c"]')),
    "an id twice": ("gallery is damaged", write_text("ids.json", '["a", "b", "c", "a"]')),
    "ids not text": ("gallery.* is damaged", write_text("ids.json", "[1, 2, 3, 4]")),
}


@pytest.mark.parametrize("name", FILES)
def test_a_missing_empty_or_truncated_file_is_named(name, folder):
    path = folder / name
    content = path.read_bytes()
    for damaged in (b"", content[:20], content[:-2], b"\x80" * len(content)):
        path.write_bytes(damaged)
        with pytest.raises(GalleryFormatError, match=rf"{name} .*; (save|give)"):
            Gallery.open(folder)
    path.unlink()
    if name != "screen_words.npy":  # the screen is made again, if it was not saved
        with pytest.raises(GalleryFormatError, match=rf"{name} .*; (save|give)"):
            Gallery.open(folder)


@pytest.mark.parametrize(("named", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_a_file_that_does_not_fit_is_named(named, damage, folder):
    damage(folder)
    with pytest.raises(GalleryFormatError, match=named):
        Gallery.open(folder)


@pytest.mark.skipif(not has_byte_product(), reason="no product of bytes, no screen")
@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("screen_words.npy", np.zeros((2, 4, 1), np.uint32)),
        ("screen_words.npy", np.zeros((2, 4, 2), np.float32)),
        ("screen_scales.npy", np.zeros((2, 3), np.float32)),
        ("screen_scales.npy", np.zeros((2, 4), np.float16)),
        ("screen_bands.npy", np.zeros((4, 2), np.float32)),
        ("screen_bands.npy", np.zeros((2, 4), np.float64)),
    ],
)
def test_a_screen_that_does_not_fit_is_named(name, array, folder):
    np.save(folder / name, array)
    with pytest.raises(GalleryFormatError, match=name):
        Gallery.open(folder)


def test_another_version_is_refused_and_both_named(folder):
    write_facts(version=2)(folder)
    expected = r"gallery of version 2 and this library reads version 1; save it again"
    with pytest.raises(GalleryFormatError, match=expected):
        Gallery.open(folder)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(GalleryFormatError, match=r"nowhere.*cannot be read .*; give the folder"):
        Gallery.open(tmp_path / "nowhere")


# --- What is refused ------------------------------------------------------------------------------


def rows_with(*changes, dtype=np.float32):
    rows = np.ascontiguousarray(small_gallery().rows)
    for position, item, factor in changes:
        rows[position, item] *= factor
    return rows.astype(dtype)


def made_of(rows, ids=("a", "b", "c", "d"), layout=PAIR):
    return Gallery(tuple(ids), rows, layout)


def test_an_id_that_is_given_twice_is_refused():
    with pytest.raises(DuplicateIdError, match="ids name 'a' more than once; name each once"):
        made_of(rows_with(), ids="abca")
    with pytest.raises(DuplicateIdError, match="'item 1' more than once"):
        small_gallery().take(np.array([1, 0, 1]))


def test_a_text_is_not_a_list_of_ids():
    candidates = CandidateSets(unit_sets(5, 2, 64), PAIR)
    with pytest.raises(DtypeError, match=r"got the text 'abcde'; use \['abcde'\]"):
        Gallery.from_candidates("abcde", candidates)


def test_an_unknown_id_is_named():
    with pytest.raises(UnknownIdError, match=r"'x' is not in .* 4 items; add the item or correct"):
        small_gallery().indices_of(["item 0", "x"])
    with pytest.raises(UnknownIdError, match=r"'x' is not in .* \(nor are 2 more\)"):
        small_gallery().indices_of(["x", "y", "z"])


def test_one_text_is_not_a_list_of_ids():
    with pytest.raises(DtypeError, match=r"got the text 'item 0'; use \['item 0'\]"):
        small_gallery().indices_of("item 0")


@pytest.mark.parametrize("place", [4, -1])
def test_places_outside_of_the_gallery_are_refused(place):
    for ask in (small_gallery().take, small_gallery().candidates):
        with pytest.raises(UnknownIdError, match=f"item {place} is not in .* 4 items; choose 0 to"):
            ask(np.array([0, place]))


def test_candidates_of_no_item_are_refused():
    with pytest.raises(EmptyBatchError, match="at least one item"):
        small_gallery().candidates(np.array([], np.int64))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint8])
def test_other_types_of_numbers_are_refused(dtype):
    with pytest.raises(DtypeError, match=f"float32 or float16, got {np.dtype(dtype)}; use"):
        made_of(rows_with(dtype=dtype))


@pytest.mark.parametrize("shape", [(2, 4), (3, 4, 6), (2, 4, 0), (1, 2, 4, 6)], ids=str)
def test_rows_of_another_shape_are_refused(shape):
    with pytest.raises(ShapeError, match=r"rows of layout 1\+1 are \[2, items, dim\], got "):
        made_of(np.zeros(shape, np.float32))


@pytest.mark.parametrize("ids", ["abc", "abcde", ""])
def test_one_id_per_item_is_needed(ids):
    with pytest.raises(ShapeError, match=f"got {len(ids)} ids for 4 items; give one id per item"):
        made_of(rows_with(), ids=ids)


def test_rows_that_do_not_lie_in_order_are_refused():
    with pytest.raises(ShapeError, match=r"do not lie in order .* np\.ascontiguousarray"):
        made_of(np.asfortranarray(rows_with()))


@pytest.mark.parametrize(
    ("factor", "dtype"),
    [
        (0.0, np.float32),
        (1 + 2e-5, np.float32),
        (1 - 2e-5, np.float32),
        (np.nan, np.float32),
        (np.inf, np.float32),
        (0.0, np.float16),
        (1.01, np.float16),
        (np.nan, np.float16),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in multiply")  # zero times infinity
def test_vectors_that_are_not_of_unit_length_are_refused(factor, dtype):
    kind, rest = NotNormalizedError, "has length .*; use Candid"
    if factor == 0:
        rest = "is zero and has no direction; leave"
    elif not np.isfinite(factor):
        kind, rest = NotFiniteError, "holds NaN or infinity; look for the cause"
    with pytest.raises(kind, match=f"item 2 at position 1 {rest}"):
        made_of(rows_with((1, 2, factor), dtype=dtype))


@pytest.mark.parametrize(("factor", "dtype"), [(1 + 5e-6, np.float32), (1 - 4e-4, np.float16)])
def test_lengths_within_what_rounding_costs_are_accepted(factor, dtype):
    assert len(made_of(rows_with((1, 2, factor), dtype=dtype))) == 4

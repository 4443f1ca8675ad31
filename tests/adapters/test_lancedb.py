"""A gallery in a Lance table is read back to the bit."""

import numpy as np
import pyarrow as pa
import pytest
import torch

pytest.importorskip("lance")

import lance

from adaptiveembed.adapters import lancedb
from adaptiveembed.adapters.exports import Origin
from adaptiveembed.adapters.lancedb import read_lance, write_lance
from adaptiveembed.errors import GalleryFormatError, LayoutMismatchError, SettingError
from adaptiveembed.structure import GroupLayout
from tests.adapters.galleries import LAYOUT, ORIGIN, exported, same


@pytest.fixture
def place(tmp_path):
    return tmp_path / "items.lance"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_what_was_written_is_read_back_to_the_bit(place, dtype):
    gallery = exported(dtype=dtype)
    write_lance(place, gallery, "model-1")
    assert same(read_lance(place, ORIGIN), gallery)
    assert same(read_lance(str(place), ORIGIN), gallery)


def test_items_come_back_in_their_order_over_many_batches(place, monkeypatch):
    monkeypatch.setattr(lancedb, "NUMBERS_AT_ONCE", 3 * 5 * 6)
    gallery = exported(items=10)
    write_lance(place, gallery, "model-1")
    assert same(read_lance(place, ORIGIN), gallery)


def test_a_row_holds_the_positions_one_after_another_in_a_list_of_fixed_size(place):
    gallery = exported(dtype=torch.float16)
    write_lance(place, gallery, "model-1")
    table = lance.dataset(str(place)).to_table()
    assert table.schema.field("vectors").type == pa.list_(pa.float16(), 5 * 6)
    row = np.array(table["vectors"][4].as_py(), np.float16).reshape(5, 6)
    assert np.array_equal(row, gallery.rows[:, 4])


def test_lance_finds_by_some_positions_the_item_that_they_were_taken_from(place):
    gallery = exported()
    write_lance(place, gallery, "model-1")
    asked = np.zeros((5, 6), np.float32)
    asked[:2] = gallery.rows[:2, 3]
    nearest = {"column": "vectors", "q": asked.ravel(), "k": 1, "metric": "dot"}
    (found,) = lance.dataset(str(place)).to_table(nearest=nearest)["id"].to_pylist()
    assert found == gallery.ids[3]


def test_vectors_of_another_origin_are_refused(place):
    write_lance(place, exported(), "model-1")
    with pytest.raises(LayoutMismatchError, match=r"have layout 2\+3, needed is 5"):
        read_lance(place, Origin(GroupLayout((5,)), "model-1"))
    with pytest.raises(GalleryFormatError, match="fingerprint 'model-1', needed is 'model-2'"):
        read_lance(place, Origin(LAYOUT, "model-2"))


def test_a_table_that_exists_is_not_written_over(place):
    write_lance(place, exported(), "model-1")
    with pytest.raises(SettingError, match="exists already; choose a new folder"):
        write_lance(place, exported(items=3), "model-1")
    assert same(read_lance(place, ORIGIN), exported())


def test_a_table_that_lost_a_row_is_refused(place):
    write_lance(place, exported(), "model-1")
    lance.dataset(str(place)).delete("id = 'item 2'")
    with pytest.raises(GalleryFormatError, match="holds 6 items and says that 7 were written"):
        read_lance(place, ORIGIN)


def test_other_folders_and_tables_are_refused(place):
    with pytest.raises(GalleryFormatError, match="is no Lance table that can be read"):
        read_lance(place, ORIGIN)
    lance.write_dataset(pa.table({"id": ["a"]}), str(place))
    with pytest.raises(GalleryFormatError, match="holds something else"):
        read_lance(place, ORIGIN)

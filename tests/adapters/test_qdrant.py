"""A gallery in a Qdrant collection is read back to the bit, in memory and on disk."""

import numpy as np
import pytest
import torch

pytest.importorskip("qdrant_client")

from qdrant_client import QdrantClient, models

from adaptiveembed.adapters import qdrant
from adaptiveembed.adapters.exports import Origin
from adaptiveembed.adapters.qdrant import read_qdrant, write_qdrant
from adaptiveembed.errors import GalleryFormatError, LayoutMismatchError, SettingError
from adaptiveembed.similarity import maxsim_matrix
from adaptiveembed.structure import GroupLayout
from tests.adapters.galleries import LAYOUT, ORIGIN, exported, same


@pytest.fixture
def client():
    found = QdrantClient(":memory:")
    yield found
    found.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_what_was_written_is_read_back_to_the_bit(client, dtype):
    gallery = exported(dtype=dtype)
    write_qdrant(client, "items", gallery, "model-1")
    assert same(read_qdrant(client, "items", ORIGIN), gallery)


def test_items_come_back_in_their_order_over_many_requests(client, monkeypatch):
    monkeypatch.setattr(qdrant, "NUMBERS_AT_ONCE", 3 * 5 * 6)
    gallery = exported(items=10)
    write_qdrant(client, "items", gallery, "model-1")
    assert same(read_qdrant(client, "items", ORIGIN), gallery)


def test_a_collection_on_disk_is_found_again(tmp_path):
    gallery = exported(dtype=torch.float16)
    client = QdrantClient(path=str(tmp_path))
    write_qdrant(client, "items", gallery, "model-1")
    client.close()
    client = QdrantClient(path=str(tmp_path))
    assert same(read_qdrant(client, "items", ORIGIN), gallery)
    client.close()


def test_qdrant_itself_searches_the_multivectors_by_maxsim(client):
    gallery = exported()
    write_qdrant(client, "items", gallery, "model-1")
    sets = gallery.candidates(np.arange(7)).vectors
    asked = sets[3:4, :2]
    found = client.query_points("items", query=asked[0].tolist(), limit=7).points
    scores = maxsim_matrix(asked, sets)[0]
    assert [each.payload["id"] for each in found] == [
        gallery.ids[place] for place in scores.argsort(descending=True)
    ]
    np.testing.assert_allclose(
        [each.score for each in found], scores.sort(descending=True)[0], 1e-5
    )


def test_vectors_of_another_origin_are_refused(client):
    write_qdrant(client, "items", exported(), "model-1")
    with pytest.raises(LayoutMismatchError, match=r"'items' have layout 2\+3, needed is 5"):
        read_qdrant(client, "items", Origin(GroupLayout((5,)), "model-1"))
    with pytest.raises(GalleryFormatError, match="fingerprint 'model-1', needed is 'model-2'"):
        read_qdrant(client, "items", Origin(LAYOUT, "model-2"))


def test_a_collection_that_exists_is_not_written_over(client):
    write_qdrant(client, "items", exported(), "model-1")
    with pytest.raises(SettingError, match="'items' exists already; choose another name"):
        write_qdrant(client, "items", exported(items=3), "model-1")
    assert same(read_qdrant(client, "items", ORIGIN), exported())


def test_a_collection_that_lost_a_point_is_refused(client):
    write_qdrant(client, "items", exported(), "model-1")
    client.delete("items", [2])
    with pytest.raises(GalleryFormatError, match="holds 6 items and says that 7 were written"):
        read_qdrant(client, "items", ORIGIN)


def test_other_collections_are_refused(client):
    with pytest.raises(GalleryFormatError, match="there is no collection 'items'"):
        read_qdrant(client, "items", ORIGIN)
    config = models.VectorParams(size=6, distance=models.Distance.DOT)
    client.create_collection("items", vectors_config=config)
    with pytest.raises(GalleryFormatError, match="'items' holds something else"):
        read_qdrant(client, "items", ORIGIN)

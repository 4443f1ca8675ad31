"""Candidate sets as multivectors of a Qdrant collection, and back.

A point is an item: its number in the gallery, a multivector of all its positions in order, and the
payload ``{"id": …}``. Qdrant itself compares multivectors by MaxSim, without asking which position
a vector stands at: use what it finds as a shortlist, and score that by SetSim.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptiveembed.adapters.exports import Origin, Stated, item_sets
from adaptiveembed.adapters.libraries import library
from adaptiveembed.errors import GalleryFormatError, SettingError
from adaptiveembed.retrieval.gallery import Gallery

NUMBERS_AT_ONCE = 1 << 20
"""Numbers that one request sends or fetches: as JSON some 20 MB, and a server takes 32."""


def write_qdrant(
    client: Any,  # noqa: ANN401 - qdrant_client.QdrantClient, which is optional
    collection: str,
    gallery: Gallery,
    fingerprint: str,
) -> None:
    """Make a collection of the gallery's items, vectors in the gallery's number type."""
    if client.collection_exists(collection):
        raise SettingError(
            f"collection {collection!r} exists already; choose another name, or delete it first"
        )
    stated = Stated.by(gallery, fingerprint)
    client.create_collection(
        collection, vectors_config=_vectors_config(stated), metadata=stated.metadata()
    )
    for part in stated.parts(NUMBERS_AT_ONCE):
        client.upsert(collection, _points(gallery, part), wait=True)


def read_qdrant(
    client: Any,  # noqa: ANN401 - as above
    collection: str,
    origin: Origin,
) -> Gallery:
    """The gallery of a collection, to the bit, if its vectors are of this origin."""
    place = f"collection {collection!r}"
    if not client.collection_exists(collection):
        raise GalleryFormatError(f"there is no {place}; export a gallery, or correct the name")
    stated = Stated.read(place, client.get_collection(collection).config.metadata or {})
    stated.require(origin, place)
    stated.require_complete(client.count(collection, exact=True).count, place)
    ids, rows = [""] * stated.items, stated.empty_rows()
    for part in stated.parts(NUMBERS_AT_ONCE):
        numbers = list(range(stated.items)[part])
        points = client.retrieve(collection, numbers, with_payload=["id"], with_vectors=True)
        for point in points:
            ids[point.id] = point.payload["id"]
            rows[:, point.id] = np.asarray(point.vector, stated.dtype)
    return Gallery(tuple(ids), rows, origin.layout)


def _vectors_config(stated: Stated) -> object:
    models = library("qdrant_client.models")
    return models.VectorParams(
        size=stated.dim,
        # Of unit vectors the product is the cosine; asked for cosines, Qdrant would divide by
        # lengths again and change the last bits.
        distance=models.Distance.DOT,
        datatype=models.Datatype(stated.dtype),
        multivector_config=models.MultiVectorConfig(
            comparator=models.MultiVectorComparator.MAX_SIM
        ),
    )


def _points(gallery: Gallery, part: slice) -> list[object]:
    models = library("qdrant_client.models")
    sets = item_sets(gallery, part)
    return [
        models.PointStruct(id=part.start + place, vector=each.tolist(), payload={"id": item})
        for place, (item, each) in enumerate(zip(gallery.ids[part], sets, strict=True))
    ]

"""Candidate sets as a Lance table, which LanceDB opens, and back.

A row is an item: ``id``, and ``vectors``, a list of fixed size that holds the vectors of all
positions one after another. One nearest-neighbour index over this column serves every selection:
ask with zeros at the positions that are not active.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adaptiveembed.adapters.exports import Origin, Stated, item_sets
from adaptiveembed.adapters.libraries import library
from adaptiveembed.errors import GalleryFormatError, SettingError
from adaptiveembed.retrieval.gallery import Gallery

NUMBERS_AT_ONCE = 1 << 24
"""Numbers that are held in memory beside the gallery while it is written."""


def write_lance(folder: str | Path, gallery: Gallery, fingerprint: str) -> None:
    """Write the gallery as a new table, vectors in the gallery's number type.

    LanceDB finds the table ``items`` of the database ``shop`` at ``shop/items.lance``.
    """
    if Path(folder).exists():
        raise SettingError(f"{folder} exists already; choose a new folder, or delete it first")
    stated = Stated.by(gallery, fingerprint)
    schema = _schema(stated)
    batches = (_batch(gallery, part, schema) for part in stated.parts(NUMBERS_AT_ONCE))
    library("lance").write_dataset(pa.RecordBatchReader.from_batches(schema, batches), str(folder))


def read_lance(folder: str | Path, origin: Origin) -> Gallery:
    """The gallery of a table, to the bit, if its vectors are of this origin."""
    table = _opened(folder)
    found = {key.decode(): each.decode() for key, each in (table.schema.metadata or {}).items()}
    stated = Stated.read(str(folder), found)
    stated.require(origin, str(folder))
    stated.require_complete(table.count_rows(), str(folder))
    ids: list[str] = []
    rows = stated.empty_rows()
    for batch in table.to_batches(columns=["id", "vectors"]):
        sets = np.asarray(batch["vectors"].flatten()).reshape(len(batch), len(rows), stated.dim)
        rows[:, len(ids) : len(ids) + len(batch)] = sets.transpose(1, 0, 2)
        ids += batch["id"].to_pylist()
    return Gallery(tuple(ids), rows, origin.layout)


def _schema(stated: Stated) -> pa.Schema:
    size = stated.origin.layout.num_candidates * stated.dim
    kind = pa.from_numpy_dtype(np.dtype(stated.dtype))
    columns = {"id": pa.string(), "vectors": pa.list_(kind, size)}
    return pa.schema(columns, metadata=stated.metadata())


def _batch(gallery: Gallery, part: slice, schema: pa.Schema) -> pa.RecordBatch:
    numbers = pa.array(item_sets(gallery, part).ravel())
    vectors = pa.FixedSizeListArray.from_arrays(numbers, type=schema.field("vectors").type)
    return pa.RecordBatch.from_arrays([pa.array(gallery.ids[part]), vectors], schema=schema)


def _opened(folder: str | Path) -> Any:  # noqa: ANN401 - lance.LanceDataset, which is optional
    try:
        return library("lance").dataset(str(folder))
    except (ValueError, OSError) as error:
        raise GalleryFormatError(
            f"{folder} is no Lance table that can be read ({error}); export the gallery again"
        ) from error

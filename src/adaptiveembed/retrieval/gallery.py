"""A gallery: the full candidate sets of every item, in memory or mapped from a folder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from adaptiveembed.errors import (
    AdaptiveEmbedError,
    DtypeError,
    GalleryFormatError,
    NotFiniteError,
    NotNormalizedError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.retrieval.rows import inverse_norms, squared_lengths, unit_rows
from adaptiveembed.retrieval.storage import Screen, StoredGallery, read_gallery, write_gallery
from adaptiveembed.shapes import GalleryIndices
from adaptiveembed.similarity.kernels.codes import LARGEST_DIM, ByteGallery, byte_gallery
from adaptiveembed.similarity.kernels.compiler import has_byte_product
from adaptiveembed.similarity.kernels.panels import Floats, StoredVectors
from adaptiveembed.structure.candidates import UNIT_LENGTH_TOLERANCE, CandidateSets
from adaptiveembed.structure.groups import GroupLayout, require_layout
from adaptiveembed.structure.ids import checked_ids, distinct_ids

TOLERANCES = {
    np.dtype(np.float32): UNIT_LENGTH_TOLERANCE[torch.float32],
    np.dtype(np.float16): UNIT_LENGTH_TOLERANCE[torch.float16],
}


_building = threading.Lock()


@dataclass(frozen=True, eq=False, repr=False)
class Gallery:
    """Items with an id and all their candidates; which positions count is the query's choice (R6).

    Vectors lie by position, [positions, items, dim], so that a selection reads only what it
    compares. They are checked once, when made. Half-precision vectors are read as unit vectors.
    The order of the items is the order in which equal scores are listed.
    """

    ids: tuple[str, ...]
    rows: np.ndarray  # not a named shape: the errors below say what to do
    layout: GroupLayout

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", checked_ids(self.ids))
        require_layout(self.layout)
        _require_rows(self.rows, self.layout, len(self.ids))
        _require_unit_length(self.rows)
        distinct_ids(self.ids)

    @classmethod
    def from_candidates(cls, ids: Sequence[str], candidates: CandidateSets) -> Gallery:
        """A gallery in memory; bfloat16 becomes float32, since arrays do not have it."""
        if not isinstance(candidates, CandidateSets):
            raise DtypeError(
                f"a gallery is made from CandidateSets, got {type(candidates).__name__}; "
                f"use CandidateSets.normalized(tensor, layout)"
            )
        ids, vectors = checked_ids(ids), candidates.numpy()
        if candidates.vectors.dtype == torch.bfloat16:
            vectors = unit_rows(vectors)
        rows = np.array(vectors.transpose(1, 0, 2), order="C")  # always a copy
        _require_rows(rows, candidates.layout, len(ids))
        return _already_checked(distinct_ids(ids), rows, candidates.layout)

    @classmethod
    def open(cls, folder: str | Path) -> Gallery:
        """A saved gallery, mapped into memory: only what is searched is read."""
        stored = read_gallery(Path(folder))
        try:
            _require_rows(stored.rows, stored.layout, len(stored.ids))
            distinct_ids(stored.ids)
        except AdaptiveEmbedError as error:
            raise GalleryFormatError(
                f"{folder} is damaged ({error}); save the gallery again"
            ) from error
        gallery = _already_checked(stored.ids, stored.rows, stored.layout)
        if stored.inverse_norms is not None:
            gallery.__dict__["inverse_norms"] = stored.inverse_norms
        if stored.screen is not None and has_byte_product():
            gallery.__dict__["screen"] = ByteGallery(*stored.screen)
        return gallery

    def save(self, folder: str | Path) -> None:
        """Write the gallery to a new folder, which appears whole or not at all."""
        found = self.screen
        screen = None if found is None else Screen(found.words, found.scales, found.bands)
        content = StoredGallery(self.ids, self.layout, self.rows, self.inverse_norms, screen)
        write_gallery(content, Path(folder))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kind = self.rows.dtype
        return f"Gallery({len(self)} items, layout {self.layout}, dim {self.dim}, {kind})"

    @property
    def dim(self) -> int:
        return int(self.rows.shape[2])

    @cached_property
    def stored(self) -> StoredVectors:
        """The vectors as the kernels read them."""
        return StoredVectors(self.rows, self.inverse_norms)

    @cached_property
    def inverse_norms(self) -> Floats | None:
        """What makes half-precision vectors unit vectors; float32 vectors are read as they are."""
        return inverse_norms(self.rows) if self.rows.dtype == np.float16 else None

    @cached_property
    def screen(self) -> ByteGallery | None:
        """The vectors as bytes, by which search rules most items out; made at first use.

        It takes a quarter of the memory of float32. None where the processor has no product of
        bytes, or vectors are longer than the screen's proof: search then scores every item.
        """
        if not has_byte_product() or self.dim > LARGEST_DIM:
            return None
        with _building:
            # Another thread may have made it while this one waited.
            known = self.__dict__.get("screen")
            if known is None:
                known = self.__dict__["screen"] = byte_gallery(self.rows, self.inverse_norms)
            return known

    def indices_of(self, ids: Sequence[str]) -> GalleryIndices:
        """The place of each id in the gallery."""
        ids = checked_ids(ids)
        unknown = [each for each in ids if each not in self._places]
        if unknown:
            raise UnknownIdError(
                f"{unknown[0]!r} is not in the gallery of {len(self)} items"
                f"{f' (nor are {len(unknown) - 1} more)' if unknown[1:] else ''}; "
                f"add the item or correct the id"
            )
        return np.array([self._places[each] for each in ids], np.int64)

    def take(self, indices: np.ndarray) -> Gallery:
        """A gallery of these items, in this order."""
        chosen = self.require_places(indices)
        ids = distinct_ids(self.ids[index] for index in chosen.tolist())
        return _already_checked(ids, np.ascontiguousarray(self.rows[:, chosen]), self.layout)

    def candidates(self, indices: np.ndarray) -> CandidateSets:
        """The candidate sets of these items."""
        chosen = self.rows[:, self.require_places(indices)]
        vectors = torch.from_numpy(np.ascontiguousarray(chosen.transpose(1, 0, 2)))
        return CandidateSets(vectors, self.layout)

    def require_places(self, indices: np.ndarray) -> GalleryIndices:
        """The places as 64-bit numbers in order in memory, if they are places of this gallery."""
        places = np.asarray(indices)
        if places.dtype.kind not in "iu" and places.size:
            raise DtypeError(
                f"items are chosen by whole numbers, got {places.dtype}; "
                f"turn a mask into places with np.flatnonzero(mask)"
            )
        if places.ndim != 1:
            raise ShapeError(f"places are [items], got shape {places.shape}; use .ravel()")
        wrong = places[(places < 0) | (places >= len(self))]
        if wrong.size:
            raise UnknownIdError(
                f"item {wrong[0]} is not in the gallery of {len(self)} items; "
                f"choose 0 to {len(self) - 1}"
            )
        return np.ascontiguousarray(places, np.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {each: place for place, each in enumerate(self.ids)}


def _already_checked(ids: tuple[str, ...], rows: np.ndarray, layout: GroupLayout) -> Gallery:
    """A gallery of vectors whose lengths were measured before."""
    gallery = object.__new__(Gallery)
    for name, value in (("ids", ids), ("rows", rows), ("layout", layout)):
        object.__setattr__(gallery, name, value)
    return gallery


def _require_rows(rows: object, layout: GroupLayout, num_ids: int) -> None:
    if not isinstance(rows, np.ndarray):
        raise DtypeError(
            f"rows are an array, got {type(rows).__name__}; use Gallery.from_candidates"
        )
    if rows.dtype not in TOLERANCES:
        raise DtypeError(
            f"a gallery holds float32 or float16, got {rows.dtype}; use .astype(np.float32)"
        )
    if rows.ndim != 3 or rows.shape[0] != layout.num_candidates or rows.shape[2] == 0:
        raise ShapeError(
            f"rows of layout {layout} are [{layout.num_candidates}, items, dim], got {rows.shape}; "
            f"use Gallery.from_candidates"
        )
    if rows.shape[1] != num_ids:
        raise ShapeError(f"got {num_ids} ids for {rows.shape[1]} items; give one id per item")
    if not rows.flags.c_contiguous:
        raise ShapeError("rows do not lie in order in memory; use np.ascontiguousarray(rows)")


def _require_unit_length(rows: NDArray[np.floating]) -> None:
    tolerance = TOLERANCES[rows.dtype]
    for position, vectors in enumerate(rows):
        lengths = np.sqrt(squared_lengths(vectors))
        # A length that is not a number is not within anything.
        wrong = np.flatnonzero(~(np.abs(lengths - 1) <= tolerance))
        if wrong.size:
            raise _length_error(int(wrong[0]), position, float(lengths[wrong[0]]), tolerance)


def _length_error(item: int, position: int, length: float, tolerance: float) -> AdaptiveEmbedError:
    where = f"the vector of item {item} at position {position}"
    if not np.isfinite(length):
        return NotFiniteError(
            f"{where} holds NaN or infinity; look for the cause in what made it, or leave it out"
        )
    if length == 0:
        return NotNormalizedError(f"{where} is zero and has no direction; leave the item out")
    return NotNormalizedError(
        f"{where} has length {length:.6g}, needed is 1 within {tolerance:g}; "
        f"use CandidateSets.normalized and Gallery.from_candidates"
    )

"""A gallery: the full candidate sets of every item, in memory or mapped from a folder."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from adaptiveembed.errors import (
    DtypeError,
    DuplicateIdError,
    GalleryFormatError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.retrieval.rows import inverse_norms, unit_rows
from adaptiveembed.shapes import GalleryIndices
from adaptiveembed.similarity.kernels.calls import StoredVectors
from adaptiveembed.similarity.kernels.codes import ByteGallery, byte_gallery
from adaptiveembed.similarity.kernels.compiler import has_byte_product
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.groups import GroupLayout

FORMAT, VERSION = "adaptiveembed.gallery", 1


@dataclass(frozen=True, eq=False, repr=False)
class Gallery:
    """Items with an id and all their candidates each; which positions count is each query's choice (R6).

    Vectors lie by position, [positions, items, dim], so that a selection reads only what it compares. Half-precision
    vectors are read as unit vectors. The order of the items is the order in which equal scores are listed.
    """

    ids: tuple[str, ...]
    rows: NDArray[np.floating]
    layout: GroupLayout

    def __post_init__(self) -> None:
        _require_rows(self.rows, self.layout, len(self.ids))
        _require_distinct(self.ids)

    @classmethod
    def from_candidates(cls, ids: Sequence[str], candidates: CandidateSets) -> Gallery:
        """A gallery in memory; bfloat16 becomes float32, which numpy has."""
        vectors = candidates.numpy()
        if candidates.vectors.dtype == torch.bfloat16:
            vectors = unit_rows(vectors)
        rows = np.ascontiguousarray(vectors.transpose(1, 0, 2))
        return cls(tuple(ids), rows, candidates.layout)

    @classmethod
    def open(cls, folder: str | Path) -> Gallery:
        """A saved gallery, mapped into memory: only what is searched is read."""
        folder = Path(folder)
        facts = _read_facts(folder)
        rows = _map(folder / "rows.npy")
        gallery = cls(_read_ids(folder), rows, GroupLayout.parse(facts["layout"]))
        if list(rows.shape) != facts["shape"] or rows.dtype.name != facts["dtype"]:
            raise GalleryFormatError(
                f"{folder / 'rows.npy'} holds {rows.dtype.name} {list(rows.shape)} and gallery.json says "
                f"{facts['dtype']} {facts['shape']}; the folder is damaged, save the gallery again"
            )
        gallery.__dict__.update(_map_derived(folder, rows))
        return gallery

    def save(self, folder: str | Path) -> None:
        """Write the gallery to a new folder, which appears whole or not at all."""
        folder = Path(folder)
        if folder.exists():
            raise GalleryFormatError(f"{folder} exists; remove it or choose another folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            self._write(partial)
            partial.chmod(0o755)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Gallery({len(self)} items, layout {self.layout}, dim {self.dim}, {self.rows.dtype})"
        )

    @property
    def dim(self) -> int:
        return int(self.rows.shape[2])

    @cached_property
    def stored(self) -> StoredVectors:
        """The vectors as the kernels read them."""
        return StoredVectors(self.rows, self.inverse_norms)

    @cached_property
    def inverse_norms(self) -> NDArray[np.float32] | None:
        """What turns half-precision vectors into unit vectors; float32 vectors are read as they are."""
        return inverse_norms(self.rows) if self.rows.dtype == np.float16 else None

    @cached_property
    def screen(self) -> ByteGallery | None:
        """The vectors as bytes, by which search rules most items out; made at first use, a quarter of float32.

        None where the processor has no product of bytes: search then scores every item.
        """
        if not has_byte_product():
            return None
        return byte_gallery(self.rows, self.inverse_norms)

    def indices_of(self, ids: Sequence[str]) -> GalleryIndices:
        """The place of each id in the gallery."""
        unknown = [each for each in ids if each not in self._places]
        if unknown:
            raise UnknownIdError(
                f"{unknown[0]!r} is not in the gallery of {len(self)} items"
                f"{f' (nor are {len(unknown) - 1} more ids)' if unknown[1:] else ''}; "
                f"add the item or correct the id"
            )
        return np.array([self._places[each] for each in ids], np.int64)

    def take(self, indices: GalleryIndices) -> Gallery:
        """A gallery of these items, in this order."""
        chosen = np.asarray(indices, np.int64)
        ids = tuple(self.ids[index] for index in chosen.tolist())
        return Gallery(ids, np.ascontiguousarray(self.rows[:, chosen]), self.layout)

    def candidates(self, indices: GalleryIndices) -> CandidateSets:
        """The candidate sets of these items."""
        chosen = np.ascontiguousarray(
            self.rows[:, np.asarray(indices, np.int64)].transpose(1, 0, 2)
        )
        return CandidateSets(torch.from_numpy(chosen), self.layout)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {each: place for place, each in enumerate(self.ids)}

    def _write(self, folder: Path) -> None:
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "layout": str(self.layout),
            "shape": list(self.rows.shape),
            "dtype": self.rows.dtype.name,
        }
        (folder / "gallery.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        (folder / "ids.json").write_text(json.dumps(self.ids), encoding="utf-8")
        for name, array in _arrays(self):
            np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _arrays(gallery: Gallery) -> Iterator[tuple[str, NDArray[np.generic]]]:
    yield "rows", gallery.rows
    if gallery.inverse_norms is not None:
        yield "inverse_norms", gallery.inverse_norms
    if gallery.screen is not None:
        yield "screen_words", gallery.screen.words
        yield "screen_scales", gallery.screen.scales
        yield "screen_errors", gallery.screen.errors


def _map_derived(folder: Path, rows: NDArray[np.generic]) -> dict[str, object]:
    """What was computed when the gallery was saved, by the names of the properties that would compute it."""
    derived: dict[str, object] = {}
    if rows.dtype == np.float16:
        derived["inverse_norms"] = _map_as(folder / "inverse_norms.npy", rows.shape[:2])
    if has_byte_product() and (folder / "screen_words.npy").exists():
        words = _map_as(folder / "screen_words.npy", (*rows.shape[:2], -(-rows.shape[2] // 4)))
        scales = _map_as(folder / "screen_scales.npy", rows.shape[:2])
        errors = _map_as(folder / "screen_errors.npy", rows.shape[:2])
        derived["screen"] = ByteGallery(words, scales, errors)
    return derived


def _map_as(path: Path, shape: tuple[int, ...]) -> NDArray[np.generic]:
    array = _map(path)
    if array.shape != shape:
        raise GalleryFormatError(
            f"{path} has shape {array.shape}, needed is {shape}; the folder is damaged, save the gallery again"
        )
    return array


def _map(path: Path) -> NDArray[np.generic]:
    try:
        # An array without items cannot be mapped.
        mode = "r" if path.stat().st_size > 128 else None
        array: NDArray[np.generic] = np.load(path, mmap_mode=mode, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise GalleryFormatError(
            f"{path} cannot be read ({error}); the folder is damaged, save the gallery again"
        ) from error
    return array


def _read_facts(folder: Path) -> dict[str, str]:
    facts = _read_json(folder / "gallery.json")
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise GalleryFormatError(f"{folder / 'gallery.json'} does not describe a gallery")
    if facts.get("version") != VERSION:
        raise GalleryFormatError(
            f"{folder} is a gallery of version {facts.get('version')} and this library reads version "
            f"{VERSION}; save it again with this library or install the one that made it"
        )
    return facts


def _read_ids(folder: Path) -> tuple[str, ...]:
    ids = _read_json(folder / "ids.json")
    if not isinstance(ids, list):
        raise GalleryFormatError(f"{folder / 'ids.json'} holds no list of ids")
    return tuple(ids)


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GalleryFormatError(
            f"{path} cannot be read ({error}); give the folder of a saved gallery"
        ) from error


def _require_rows(rows: NDArray[np.generic], layout: GroupLayout, num_ids: int) -> None:
    if rows.dtype not in {np.dtype(np.float32), np.dtype(np.float16)}:
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


def _require_distinct(ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for each in ids:
        if not isinstance(each, str):
            raise DtypeError(f"ids are text, got {each!r}; use str({each!r})")
        if each in seen:
            raise DuplicateIdError(f"id {each!r} is given twice; every item needs an id of its own")
        seen.add(each)

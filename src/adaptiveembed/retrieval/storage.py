"""A gallery as a folder: JSON and plain arrays, written whole or not at all, mapped when read."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.errors import AdaptiveEmbedError, GalleryFormatError
from adaptiveembed.structure.groups import GroupLayout

FORMAT, VERSION = "adaptiveembed.gallery", 1

Array = NDArray[Any]


class Screen(NamedTuple):
    """What search rules items out by: the vectors as bytes."""

    words: Array
    scales: Array
    bands: Array


@dataclass(frozen=True, eq=False)
class StoredGallery:
    """What the folder of a gallery holds."""

    ids: tuple[str, ...]
    layout: GroupLayout
    rows: Array
    inverse_norms: Array | None
    screen: Screen | None


@dataclass(frozen=True)
class _Expected:
    """What an array must be."""

    dtype: str
    shape: tuple[int, ...]


def write_gallery(content: StoredGallery, folder: Path) -> None:
    """Make the folder, which must not exist."""
    if folder.exists():
        raise GalleryFormatError(f"{folder} exists; remove it or choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write_files(content, partial)
        partial.chmod(0o755)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def read_gallery(folder: Path) -> StoredGallery:
    """Map the arrays of a folder, after comparing each with what gallery.json says."""
    facts = _read_facts(folder)
    try:
        layout = GroupLayout.parse(facts["layout"])
        positions, items, dim = (int(number) for number in facts["shape"])
        dtype = str(facts["dtype"])
    except (AdaptiveEmbedError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(folder / "gallery.json", f"layout, shape or dtype: {error!r}") from error
    rows = _map(folder / "rows.npy", _Expected(dtype, (positions, items, dim)))
    each = _Expected("float32", (positions, items))
    halves = dtype == "float16"
    norms = _map(folder / "inverse_norms.npy", each) if halves else None
    return StoredGallery(_read_ids(folder), layout, rows, norms, _read_screen(folder, each, dim))


def _read_screen(folder: Path, each: _Expected, dim: int) -> Screen | None:
    if not (folder / "screen_words.npy").exists():
        return None
    words = _Expected("uint32", (*each.shape, -(-dim // 4)))
    names = Screen._fields
    kinds = (words, each, each)
    return Screen(*(_map(folder / f"screen_{n}.npy", k) for n, k in zip(names, kinds, strict=True)))


def _write_files(content: StoredGallery, folder: Path) -> None:
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "layout": str(content.layout),
        "shape": list(content.rows.shape),
        "dtype": content.rows.dtype.name,
    }
    (folder / "gallery.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    (folder / "ids.json").write_text(json.dumps(content.ids), encoding="utf-8")
    for name, array in _arrays(content):
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _arrays(content: StoredGallery) -> Iterator[tuple[str, Array]]:
    yield "rows", content.rows
    if content.inverse_norms is not None:
        yield "inverse_norms", content.inverse_norms
    if content.screen is not None:
        for name, array in content.screen._asdict().items():
            yield f"screen_{name}", array


def _map(path: Path, expected: _Expected) -> Array:
    try:
        # What holds no numbers cannot be mapped.
        mapped = None if 0 in expected.shape else "r"
        array: Array = np.load(path, mmap_mode=mapped, allow_pickle=False)  # type: ignore[arg-type]
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path, str(error)) from error
    if array.shape != expected.shape or array.dtype.name != expected.dtype:
        found = f"{array.dtype.name} {array.shape}"
        raise _damaged(path, f"it holds {found}, needed is {expected.dtype} {expected.shape}")
    if not array.flags.c_contiguous:
        raise _damaged(path, "its numbers lie in another order than they are read in")
    return array


def _read_facts(folder: Path) -> dict[str, Any]:
    facts = _read_json(folder / "gallery.json")
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise GalleryFormatError(
            f"{folder / 'gallery.json'} does not describe a gallery; give a saved gallery's folder"
        )
    if facts.get("version") != VERSION:
        raise GalleryFormatError(
            f"{folder} is a gallery of version {facts.get('version')} and this library reads "
            f"version {VERSION}; save it again, or install the library that made it"
        )
    return facts


def _read_ids(folder: Path) -> tuple[str, ...]:
    ids = _read_json(folder / "ids.json")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise _damaged(folder / "ids.json", "it holds no list of texts")
    return tuple(ids)


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GalleryFormatError(
            f"{path} cannot be read ({error}); give the folder of a saved gallery"
        ) from error


def _damaged(path: Path, what: str) -> GalleryFormatError:
    return GalleryFormatError(f"{path} is damaged ({what}); save the gallery again")

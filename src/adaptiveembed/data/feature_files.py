"""Files of arrays, read and written part by part: ``.npz`` and safetensors.

Nothing in them is ever run: arrays of Python objects are refused.
"""

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, runtime_checkable
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from adaptiveembed.errors import AdaptiveEmbedError, FeatureStoreError

IDS, FINGERPRINT = "ids", "fingerprint"

LARGEST_HEADER = 100_000_000
"""Bytes of a header that safetensors reads."""


class StoredArray(NamedTuple):
    """An array of a file, not read yet."""

    dtype: str
    shape: tuple[int, ...]
    parts: Callable[[int], Generator[Tensor, None, None]]
    """The array from its first row to its last, so many rows at a time."""


@dataclass(frozen=True)
class FeatureFile:
    """What a file holds."""

    ids: Sequence[object] | None
    fingerprint: str | None
    arrays: Mapping[str, StoredArray]


class NewArray(NamedTuple):
    """An array to be written."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    parts: Callable[[], Iterator[np.ndarray]]
    """The array from its first row to its last."""

    @property
    def size(self) -> int:
        """Bytes of all numbers."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


@contextmanager
def opened(path: Path) -> Iterator[FeatureFile]:
    """What the file holds; its arrays can be read until it is closed."""
    try:
        with _format(path).opened(path) as file:
            yield file
    except AdaptiveEmbedError:
        raise
    except FileNotFoundError:
        raise FeatureStoreError(f"there is no file {path}; correct the path") from None
    except (OSError, EOFError, ValueError, KeyError, BadZipFile, SafetensorError) as error:
        raise FeatureStoreError(f"{path} cannot be read ({error}); write it again") from error


def write(
    path: Path, file: IO[bytes], content: FeatureFile, arrays: Mapping[str, NewArray]
) -> None:
    """Write ids, fingerprint and arrays in the format that the end of ``path`` tells."""
    _format(path).write(file, content, arrays)


class _Format(NamedTuple):
    opened: Callable[[Path], AbstractContextManager[FeatureFile]]
    write: Callable[[IO[bytes], FeatureFile, Mapping[str, NewArray]], None]


def _format(path: Path) -> _Format:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise FeatureStoreError(
            f"{path} ends in {path.suffix or 'nothing'}; features are exchanged as "
            f"{' or '.join(_FORMATS)}"
        )
    return found


# --- .npz: a zip archive of arrays in NumPy's format ----------------------------------------------


@contextmanager
def _opened_npz(path: Path) -> Iterator[FeatureFile]:
    with ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        texts = {name: _npz_texts(archive, name) for name in (IDS, FINGERPRINT) if name in names}
        arrays = {name: _npz_array(archive, name) for name in names if name not in texts}
        ids, fingerprint = texts.get(IDS), texts.get(FINGERPRINT)
        yield FeatureFile(
            None if ids is None else ids.tolist(),
            None if fingerprint is None else str(fingerprint),
            arrays,
        )


def _npz_texts(archive: ZipFile, name: str) -> np.ndarray:
    with archive.open(f"{name}.npy") as file:
        _, _, dtype = _npy_header(file)
    if dtype.kind != "U":
        raise FeatureStoreError(
            f"{archive.filename}: {name} holds {dtype}; make it texts with np.array({name}, str)"
        )
    with archive.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _npz_array(archive: ZipFile, name: str) -> StoredArray:
    with archive.open(f"{name}.npy") as file:
        shape, column_by_column, dtype = _npy_header(file)

    def parts(rows: int) -> Generator[Tensor, None, None]:
        if column_by_column:
            raise ValueError(f"{name} lies column by column; save np.ascontiguousarray({name})")
        with archive.open(f"{name}.npy") as file:
            _npy_header(file)
            for start in range(0, shape[0], rows):
                part = (min(rows, shape[0] - start), *shape[1:])
                size = int(np.prod(part)) * dtype.itemsize
                numbers = np.frombuffer(bytearray(_exactly(file, size)), dtype).reshape(part)
                yield torch.from_numpy(numbers.astype(dtype.newbyteorder("="), copy=False))
            file.read(1)  # at its end, the archive compares the checksum

    return StoredArray(dtype.name, shape, parts)


@runtime_checkable
class _Readable(Protocol):
    """A file in an archive."""

    def read(self, size: int = -1, /) -> bytes: ...


def _npy_header(file: _Readable) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"arrays of version {version} are not known")
    shape, column_by_column, dtype = readers[version](file)
    return tuple(shape), bool(column_by_column), dtype


def _exactly(file: _Readable, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise EOFError("it ends too early")
    return content


def _write_npz(file: IO[bytes], content: FeatureFile, arrays: Mapping[str, NewArray]) -> None:
    with ZipFile(file, "w") as archive:
        for name, texts in ((IDS, content.ids), (FINGERPRINT, content.fingerprint)):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.array(texts, str), allow_pickle=False)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                facts = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
                np.lib.format.write_array_header_1_0(entry, facts)
                for part in array.parts():
                    entry.write(part.data)


# --- safetensors: a header in JSON, then the numbers ----------------------------------------------


@contextmanager
def _opened_safetensors(path: Path) -> Iterator[FeatureFile]:
    with safe_open(path, "pt") as file:
        facts = file.metadata() or {}
        ids = json.loads(facts[IDS]) if IDS in facts else None
        if ids is not None and not isinstance(ids, list):
            raise FeatureStoreError(f"{path}: ids of its metadata are no list; write one, in JSON")
        arrays = {name: _safetensors_array(file, name) for name in file.keys()}  # noqa: SIM118
        yield FeatureFile(ids, facts.get(FINGERPRINT), arrays)


_TYPES = {"BOOL": "bool", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


def _safetensors_array(file: Any, name: str) -> StoredArray:  # noqa: ANN401 - has no public type
    stored = file.get_slice(name)
    shape = tuple(stored.get_shape())

    def parts(rows: int) -> Generator[Tensor, None, None]:
        yield from (stored[start : start + rows] for start in range(0, shape[0], rows))

    kind = stored.get_dtype()
    return StoredArray(_TYPES.get(kind, kind), shape, parts)


def _write_safetensors(
    file: IO[bytes], content: FeatureFile, arrays: Mapping[str, NewArray]
) -> None:
    kinds = {np.dtype(name): kind for kind, name in _TYPES.items() if kind != "BF16"}
    facts: dict[str, object] = {
        "__metadata__": {IDS: json.dumps(content.ids), FINGERPRINT: content.fingerprint}
    }
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.size
        place = {"shape": array.shape, "data_offsets": [start, end]}
        facts[name] = {"dtype": kinds[array.dtype], **place}
    header = json.dumps(facts).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > LARGEST_HEADER:
        raise FeatureStoreError(
            f"the ids take {len(header):,} bytes and safetensors holds {LARGEST_HEADER:,}; "
            f"write .npz instead"
        )
    file.write(len(header).to_bytes(8, "little") + header)
    for array in arrays.values():
        for part in array.parts():
            file.write(part.data)


_FORMATS = {
    ".npz": _Format(_opened_npz, _write_npz),
    ".safetensors": _Format(_opened_safetensors, _write_safetensors),
}

"""Writing a feature store: append-only, in commits that are there whole or not at all.

A commit appends the numbers, waits until they are on the disk, and then appends one line to the
index. A process that is killed in between leaves numbers that no line names; the next writer
removes them. Readers see only what was committed when they opened the store, and are never
disturbed: nothing that a line names is ever changed.
"""

import fcntl
import os
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from types import TracebackType

import numpy as np
from torch import Tensor

from adaptiveembed.data.feature_index import (
    GLOBAL_FEATURE,
    HIDDEN_STATES,
    INDEX,
    NUMBERS,
    PADDING,
    Commit,
    FeatureHeader,
    FeatureIndex,
    StoredStates,
    is_unfinished_header,
    read_index,
    require_complete,
    row_bytes,
)
from adaptiveembed.errors import FeatureStoreError, NotFiniteError, SettingError, ShapeError
from adaptiveembed.shapes import FeatureRows
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.structure.ids import checked_ids, distinct_ids

LARGEST = float(np.finfo(NUMBERS).max)
"""The largest number that half precision holds."""

LOCK = "writer.lock"


class FeatureWriter:
    """Appends encoded items to the store in a folder, which it makes or continues.

    There is one writer at a time. Use it in a ``with`` statement, or close it.
    """

    def __init__(
        self,
        folder: str | Path,
        fingerprint: str,
        width: int,
        states: StoredStates = StoredStates.ALL,
    ) -> None:
        if width < 1:
            raise SettingError(f"features of width {width} were asked for; give at least 1")
        self.folder = Path(folder)
        self.header = FeatureHeader(fingerprint, width, states)
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(locked(self.folder))
            index = _continued(self.folder, self.header)
            self._sizes = index.file_sizes | {INDEX: index.size}
            self._files = {
                name: opened.enter_context(FileIO(self.folder / name, "r+")) for name in self._sizes
            }
            self._remove_unfinished()
            self._keys = dict(zip(index.ids, index.keys, strict=True))
            self._interrupted = False
            self._opened = opened.pop_all()

    def __enter__(self) -> "FeatureWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another writer have the store."""
        self._opened.close()

    def __len__(self) -> int:
        """Items stored."""
        return len(self._keys)

    def holds(self, item_id: str, key: str) -> bool:
        """Whether this item, with this content, is stored already."""
        return self._keys.get(item_id) == key

    def append(self, ids: Sequence[str], keys: Sequence[str], encoded: EncodedMedia) -> int:
        """Commit the items that are not stored yet, all or none; how many those were.

        An id that is stored with another key is replaced by what is given now.
        """
        ids, keys = distinct_ids(ids), checked_ids(keys, meaning="keys")
        self._require_fitting(ids, keys, encoded)
        new = [
            place
            for place, (item_id, key) in enumerate(zip(ids, keys, strict=True))
            if not self.holds(item_id, key)
        ]
        if new:
            chosen_ids, chosen_keys = [ids[place] for place in new], [keys[place] for place in new]
            numbers, counts = self._numbers(chosen_ids, encoded, new)
            self._commit(chosen_ids, chosen_keys, counts, numbers)
        return len(new)

    def _require_fitting(
        self, ids: Sequence[str], keys: Sequence[str], encoded: EncodedMedia
    ) -> None:
        if self._interrupted:
            raise FeatureStoreError(
                f"the last commit to {self.folder} was interrupted; open the writer again"
            )
        if not len(ids) == len(keys) == len(encoded):
            raise ShapeError(
                f"got {len(ids)} ids and {len(keys)} keys for {len(encoded)} encoded items; "
                f"give one of each per item"
            )
        if encoded.width != self.header.width:
            raise ShapeError(
                f"{self.folder} holds features of width {self.header.width} and item {ids[0]!r} "
                f"has width {encoded.width}; encode with the encoder that the store was made with"
            )

    def _numbers(
        self, ids: Sequence[str], encoded: EncodedMedia, places: Sequence[int]
    ) -> tuple[dict[str, FeatureRows], list[int]]:
        """The rows to append to each file, and how many states each item has."""
        chosen = list(places)
        items = np.arange(len(ids))
        features = _halved("global_feature", encoded.global_feature[chosen], ids, items)
        if self.header.states is StoredStates.NONE:
            return {GLOBAL_FEATURE: features}, []
        mask = encoded.mask[chosen]
        counts = mask.sum(dim=1).tolist()
        owners = np.repeat(items, counts)
        states = _halved("hidden_states", encoded.hidden_states[chosen][mask], ids, owners)
        return {GLOBAL_FEATURE: features, HIDDEN_STATES: states}, counts

    def _commit(
        self,
        ids: Sequence[str],
        keys: Sequence[str],
        counts: Sequence[int],
        numbers: dict[str, FeatureRows],
    ) -> None:
        self._interrupted = True  # until the last byte is on the disk
        contents = {name: rows.data.cast("B") for name, rows in numbers.items()}
        for name, content in contents.items():
            self._append(name, content)
        checksums = {name: zlib.crc32(content) for name, content in contents.items()}
        self._append(INDEX, memoryview(Commit(ids, keys, counts, checksums).line()))
        self._keys.update(zip(ids, keys, strict=True))
        self._interrupted = False

    def _append(self, name: str, content: memoryview) -> None:
        file = self._files[name]
        file.seek(self._sizes[name])
        write_all(file, content)
        os.fsync(file.fileno())
        self._sizes[name] += len(content)

    def _remove_unfinished(self) -> None:
        """Cut off what an interrupted commit left behind."""
        for name, size in self._sizes.items():
            if os.fstat(self._files[name].fileno()).st_size > size:
                self._files[name].truncate(size)


def write_all(file: FileIO, content: memoryview) -> None:
    """Write every byte, in as many pieces as the system takes."""
    while content:
        content = content[file.write(content) :]


def locked(folder: Path, name: str = LOCK) -> FileIO:
    """A lock of the folder, held until the file is closed or the process ends."""
    file = FileIO(folder / name, "a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read(20).decode("ascii", "replace")
        file.close()
        raise FeatureStoreError(
            f"process {holder or '?'} is writing to {folder}; wait until it is done, or stop it"
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()).encode())
    return file


def _continued(folder: Path, header: FeatureHeader) -> FeatureIndex:
    """The index of the store, which is begun if the folder has none."""
    path = folder / INDEX
    if not path.exists() or is_unfinished_header(path.read_bytes()):
        _begin(folder, header)
    index = read_index(folder)
    require_complete(folder, index)
    _require_same(folder, index.header, header)
    return index


def _begin(folder: Path, header: FeatureHeader) -> None:
    padding = bytes(PADDING * row_bytes(header))
    contents = {GLOBAL_FEATURE: b""}
    if header.states is StoredStates.ALL:
        contents[HIDDEN_STATES] = padding
    for name, content in {**contents, INDEX: header.line()}.items():
        with FileIO(folder / name, "w") as file:
            write_all(file, memoryview(content))
            os.fsync(file.fileno())
    entries = os.open(folder, os.O_RDONLY)
    os.fsync(entries)  # the names of the files
    os.close(entries)


def _require_same(folder: Path, stored: FeatureHeader, given: FeatureHeader) -> None:
    for name in ("fingerprint", "width", "states"):
        has, wants = getattr(stored, name), getattr(given, name)
        if has != wants:
            raise FeatureStoreError(
                f"{folder} holds features with {name} {has} and {wants} is to be written; "
                f"choose another folder"
            )


def _halved(name: str, values: Tensor, ids: Sequence[str], owners: np.ndarray) -> FeatureRows:
    """The rows in half precision; ``owners`` says which item each belongs to."""
    exact = values.detach().float().cpu().numpy()
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(exact, NUMBERS)
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if wrong.size:
        item, row = ids[owners[wrong[0]]], exact[wrong[0]]
        raise _not_finite(f"{name} of item {item!r}", row)
    return rows


def _not_finite(what: str, row: np.ndarray) -> NotFiniteError:
    if not np.isfinite(row).all():
        return NotFiniteError(
            f"{what} holds NaN or infinity; look for the cause in what encoded it, or leave the "
            f"item out"
        )
    return NotFiniteError(
        f"{what} reaches {np.abs(row).max():.6g} and is stored in half precision, which ends at "
        f"{LARGEST:g}; let the encoder divide its features by a constant"
    )

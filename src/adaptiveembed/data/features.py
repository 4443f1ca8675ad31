"""Stored features: what a frozen encoder said of many items, mapped from a folder.

A store holds the global feature of every item and, unless it was made without them, its hidden
states, in half precision. It is read by place, in any order, as float32. See ``feature_writer`` for
how it comes about, ``feature_index`` for its files and ``feature_exchange`` for other formats.
"""

from __future__ import annotations

import math
import weakref
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.data.feature_index import (
    GLOBAL_FEATURE,
    HIDDEN_STATES,
    NUMBERS,
    PADDING,
    FeatureIndex,
    StoredStates,
    read_index,
    require_complete,
    row_bytes,
)
from adaptiveembed.errors import (
    DtypeError,
    EmptyBatchError,
    FeatureStoreError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.shapes import GlobalFeatures, ItemArray
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.structure.ids import checked_ids
from adaptiveembed.structure.progress import Progress, silent

PART_BYTES = 1 << 27
"""Bytes in half precision that are converted at a time; most batches are one part. Smaller parts
would stay in the cache, but threads meet after each, and meeting is slow on a busy machine."""

SMALLEST_RECYCLED = 1 << 20
"""Bytes from which on it pays to use memory again."""


@dataclass(frozen=True, eq=False, repr=False)
class FeatureStore:
    """Features of many items, as they were committed when the store was opened."""

    folder: Path
    index: FeatureIndex

    @classmethod
    def open(cls, folder: str | Path) -> FeatureStore:
        """The store in a folder, mapped into memory: only what is asked for is read."""
        folder = Path(folder)
        index = read_index(folder)
        require_complete(folder, index)
        return cls(folder, index)

    def refresh(self) -> FeatureStore:
        """The store as it is now; this one goes on showing what it showed."""
        return FeatureStore.open(self.folder)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kept = {StoredStates.ALL: "hidden states", StoredStates.NONE: "global features only"}
        return f"FeatureStore({len(self)} items, width {self.width}, {kept[self.states]})"

    @property
    def ids(self) -> tuple[str, ...]:
        return self.index.ids

    @property
    def keys(self) -> tuple[str, ...]:
        """What was encoded, as its content key."""
        return self.index.keys

    @property
    def width(self) -> int:
        return self.index.header.width

    @property
    def fingerprint(self) -> str:
        """Which encoder made the features."""
        return self.index.header.fingerprint

    @property
    def states(self) -> StoredStates:
        return self.index.header.states

    @property
    def states_per_item(self) -> ItemArray:
        """How many hidden states each item is read with."""
        return self.index.state_counts

    def places(self, ids: Sequence[str]) -> ItemArray:
        """The place of each id in the store."""
        ids = checked_ids(ids)
        unknown = [each for each in ids if each not in self._places]
        if unknown:
            raise UnknownIdError(
                f"{unknown[0]!r} is not among the {len(self)} items of {self.folder}"
                f"{f' (nor are {len(unknown) - 1} more)' if unknown[1:] else ''}; "
                f"encode the item or correct the id"
            )
        return np.array([self._places[each] for each in ids], np.int64)

    def global_features(self) -> GlobalFeatures:
        """The global features of all items, float32."""
        memory = torch.empty(len(self), self.width)
        return self._gathered(GLOBAL_FEATURE, self.index.rows, memory)

    def read(
        self, places: Sequence[int] | np.ndarray, dtype: torch.dtype = torch.float32
    ) -> EncodedMedia:
        """The items at these places, padded to the longest of them.

        In ``torch.float16`` they come as they are stored, with half the bytes and none converted.
        """
        chosen = self._require_places(places)
        memory = torch.empty(len(chosen), self.width, dtype=dtype)
        features = self._gathered(GLOBAL_FEATURE, self.index.rows[chosen], memory)
        if self.states is StoredStates.NONE:
            mask = torch.ones(len(chosen), 1, dtype=torch.bool)
            return _already_checked(features, features.unsqueeze(1), mask)
        counts, firsts = self.index.state_counts[chosen], self.index.first_states[chosen]
        columns = np.arange(counts.max())
        mask = columns < counts[:, None]
        rows = np.where(mask, firsts[:, None] + columns, 0)  # row 0 is zeros
        memory = self._memory.empty((rows.size, self.width), dtype)
        states = self._gathered(HIDDEN_STATES, rows.ravel(), memory)
        return _already_checked(
            features, states.view(*rows.shape, self.width), torch.from_numpy(mask)
        )

    def read_rows(self, places: Sequence[int] | np.ndarray) -> tuple[Tensor, ItemArray]:
        """The hidden states of the items at these places one after another, as they are stored.

        The second value is how many belong to each item.
        """
        chosen = self._require_places(places)
        counts, firsts = self.states_per_item[chosen], self.index.first_states[chosen]
        if self.states is StoredStates.NONE:
            name, rows = GLOBAL_FEATURE, self.index.rows[chosen]
        else:
            before = np.cumsum(counts) - counts
            rows = np.repeat(firsts - before, counts) + np.arange(counts.sum())
            name = HIDDEN_STATES
        return self._mapped[name].index_select(0, torch.from_numpy(rows)), counts

    def verify(self, progress: Progress = silent) -> None:
        """Read every stored number and compare it with its checksum."""
        if HIDDEN_STATES in self._mapped and self._mapped[HIDDEN_STATES][:PADDING].any():
            raise self._damaged(HIDDEN_STATES, "its first row is not zero")
        ends = dict.fromkeys(self._mapped, 0) | {HIDDEN_STATES: PADDING}
        for done, commit in enumerate(self.index.commits, 1):
            counts = {GLOBAL_FEATURE: len(commit.ids), HIDDEN_STATES: sum(commit.states)}
            for name, checksum in commit.checksums.items():
                start, ends[name] = ends[name], ends[name] + counts[name]
                rows = self._mapped[name][start : ends[name]].numpy()
                if zlib.crc32(rows.data.cast("B")) != checksum:
                    items = f"{commit.ids[0]!r} to {commit.ids[-1]!r}"
                    raise self._damaged(name, f"the numbers of items {items} have changed")
            progress(done, len(self.index.commits))

    @cached_property
    def _mapped(self) -> dict[str, Tensor]:
        """The rows of each file of numbers [rows, width]."""
        return {
            name: _map(self.folder / name, size // NUMBERS.itemsize // self.width, self.width)
            for name, size in self.index.file_sizes.items()
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        return {each: place for place, each in enumerate(self.ids)}

    @cached_property
    def _memory(self) -> _RecycledMemory:
        return _RecycledMemory()

    def _gathered(self, name: str, rows: np.ndarray, result: Tensor) -> Tensor:
        """These rows of a file of numbers, as the numbers of ``result``."""
        stored, chosen = self._mapped[name], torch.from_numpy(rows)
        if result.dtype == stored.dtype:
            return torch.index_select(stored, 0, chosen, out=result)
        step = max(1, PART_BYTES // row_bytes(self.index.header))
        memory = self._memory.empty((min(step, len(rows)), self.width), torch.float16)
        for start in range(0, len(rows), step):
            part = chosen[start : start + step]
            halves = memory[: len(part)]
            torch.index_select(stored, 0, part, out=halves)
            result[start : start + step].copy_(halves)
        return result

    def _require_places(self, places: Sequence[int] | np.ndarray) -> ItemArray:
        chosen = np.asarray(places)
        if chosen.size == 0:
            raise EmptyBatchError("no places were given; read at least one item")
        if chosen.dtype.kind not in "iu":
            raise DtypeError(
                f"items are chosen by whole numbers, got {chosen.dtype}; "
                f"turn a mask into places with np.flatnonzero(mask)"
            )
        if chosen.ndim != 1:
            raise ShapeError(f"places are [items], got shape {chosen.shape}; use .ravel()")
        wrong = chosen[(chosen < 0) | (chosen >= len(self))]
        if wrong.size:
            raise UnknownIdError(
                f"place {wrong[0]} is not among the {len(self)} items of {self.folder}; "
                f"choose 0 to {len(self) - 1}"
            )
        return np.ascontiguousarray(chosen, np.int64)

    def _damaged(self, name: str, what: str) -> FeatureStoreError:
        return FeatureStoreError(
            f"{self.folder / name} is damaged ({what}); bring the folder back from a copy, or "
            f"encode into a new folder"
        )


class _RecycledMemory:
    """Memory of batches that nobody holds any more, to be written again.

    The system clears fresh pages before it hands them out, which takes longer than reading a batch.
    """

    def __init__(self) -> None:
        self._spare: deque[np.ndarray] = deque(maxlen=4)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A tensor of any content, whose memory comes back by itself when nothing uses it."""
        size = math.prod(shape) * dtype.itemsize
        if size < SMALLEST_RECYCLED:
            return torch.empty(shape, dtype=dtype)
        whole = self._fitting(size)
        part = whole[:size]
        weakref.finalize(part, self._spare.append, whole).atexit = False
        # The tensor and its views keep this very array; a view by NumPy would keep ``whole``.
        return torch.from_numpy(part).view(dtype).view(shape)

    def _fitting(self, size: int) -> np.ndarray:
        """Spare memory of about this size, or new memory."""
        for _ in range(len(self._spare)):
            try:
                whole = self._spare.popleft()
            except IndexError:  # another thread was faster
                break
            if size <= whole.size <= 2 * size:
                return whole
            self._spare.append(whole)
        return np.empty(size, np.uint8)


def _map(path: Path, rows: int, width: int) -> Tensor:
    if rows == 0:
        return torch.empty(0, width, dtype=torch.float16)  # what holds nothing cannot be mapped
    # Copy on write: torch warns of arrays that cannot be written, and the file stays as it is.
    return torch.from_numpy(np.memmap(path, NUMBERS, "c", shape=(rows, width)))


def _already_checked(features: Tensor, states: Tensor, mask: Tensor) -> EncodedMedia:
    """Encoded media whose numbers were checked when they were stored."""
    encoded = object.__new__(EncodedMedia)
    parts = {"global_feature": features, "hidden_states": states, "mask": mask}
    for name, value in parts.items():
        object.__setattr__(encoded, name, value)
    return encoded

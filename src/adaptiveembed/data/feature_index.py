"""The index of a feature store: what has been committed, one line each (JSON Lines).

The first line describes the store, every further line is one commit. A line is written after the
data that it names have reached the disk, and it carries a checksum of itself, so it is whole or it
does not count. An unfinished last line is what an interrupted writer leaves; readers pass over it
and the next writer removes it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adaptiveembed.errors import FeatureStoreError
from adaptiveembed.shapes import ItemArray

FORMAT, VERSION = "adaptiveembed.features", 1

INDEX, GLOBAL_FEATURE, HIDDEN_STATES = "features.jsonl", "global_feature.f16", "hidden_states.f16"
"""The files of a store: its index, and its numbers row by row."""

NUMBERS = np.dtype("<f2")
"""Features are stored in half precision."""

PADDING = 1
"""Rows of zeros at the start of the states: what stands where an item has no state."""


class StoredStates(StrEnum):
    """What a store keeps of hidden states."""

    ALL = "all"
    """Every real state of every item."""
    NONE = "none"
    """None: the global feature is then read as an item's only state. Takes far less room."""


@dataclass(frozen=True)
class FeatureHeader:
    """What holds for all items of a store."""

    fingerprint: str
    """Which encoder made the features."""
    width: int
    """Numbers of one feature."""
    states: StoredStates = StoredStates.ALL
    """What is kept of hidden states."""

    def line(self) -> bytes:
        """The first line of the index."""
        facts = {"fingerprint": self.fingerprint, "width": self.width, "states": self.states}
        return index_line({"format": FORMAT, "version": VERSION, **facts})


class Commit(NamedTuple):
    """Items that were stored together."""

    ids: Sequence[str]
    keys: Sequence[str]
    states: Sequence[int]
    """How many hidden states each item has; empty where none are kept."""
    checksums: Mapping[str, int]
    """Of the bytes of each file of numbers."""

    def line(self) -> bytes:
        """The line of the index that makes these items count."""
        return index_line(self._asdict())


@dataclass(frozen=True, eq=False)
class FeatureIndex:
    """What the whole lines of an index say.

    An id that was committed again keeps its place and has its last key and features.
    """

    header: FeatureHeader
    commits: tuple[Commit, ...]
    size: int
    """Bytes of the whole lines."""

    ids: tuple[str, ...]
    keys: tuple[str, ...]
    rows: ItemArray
    """The row of each item's global feature."""
    first_states: ItemArray
    """The row of each item's first hidden state."""
    state_counts: ItemArray

    @property
    def file_sizes(self) -> dict[str, int]:
        """Bytes of each file of numbers, up to the last commit."""
        counts = {GLOBAL_FEATURE: sum(len(commit.ids) for commit in self.commits)}
        if self.header.states is StoredStates.ALL:
            counts[HIDDEN_STATES] = PADDING + sum(sum(commit.states) for commit in self.commits)
        return {name: count * row_bytes(self.header) for name, count in counts.items()}


def row_bytes(header: FeatureHeader) -> int:
    """Bytes of one row of numbers."""
    return header.width * NUMBERS.itemsize


def index_line(record: Mapping[str, object]) -> bytes:
    """The record as one line that carries its checksum."""
    content = json.dumps(record, separators=(",", ":")).encode()
    return b"".join((_OPENING, _checksum(content), _MIDDLE, content, _CLOSING))


def is_unfinished_header(content: bytes) -> bool:
    """Whether an index ends within its first line, or has not been begun."""
    return b"\n" not in content and content.startswith(_OPENING[: len(content)])


def read_index(folder: Path) -> FeatureIndex:
    """The index of a folder, every line of it compared with its checksum."""
    path = folder / INDEX
    content = _read_bytes(path)
    *lines, tail = content.split(b"\n")
    if _is_whole(tail[:-1] + b"\n"):
        raise _damaged(path, len(lines) + 1)
    records = [_record(path, number, line + b"\n") for number, line in enumerate(lines, 1)]
    if not records:
        raise FeatureStoreError(f"{folder} holds no features yet; encode into it first")
    header = _read_header(path, records[0])
    commits = tuple(_read_commit(path, number, one) for number, one in enumerate(records[1:], 2))
    return _index_of(header, commits, len(content) - len(tail))


def require_complete(folder: Path, index: FeatureIndex) -> None:
    """Refuse a store whose files are shorter than what its index names."""
    for name, needed in index.file_sizes.items():
        path = folder / name
        size = path.stat().st_size if path.exists() else 0
        if size < needed:
            raise FeatureStoreError(
                f"{path} has {size:,} bytes and {INDEX} names {needed:,}; bring the folder back "
                f"from a copy, or encode into a new folder"
            )


def _index_of(header: FeatureHeader, commits: tuple[Commit, ...], size: int) -> FeatureIndex:
    ids = list(chain.from_iterable(commit.ids for commit in commits))
    keys = list(chain.from_iterable(commit.keys for commit in commits))
    # A key of a dict that is set again keeps its place and has the last value.
    last = {each: row for row, each in enumerate(ids)}
    rows = np.fromiter(last.values(), np.int64, len(last))
    states = header.states is StoredStates.ALL
    counts = chain.from_iterable(commit.states if states else [1] for commit in commits)
    state_counts = np.fromiter(counts, np.int64) if states else np.ones(len(ids), np.int64)
    first_states = PADDING + np.cumsum(state_counts) - state_counts
    return FeatureIndex(
        header,
        commits,
        size,
        tuple(last),
        tuple(keys[row] for row in rows.tolist()),
        rows,
        first_states[rows],
        state_counts[rows],
    )


_OPENING, _MIDDLE, _CLOSING = b'{"checksum":"', b'","record":', b"}\n"
_CHECKSUM_BYTES = 8
_RECORD = slice(len(_OPENING) + 2 * _CHECKSUM_BYTES + len(_MIDDLE), -len(_CLOSING))
"""Where the record stands in a line."""


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).hexdigest().encode()


def _is_whole(line: bytes) -> bool:
    """Whether the line is, byte by byte, what ``index_line`` writes."""
    content = line[_RECORD]
    return line == b"".join((_OPENING, _checksum(content), _MIDDLE, content, _CLOSING))


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    if not _is_whole(line):
        raise _damaged(path, number)
    record: dict[str, Any] = json.loads(line[_RECORD])
    return record


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FeatureStoreError(
            f"{path.parent} holds no features ({path.name} is not there); give the folder that "
            f"features were encoded into"
        ) from None
    except OSError as error:
        raise FeatureStoreError(f"{path} cannot be read ({error})") from error


def _read_header(path: Path, record: Mapping[str, Any]) -> FeatureHeader:
    if record.get("format") != FORMAT:
        raise FeatureStoreError(
            f"{path} does not describe a feature store; give the folder that features were "
            f"encoded into"
        )
    if record["version"] != VERSION:
        raise FeatureStoreError(
            f"{path} is of version {record['version']} and this library reads version {VERSION}; "
            f"encode again, or install the library that made it"
        )
    return FeatureHeader(record["fingerprint"], record["width"], StoredStates(record["states"]))


def _read_commit(path: Path, number: int, record: Mapping[str, Any]) -> Commit:
    try:
        return Commit(**record)
    except TypeError:
        raise _damaged(path, number) from None


def _damaged(path: Path, number: int) -> FeatureStoreError:
    return FeatureStoreError(
        f"line {number} of {path} is damaged (its checksum is another); bring the folder back "
        f"from a copy, or encode into a new folder"
    )

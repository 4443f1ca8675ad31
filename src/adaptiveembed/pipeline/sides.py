"""One side of a dataset: a feature store, or one for each process that encoded it.

image/              what the first process encoded, or the only one
image/part-1/       what the second one did, and so on

An item is in one store alone. Processes share the items without a word between them: what a store
holds belongs to whoever that store belongs to, and anything new to the process whose turn it is by
its place. So the work can be taken up by another number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from adaptiveembed.data.feature_index import INDEX, StoredStates, is_unfinished_header, read_index
from adaptiveembed.data.feature_writer import FeatureWriter, locked
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.encoders.driving import EncodingSummary, encode_items
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.encoders.reading_ahead import Load
from adaptiveembed.errors import FeatureStoreError
from adaptiveembed.shapes import ItemArray
from adaptiveembed.structure.encoded import EncodedMedia, Features
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.views import JoinedFeatures
from adaptiveembed.training.distributed import Process, current, wait_for_all

PART = "part-"
LOCK = "side.lock"
BATCH_SIZE = 64

ItemOf = Callable[[int], tuple[str, str, Load]]
"""The item at a place: its id, a key that changes with its content, and how to read it."""


@dataclass(frozen=True, eq=False)
class SideStores:
    """The stores of a side, read as one."""

    folder: Path
    stores: tuple[FeatureStore, ...]

    @classmethod
    def open(cls, folder: Path) -> SideStores:
        """All stores of a side; an item that is in two of them is refused."""
        parts = store_folders(folder) or {0: folder}  # whose opening says what is wrong
        found = cls(folder, tuple(FeatureStore.open(part) for part in parts.values()))
        if len(found._places) < len(found.ids):
            twice = next(one for place, one in enumerate(found.ids) if found._places[one] != place)
            raise FeatureStoreError(
                f"{twice!r} is in two stores of {folder}; encode into a new folder"
            )
        return found

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The items of all stores, one store after another."""
        return tuple(one for store in self.stores for one in store.ids)

    @property
    def keys(self) -> tuple[str, ...]:
        """What was encoded of each item, as its content key."""
        return tuple(one for store in self.stores for one in store.keys)

    @property
    def fingerprint(self) -> str:
        """Which encoder made the features."""
        return self.stores[0].fingerprint

    @property
    def width(self) -> int:
        return self.stores[0].width

    @property
    def states(self) -> StoredStates:
        return self.stores[0].states

    @property
    def states_per_item(self) -> ItemArray:
        """How many hidden states each item is read with."""
        return np.concatenate([store.states_per_item for store in self.stores])

    def read(self, places: Sequence[int] | np.ndarray) -> EncodedMedia:
        """The items at these places."""
        return self.features.read(places)

    def verify(self) -> None:
        """Read every stored number and compare it with its checksum."""
        for store in self.stores:
            store.verify()

    @property
    def features(self) -> Features:
        """What was encoded, in the order of the ids."""
        return self.stores[0] if len(self.stores) == 1 else JoinedFeatures(self.stores)

    def places(self, ids: Sequence[str]) -> ItemArray:
        """The place of each id, all of which are there."""
        return np.array([self._places[each] for each in ids], np.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {one: place for place, one in enumerate(self.ids)}


def store_folders(folder: Path) -> dict[int, Path]:
    """The folders of the stores that there are, by the number of the store."""
    numbered = {0: folder}
    for part in folder.glob(f"{PART}*"):
        if (number := part.name.removeprefix(PART)).isdecimal():
            numbered[int(number)] = part
    return {number: part for number, part in sorted(numbered.items()) if _is_begun(part)}


def fill_side(  # noqa: PLR0913 - by what, what, where to, and how
    encoder: Encoder,
    ids: Sequence[str],
    item_of: ItemOf,
    folder: Path,
    *,
    states: StoredStates = StoredStates.ALL,
    batch_size: int = BATCH_SIZE,
    strict: bool = False,
    progress: Progress = silent,
) -> EncodingSummary:
    """Encode this process's share of the items that no store holds yet."""
    found = []
    with _alone(folder, current()):
        for number, places in shares(ids, folder, current()).items():
            share = [item_of(place) for place in places]
            place = _part(folder, number)
            with FeatureWriter(place, encoder.fingerprint, encoder.width, states) as to:
                found.append(
                    encode_items(
                        encoder, share, to, batch_size=batch_size, strict=strict, progress=progress
                    )
                )
    return EncodingSummary(
        sum(one.encoded for one in found),
        sum(one.skipped for one in found),
        tuple(failure for one in found for failure in one.failed),
    )


@contextmanager
def _alone(folder: Path, process: Process) -> Iterator[None]:
    """No other command fills this side meanwhile: the lock of a store guards that store alone."""
    with ExitStack() as held:
        if process.is_first:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(folder, LOCK))
        wait_for_all(process)
        yield
        wait_for_all(process)


def shares(ids: Sequence[str], folder: Path, process: Process) -> Mapping[int, Sequence[int]]:
    """The places of this process's items, by the number of the store that they belong to."""
    owners = dict(_owners(folder))
    mine: dict[int, list[int]] = {process.rank: []}
    for place, one in enumerate(ids):
        number = owners.get(one, place % process.size)
        if number % process.size == process.rank:
            mine.setdefault(number, []).append(place)
    return mine


def _owners(folder: Path) -> Iterator[tuple[str, int]]:
    """Every item that is stored, with the number of its store."""
    for number, part in store_folders(folder).items():
        yield from ((one, number) for one in read_index(part).ids)


def _is_begun(part: Path) -> bool:
    """Whether a store is there, and not only what a process left that was killed at its start."""
    index = part / INDEX
    return index.exists() and not is_unfinished_header(index.read_bytes())


def _part(folder: Path, number: int) -> Path:
    return folder / f"{PART}{number}" if number else folder

"""How vectors lie in memory for the kernels: stored gallery vectors, panels of queries, scratch."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.similarity.kernels.compiler import lanes
from adaptiveembed.similarity.kernels.product import ROWS, Rows

PANEL_LANES = 512
"""Query vectors of one pass over the gallery: a block of them fills half a second-level cache."""

SCRATCH_WORDS = 1 << 16
"""Products of one tile: a quarter of a megabyte."""

Floats: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class StoredVectors:
    """Gallery vectors [positions, items, words]; the first two axes may lie either way in memory.

    Half-precision vectors come with the inverse of their norms, and are read as unit vectors.
    """

    rows: NDArray[Any]
    inverse_norms: Floats | None = None

    @property
    def kind(self) -> Rows:
        """How one vector is stored."""
        kinds = {"float32": Rows.FLOAT32, "float16": Rows.FLOAT16, "uint32": Rows.BYTES}
        return kinds[self.rows.dtype.name]

    @property
    def item_stride(self) -> int:
        """Words from an item to the next."""
        return int(self.rows.strides[1]) // self.rows.itemsize

    @property
    def norms_address(self) -> int | None:
        """Where the inverse norms lie."""
        return None if self.inverse_norms is None else self.inverse_norms.ctypes.data

    def offsets(self, positions: Sequence[int]) -> Integers:
        """Per position: the words before it, and the vectors before it."""
        words = int(self.rows.strides[0]) // self.rows.itemsize
        items = self.rows.shape[1]
        return np.array([(position * words, position * items) for position in positions], np.int64)


@dataclass(frozen=True)
class Scope:
    """What of a gallery is compared, and how many threads may work on it."""

    vectors: StoredVectors
    positions: Sequence[int]
    items: Integers
    num_threads: int

    def __post_init__(self) -> None:
        # Kernels read 64-bit numbers that lie in order; anything else would be a wild read.
        assert self.items.dtype == np.int64
        assert self.items.flags.c_contiguous


@dataclass(frozen=True)
class Panel:
    """Query vectors in lanes, [list, vector of lanes, word, lane].

    There is a panel for every list of items; mostly there is one. The `capacity` rows of one vector
    of queries lie one after the other.
    """

    words: NDArray[Any]
    num_queries: int
    capacity: int

    @property
    def width(self) -> int:
        """Lanes of the panel."""
        return int(self.words.shape[1]) * lanes()

    @property
    def is_one_query(self) -> bool:
        """Whether the lanes hold the vectors of one query, and not one vector of many queries."""
        return self.capacity > 1 and self.words.shape[1] == 1

    @property
    def num_lanes(self) -> int:
        """How many queries there is room for; the last places may hold none."""
        return 1 if self.is_one_query else self.width // self.capacity

    @property
    def tile(self) -> int:
        """Items whose products with this panel fill the scratch."""
        return max(1, SCRATCH_WORDS // (self.capacity * self.width * lanes())) * lanes()

    def scratch(self) -> Floats:
        """This thread's room for one tile's products, and for the rows beyond its last."""
        needed = (self.tile * self.capacity + ROWS) * self.width
        if _room.space.size < needed:
            _room.space = aligned_empty((needed,), np.float32)
        return _room.space


class _Room(threading.local):
    """Scratch is kept from call to call: new memory costs more than a small product."""

    space: Floats = np.empty(0, np.float32)


_room = _Room()


def queries_at_once(num_queries: int, capacity: int) -> int:
    """How many queries of so many vectors are compared in one pass over the gallery.

    Few queries are best taken one by one, with a lane to each of a query's vectors.
    """
    if num_queries < min(capacity, lanes()):
        return 1
    return max(1, PANEL_LANES // (capacity * lanes())) * lanes()


def whole_lanes(count: int) -> int:
    """The least number of lanes in whole vectors that holds so many."""
    return -(-count // lanes()) * lanes()


def many_queries_panel(sets: NDArray[Any]) -> Panel:
    """Sets [queries, capacity, words] with a query to a lane; missing queries are zero."""
    num_queries, capacity, words = sets.shape
    groups = whole_lanes(num_queries) // lanes()
    padded = np.zeros((groups * lanes(), capacity, words), sets.dtype)
    padded[:num_queries] = sets
    panel = aligned_empty((groups, capacity, words, lanes()), sets.dtype)
    panel[:] = padded.reshape(groups, lanes(), capacity, words).transpose(0, 2, 3, 1)
    return Panel(panel.reshape(1, groups * capacity, words, lanes()), num_queries, capacity)


def one_query_panels(sets: NDArray[Any]) -> Panel:
    """For every set [capacity, words] a panel of its own, with a vector to a lane."""
    num_queries, capacity, words = sets.shape
    panels = aligned_empty((num_queries, 1, words, lanes()), sets.dtype)
    panels[..., capacity:] = 0
    panels[:, 0, :, :capacity] = sets.transpose(0, 2, 1)
    return Panel(panels, 1, capacity)


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:  # noqa: ANN401 - as numpy
    """An array that begins at a cache line, so that no vector of it crosses one."""
    size = prod(shape) * np.dtype(dtype).itemsize
    space = np.empty(size + 64, np.uint8)
    start = -space.ctypes.data % 64
    aligned: NDArray[Any] = space[start : start + size].view(dtype).reshape(shape)
    return aligned

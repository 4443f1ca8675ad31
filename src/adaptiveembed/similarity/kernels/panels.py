"""How vectors lie in memory for the kernels: panels of queries, stored gallery vectors, room to work in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.similarity.kernels.compiler import lanes
from adaptiveembed.similarity.kernels.product import ROWS, Rows

PANEL_LANES = 512  # query vectors of one pass over the gallery: their block of dimensions fills half a second cache
SCRATCH_WORDS = 1 << 16  # products of one tile, a quarter of a megabyte


@dataclass(frozen=True)
class StoredVectors:
    """Gallery vectors [positions, items, words], in whatever order the first two axes lie in memory.

    Half-precision vectors come with the inverse of their norms, and are read as unit vectors.
    """

    rows: NDArray[np.generic]
    inverse_norms: NDArray[np.float32] | None = None

    @property
    def kind(self) -> Rows:
        """How one vector is stored."""
        kinds = {"float32": Rows.FLOAT32, "float16": Rows.FLOAT16, "uint32": Rows.BYTES}
        return kinds[self.rows.dtype.name]

    @property
    def item_stride(self) -> int:
        """Words from an item to the next."""
        return self.rows.strides[1] // self.rows.itemsize

    @property
    def norms_address(self) -> int | None:
        """Where the inverse norms lie."""
        return None if self.inverse_norms is None else self.inverse_norms.ctypes.data

    def offsets(self, positions: Sequence[int]) -> NDArray[np.int64]:
        """Per position: the words before it, and the vectors before it."""
        words = self.rows.strides[0] // self.rows.itemsize
        items = self.rows.shape[1]
        return np.array([(position * words, position * items) for position in positions], np.int64)


@dataclass(frozen=True)
class Panel:
    """Query vectors in lanes: [vector of lanes, word, lane]; each vector of queries keeps its rows together."""

    words: NDArray[np.generic]
    num_queries: int
    capacity: int

    @property
    def width(self) -> int:
        """Lanes of the panel."""
        return self.words.shape[0] * lanes()

    @cached_property
    def tile(self) -> int:
        """Items whose products with this panel fill the scratch."""
        return max(1, SCRATCH_WORDS // (self.capacity * self.width * lanes())) * lanes()

    def scratch(self) -> NDArray[np.float32]:
        """Room for one tile's products, and for the rows computed beyond its last."""
        return aligned_empty(((self.tile * self.capacity + ROWS) * self.width,), np.float32)


def many_queries_panel(sets: NDArray[np.generic]) -> Panel:
    """Sets [queries, capacity, words] with a query to a lane; missing queries are zero."""
    num_queries, capacity, words = sets.shape
    groups = -(-num_queries // lanes())
    panel = aligned_empty((groups, capacity, words, lanes()), sets.dtype)
    whole = num_queries // lanes()
    split = sets[: whole * lanes()].reshape(whole, lanes(), capacity, words)
    panel[:whole] = split.transpose(0, 2, 3, 1)
    if whole < groups:
        rest = sets[whole * lanes() :]
        panel[whole] = 0
        panel[whole, ..., : len(rest)] = rest.transpose(1, 2, 0)
    return Panel(panel.reshape(groups * capacity, words, lanes()), num_queries, capacity)


def one_query_panels(sets: NDArray[np.float32]) -> list[Panel]:
    """For every set [capacity, words] of its own, a panel with a vector to a lane."""
    num_queries, capacity, words = sets.shape
    panels = aligned_empty((num_queries, 1, words, lanes()), np.float32)
    panels[..., capacity:] = 0
    panels[:, 0, :, :capacity] = sets.transpose(0, 2, 1)
    return [Panel(panel, 1, capacity) for panel in panels]


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[np.generic] | type) -> NDArray:  # noqa: D103
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    space = np.empty(size + 64, np.uint8)
    start = -space.ctypes.data % 64
    return space[start : start + size].view(dtype).reshape(shape)

"""Vectors as bytes, with what the bytes lose: a screen that can only err on the safe side (R5)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.similarity.kernels.panels import (
    Floats,
    Panel,
    many_queries_panel,
    one_query_panels,
)
from adaptiveembed.similarity.kernels.product import BLOCK

LARGEST_CODE = 127

OFFSET = 128
"""Added to the gallery's codes: the product of bytes wants one side unsigned."""

LONGEST = 1.0001
"""No vector is longer: unit length is checked within 1e-5, or made."""

LARGEST_DIM = 1 << 15
"""Beyond it the sum of a vector's squares is not exact enough for `to_bytes`."""

CHUNK = 1 << 22
"""Numbers turned into codes at a time."""


@dataclass(frozen=True)
class ByteVectors:
    """Codes [..., dim] times scales [...]: no further from the vectors than errors [...]."""

    codes: NDArray[np.int8]
    scales: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class ByteGallery:
    """A gallery's vectors as bytes: words [positions, items, words] of four offset codes each.

    `bands` hold by how much the bytes of a vector may change its cosine with any query vector.
    """

    words: NDArray[np.uint32]
    scales: Floats
    bands: Floats

    @cached_property
    def longest(self) -> float:
        """No vector made of these codes is longer."""
        return LONGEST + float(self.bands.max(initial=0.0))


@dataclass(frozen=True)
class BytePanel:
    """Query vectors as bytes in lanes, and what turns their integer products into cosines.

    Corrections and scales lie as the panel's lanes do, those of one query vector by vector.
    """

    panel: Panel
    corrections: NDArray[np.int32]
    scales: Floats
    bands: Floats


def to_bytes(vectors: Floats) -> ByteVectors:
    """The nearest codes under each vector's own scale."""
    largest = np.abs(vectors).max(axis=-1)
    scales = np.maximum(largest / np.float32(LARGEST_CODE), np.finfo(np.float32).tiny)
    codes = np.rint(vectors / scales[..., None])
    rest = vectors - codes * scales[..., None]
    # In float32 an entry of the rest is off by 2^-23 of the vector's entry at most, which makes
    # 1.2e-7 of the whole; summing squares costs a relative d * 2^-24, halved by the root.
    errors = np.sqrt(np.einsum("...d,...d->...", rest, rest)) * np.float32(1.001)
    return ByteVectors(codes.astype(np.int8), scales, errors + np.float32(1e-6))


def byte_gallery(
    vectors: NDArray[np.float32] | NDArray[np.float16], inverse_norms: Floats | None
) -> ByteGallery:
    """Codes of all vectors [positions, items, dim]; of half-precision ones as unit vectors."""
    positions, items, dim = vectors.shape
    codes = np.full((positions, items, _padded(dim)), OFFSET, np.uint8)
    scales, errors = (np.empty((positions, items), np.float32) for _ in range(2))
    step = max(1, CHUNK // dim)
    for position in range(positions):
        for start in range(0, items, step):
            part = (position, slice(start, start + step))
            rows = vectors[part].astype(np.float32, copy=False)
            if inverse_norms is not None:
                rows = rows * inverse_norms[part][:, None]
            found = to_bytes(rows)
            codes[part][:, :dim] = found.codes.view(np.uint8) ^ np.uint8(OFFSET)
            scales[part], errors[part] = found.scales, found.errors
    return ByteGallery(codes.view(np.uint32), scales, errors * np.float32(LONGEST))


def byte_panel(sets: Floats, longest: float) -> BytePanel:
    """A panel of sets [queries, capacity, dim] for a gallery with no longer vectors than that."""
    queries, capacity, dim = sets.shape
    found = to_bytes(sets)
    codes = np.zeros((queries, capacity, _padded(dim)), np.int8)
    codes[..., :dim] = found.codes
    one = queries == 1 < capacity
    panel = (one_query_panels if one else many_queries_panel)(codes.view(np.uint32))
    corrections = found.codes.sum(axis=-1, dtype=np.int32) * np.int32(-OFFSET)
    bands = found.errors.mean(axis=-1) * np.float32(longest * 1.0001)
    slack = rounding_slack(dim, capacity)
    return BytePanel(
        panel,
        corrections if one else many_queries_panel(corrections[..., None]).words,
        found.scales if one else many_queries_panel(found.scales[..., None]).words,
        padded_queries(bands + slack, panel, 0.0),
    )


def padded_queries(values: Floats, panel: Panel, fill: float) -> Floats:
    """One value for every lane that holds a query, and the filling for the others."""
    padded = np.full(panel.num_lanes, fill, np.float32)
    padded[: len(values)] = values
    return padded


def rounding_slack(dim: int, capacity: int) -> np.float32:
    """How far rounding can move a canonical score and its screened bound apart, codes aside.

    A canonical cosine is a sum by blocks: each addition in its longest chain costs at most 2^-24
    of a total below 1.0001. Assignment and mean add `capacity` + 1 steps, and the screen's own
    arithmetic, on values below 2 (or sums of `capacity` such), fewer than 40 + 4 * `capacity`.
    """
    chain = min(dim, BLOCK) + -(-dim // BLOCK)
    return np.float32((chain + 5 * capacity + 41) * 2.0**-24 * 1.01)


def _padded(dim: int) -> int:
    return -(-dim // 4) * 4

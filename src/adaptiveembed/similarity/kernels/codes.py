"""Vectors as bytes, with what the bytes lose: the material of a screen that can only be wrong on the safe side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.similarity.kernels.compiler import lanes
from adaptiveembed.similarity.kernels.panels import Panel, many_queries_panel
from adaptiveembed.similarity.kernels.product import BLOCK

LARGEST_CODE = 127
OFFSET = (
    128  # the product of bytes wants one side unsigned: the gallery's codes are stored plus this
)
# Vectors are unit length within 1e-5; a little more covers the rounding of the errors' own computation.
LONGEST = 1.0001
CHUNK = 1 << 22  # floats turned into codes at a time


@dataclass(frozen=True)
class ByteVectors:
    """Codes [..., dim] times scales [...] approximate vectors, to within a distance of at most errors [...]."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]


@dataclass(frozen=True)
class ByteGallery:
    """A gallery's vectors as bytes: words [positions, items, words] of four offset codes each."""

    words: NDArray[np.uint32]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]

    @property
    def longest(self) -> float:
        """No vector rebuilt from its codes is longer."""
        return LONGEST + float(self.errors.max(initial=0.0))


@dataclass(frozen=True)
class BytePanel:
    """Query vectors as bytes in lanes, with what turns their integer products into cosines."""

    panel: Panel
    corrections: NDArray[np.int32]
    scales: NDArray[np.float32]
    bands: NDArray[np.float32]


def to_bytes(vectors: NDArray[np.float32]) -> ByteVectors:
    """The nearest codes under each vector's own scale."""
    scales = np.abs(vectors).max(axis=-1) / np.float32(LARGEST_CODE)
    scales = np.maximum(scales, np.finfo(np.float32).tiny)
    codes = np.rint(vectors / scales[..., None])
    rest = vectors - codes * scales[..., None]
    # In float32 each entry of the rest is off by at most 2^-23 of the vector's, and the norm by a relative d * 2^-24.
    errors = np.sqrt(np.einsum("...d,...d->...", rest, rest)) * np.float32(1.001) + np.float32(1e-6)
    return ByteVectors(codes.astype(np.int8), scales, errors)


def byte_gallery(
    vectors: NDArray[np.floating], inverse_norms: NDArray[np.float32] | None = None
) -> ByteGallery:
    """Codes of all vectors [positions, items, dim]; of half-precision vectors, as unit vectors."""
    positions, items, dim = vectors.shape
    codes = np.full((positions, items, _padded(dim)), OFFSET, np.uint8)
    scales, errors = (np.empty((positions, items), np.float32) for _ in range(2))
    step = max(1, CHUNK // dim)
    for position in range(positions):
        for start in range(0, items, step):
            part = slice(start, start + step)
            rows = vectors[position, part].astype(np.float32, copy=False)
            if inverse_norms is not None:
                rows = rows * inverse_norms[position, part, None]
            found = to_bytes(rows)
            codes[position, part, :dim] = found.codes.view(np.uint8) ^ np.uint8(OFFSET)
            scales[position, part], errors[position, part] = found.scales, found.errors
    return ByteGallery(codes.view(np.uint32), scales, errors * np.float32(LONGEST))


def byte_panel(sets: NDArray[np.float32], longest: float) -> BytePanel:
    """A panel of query sets [queries, capacity, dim], for a gallery whose vectors are no longer than `longest`."""
    queries, capacity, dim = sets.shape
    found = to_bytes(sets)
    codes = np.zeros((queries, capacity, _padded(dim)), np.int8)
    codes[..., :dim] = found.codes
    corrections = found.codes.sum(axis=-1, dtype=np.int32) * np.int32(-OFFSET)
    bands = found.errors.mean(axis=-1) * np.float32(longest * 1.0001) + rounding_slack(
        dim, capacity
    )
    return BytePanel(
        many_queries_panel(codes.view(np.uint32)),
        many_queries_panel(corrections[..., None]).words,
        many_queries_panel(found.scales[..., None]).words,
        pad_queries(bands, 0.0),
    )


def pad_queries(values: NDArray[np.float32], fill: float) -> NDArray[np.float32]:
    """One value for every lane of queries."""
    padded = np.full(-(-len(values) // lanes()) * lanes(), fill, np.float32)
    padded[: len(values)] = values
    return padded


def rounding_slack(dim: int, capacity: int) -> np.float32:
    """How far rounding can move a canonical score and its screened bound apart, codes aside.

    A canonical cosine is a sum of blocks by fused multiply-add: its error is at most one unit of 2^-24 for each
    addition in its longest chain. The assignment and the mean add `capacity` + 1, and the screen's own steps,
    on values below 2, fewer than 40.
    """
    chain = min(dim, BLOCK) + -(-dim // BLOCK)
    return np.float32((chain + capacity + 40) * 2.0**-24 * 1.01)


def _padded(dim: int) -> int:
    return -(-dim // 4) * 4

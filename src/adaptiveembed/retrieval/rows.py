"""Vectors as search reads them: float32 of unit length, each by itself (R5)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.structure.candidates import CandidateSets


def inverse_norms(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """One over the length of every vector [..., dim], whichever other vectors there are."""
    return (1.0 / np.sqrt(squared_lengths(vectors))).astype(np.float32)


def unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Half-precision vectors as float32 of unit length."""
    scaled: NDArray[np.float32] = vectors.astype(np.float32) * inverse_norms(vectors)[..., None]
    return scaled


def query_sets(candidates: CandidateSets, positions: Sequence[int]) -> NDArray[np.float32]:
    """The queries' vectors at these positions; float32 vectors are read as they are."""
    vectors = candidates.vectors[:, list(positions)].detach().cpu()
    if vectors.itemsize == 4:
        exact: NDArray[np.float32] = vectors.contiguous().numpy()
        return exact
    return unit_rows(vectors.float().numpy())


def squared_lengths(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """The squared length of every vector [..., dim], whichever other vectors there are."""
    # A reduction along the last axis of a fresh array sums every vector in the same order.
    squares = np.square(vectors, dtype=np.float64)
    total: NDArray[np.float64] = np.add.reduce(squares, axis=-1)
    return total

"""Vectors as search reads them: float32 of unit length, each by itself (R5)."""

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.structure.candidates import CandidateSets


def inverse_norms(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """One over the length of every vector [..., dim], whichever other vectors there are."""
    return (1.0 / np.sqrt(_squared_lengths(vectors))).astype(np.float32)


def unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Half-precision vectors as float32 of unit length."""
    scaled: NDArray[np.float32] = vectors.astype(np.float32) * inverse_norms(vectors)[..., None]
    return scaled


def query_sets(candidates: CandidateSets, positions: list[int]) -> NDArray[np.float32]:
    """The active vectors of queries [queries, capacity, dim]; float32 vectors are read as they are."""
    vectors = candidates.vectors[:, positions].detach().cpu()
    if vectors.itemsize == 4:
        exact: NDArray[np.float32] = vectors.contiguous().numpy()
        return exact
    return unit_rows(vectors.float().numpy())


def _squared_lengths(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    # A reduction along the last axis of a fresh array sums every vector in the same order.
    squares = np.square(vectors, dtype=np.float64)
    total: NDArray[np.float64] = np.add.reduce(squares, axis=-1)
    return total

"""Fixed random numbers: the output of SHAKE-256, the same on every machine and in every version."""

import hashlib
from collections.abc import Iterable

import numpy as np
import torch

from adaptiveembed.shapes import Biases, PieceVectors, ProjectionMatrix


def projection(key: str, num_inputs: int, num_outputs: int) -> ProjectionMatrix:
    """Random signs, scaled so that a vector keeps its length on average; every key has its own."""
    digest = _digest(key, -(-num_inputs * num_outputs // 8))
    return _signs(digest, num_inputs * num_outputs, num_outputs).reshape(num_inputs, num_outputs)


def piece_vectors(pieces: Iterable[str], width: int) -> PieceVectors:
    """A vector of length 1 with random signs for every piece, one below the other."""
    length = -(-width // 8)
    digests = [_digest(piece, length) for piece in pieces]
    signs = _signs(b"".join(digests), len(digests) * length * 8, width)
    return signs.reshape(len(digests), length * 8)[:, :width]


def biases(key: str, count: int) -> Biases:
    """Random numbers, spread evenly from -1 to 1."""
    whole = np.frombuffer(_digest(key, 4 * count), "<u4").astype(np.float64)
    return torch.from_numpy((whole / 2**31 - 1).astype(np.float32))


def _digest(key: str, length: int) -> bytes:
    # a lone surrogate, which no encoding takes, is a letter like any other here
    return hashlib.shake_256(key.encode("utf-8", "surrogatepass")).digest(length)


def _signs(digest: bytes, count: int, width: int) -> torch.Tensor:
    bits = np.unpackbits(np.frombuffer(digest, np.uint8), count=count).astype(np.float32)
    return torch.from_numpy((bits * 2 - 1) / np.float32(width**0.5))

"""Random draws that are a function of their key alone: nothing is remembered between items.

Every draw comes from the raw words of Philox, a counter-based generator whose stream numpy promises
to keep; what numpy's own distributions make of a stream may change with its version.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

import numpy as np

Choice = TypeVar("Choice")

WORD = 2**64
"""How many values a raw word has."""


class Stream(IntEnum):
    """What draws are for: the draws of one stream say nothing about those of another."""

    FACTS = 0
    CROWDS = 1
    ORDER = 2
    POPULARITY = 3
    TEXTURES = 4
    TEXT = 5
    IMAGE = 6
    VIDEO = 7
    AUDIO = 8


class Draws:
    """An endless row of draws for one seed, stream and number."""

    AT_ONCE = 64
    """Words fetched together, since a call costs more than a word."""

    def __init__(self, seed: int, stream: Stream, number: int) -> None:
        self._source = np.random.Philox(key=[seed, stream], counter=[0, 0, 0, number])
        self._words: list[int] = []

    def word(self) -> int:
        """A whole number of 64 bits."""
        if not self._words:
            self._words = self._source.random_raw(self.AT_ONCE).tolist()
        return self._words.pop()

    def below(self, end: int) -> int:
        """A whole number from 0 to ``end`` - 1."""
        return self.word() * end // WORD

    def fraction(self) -> float:
        """A number from 0 to 1, without 1."""
        return (self.word() >> 11) * 2.0**-53

    def within(self, reach: float) -> float:
        """A number from -``reach`` to ``reach``."""
        return (2 * self.fraction() - 1) * reach

    def chance(self, rate: float) -> bool:
        """True at this rate."""
        return self.fraction() < rate

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        """One of the choices, all equally likely."""
        return choices[self.below(len(choices))]

    def shuffled(self, values: Sequence[Choice]) -> list[Choice]:
        """All values, in an order of which each is equally likely."""
        order = list(values)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def fractions(self, *shape: int) -> np.ndarray:
        """Numbers from 0 to 1, without 1, float32."""
        size = int(np.prod(shape))
        words = self._source.random_raw(size)
        return ((words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)).reshape(shape)

    def noise(self, *shape: int) -> np.ndarray:
        """Numbers from -1 to 1 in 256 steps, float32; cheap enough for every pixel."""
        size = int(np.prod(shape))
        words = self._source.random_raw(-(-size // 8)).astype("<u8", copy=False)
        steps = words.view(np.uint8)[:size].astype(np.float32).reshape(shape)
        steps *= np.float32(2 / 255)
        steps -= np.float32(1)
        return steps


def permuted(value: int, bits: int, key: int) -> int:
    """Where a permutation of the numbers of this many bits, one for each key, takes ``value``."""
    mask = (1 << bits) - 1
    for _ in range(4):
        # a product with an odd number, a sum and a shift can each be undone
        value = (value * (key | 1) + (key >> 32)) & mask
        value ^= value >> (bits // 2 + 1)
        key = (key * 6364136223846793005 + 1442695040888963407) % WORD
    return value

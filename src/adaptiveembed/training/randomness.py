"""Chance without a state: what is drawn is a function of what it is drawn for.

So a training that is continued draws what it would have drawn, whatever was drawn before. Masks of
dropout are drawn per item (``representation.dropout``); this is for everything else.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_WORD = (1 << 64) - 1


def mixed(*numbers: int) -> int:
    """A number of 63 bits that looks random and depends on every one of these (SplitMix64)."""
    word = 0
    for number in numbers:
        word = (word ^ number) + 0x9E3779B97F4A7C15 & _WORD
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
        word ^= word >> 31
    return word >> 1


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators that a model on this device may draw from."""
    # torch.manual_seed also notes, with a traceback, what devices not yet in use are to do later
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index].manual_seed(seed)


@contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """Within, torch's generators may be seeded; after, they are as they were before."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        yield

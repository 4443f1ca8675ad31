"""The seam between policies and retrieval: anything that gives every item a selection."""

from typing import Protocol, runtime_checkable

from adaptiveembed.structure.candidates import CAES, CandidateSets


@runtime_checkable
class Allocator(Protocol):
    """Decides which of its candidates each item activates.

    An implementation keeps the candidates, their order and their layout, and decides on every item
    by itself: a batch gets what its items would get alone. ``tests/contracts/allocator.py`` holds
    each implementation to that.
    """

    def allocate(self, candidates: CandidateSets) -> CAES:
        """The candidates, each with its selection."""
        ...

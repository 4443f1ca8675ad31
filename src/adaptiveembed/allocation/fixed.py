"""Fixed capacity: the same selection for every item, the baseline of all adaptive allocation."""

from dataclasses import dataclass

from adaptiveembed.errors import LayoutMismatchError
from adaptiveembed.structure.candidates import CAES, CandidateSets
from adaptiveembed.structure.selection import Selection, require_selection


@dataclass(frozen=True)
class FixedAllocator:
    """Gives every item the same selection.

    >>> from adaptiveembed import PAPER_LAYOUT, Selection
    >>> FixedAllocator(Selection.parse("2+1", PAPER_LAYOUT)).selection.capacity
    3
    """

    selection: Selection

    def __post_init__(self) -> None:
        require_selection(self.selection)

    def allocate(self, candidates: CandidateSets) -> CAES:
        if candidates.layout != self.selection.layout:
            raise LayoutMismatchError(
                f"selection {self.selection} belongs to layout {self.selection.layout}, the "
                f"candidates have layout {candidates.layout}; choose a selection of theirs"
            )
        return CAES(candidates, (self.selection,) * len(candidates))

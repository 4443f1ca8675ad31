"""What a candidate set is made of: groups, selections, spaces, candidate sets, directions.

May import errors and shapes only. No files, no modules with parameters.
"""

from adaptiveembed.structure.candidates import CAES, CandidateSets, activate
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.groups import PAPER_LAYOUT, GroupLayout, GroupPrefix
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import (
    Expansion,
    SelectionSpace,
    coarse_to_fine,
    every_prefix,
)

__all__ = [
    "CAES",
    "PAPER_LAYOUT",
    "CandidateSets",
    "Direction",
    "Expansion",
    "GroupLayout",
    "GroupPrefix",
    "Modality",
    "Selection",
    "SelectionSpace",
    "activate",
    "coarse_to_fine",
    "every_prefix",
]

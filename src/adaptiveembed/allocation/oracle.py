"""Oracle allocation (paper, App. A.3): the best selection of every query, knowing the answers.

It bounds what allocation can reach and is for evaluation only: it reads the positives of the very
queries that it serves. ``evaluation.analysis.transfer_oracle`` gives a bound that flatters less.
"""

from dataclasses import dataclass
from typing import Never

import numpy as np

from adaptiveembed.errors import SettingError, ShapeError
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.metrics.ranks import checked_positives
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.shapes import PerQuery, QueryIndices, RankTable
from adaptiveembed.structure.candidates import CAES, CandidateSets
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import SelectionSpace

ROUNDING = 1e-12
"""Relative difference below which two average precisions, or two means of them, are equal: they
are one fraction, summed in another order. Two ranks in a gallery of a million differ by 1e-6."""


@dataclass(frozen=True, eq=False)
class OracleAllocator:
    """Gives every query the selection of the space under which its own positives rank best.

    ``positives`` holds the gallery indices of each query's positives, filled with -1; ``allocate``
    takes exactly those queries, in that order.
    """

    space: SelectionSpace
    gallery: Gallery
    positives: np.ndarray  # not a named shape: the errors below say what to do

    def __post_init__(self) -> None:
        object.__setattr__(self, "positives", checked_positives(self.positives, len(self.gallery)))

    def allocate(self, candidates: CandidateSets) -> CAES:
        if len(candidates) != len(self.positives):
            raise ShapeError(
                f"the oracle knows the positives of {len(self.positives)} queries and was asked "
                f"about {len(candidates)}; make one for exactly these queries"
            )
        ranks = rank_table(self.gallery, candidates, self.positives, self.space.nodes)
        choices = oracle_choice(ranks, self.space)
        return CAES(candidates, chosen_selections(choices, self.space))

    def __reduce__(self) -> Never:
        raise SettingError(
            "an OracleAllocator cannot be saved, pickled or copied: it holds the answers of one "
            "evaluation and is no part of a model; save a learned or a fixed allocator instead"
        )


def oracle_choice(ranks: RankTable, space: SelectionSpace) -> QueryIndices:
    """The index of each query's best selection, from ranks [selections, queries, positives].

    Best is the highest average precision; ties go to the smaller capacity, then to the selection
    that comes first in the space.
    """
    if len(ranks) != len(space):
        raise ShapeError(
            f"ranks under {len(ranks)} selections were given for a space of {len(space)}; "
            "make the rank table with all of space.nodes"
        )
    return best_places(average_precision(ranks), space)


def best_places(precision: PerQuery, space: SelectionSpace) -> QueryIndices:
    """The index of the best selection in every column of [selections, columns].

    Best is the highest precision; ties go to the smaller capacity, then to the selection that comes
    first in the space.
    """
    best = precision >= precision.max(axis=0) * (1 - ROUNDING)
    capacities = [selection.capacity for selection in space.nodes]
    preference = np.argsort(capacities, kind="stable")
    places: QueryIndices = preference[best[preference].argmax(axis=0)]
    return places


def chosen_selections(choices: QueryIndices, space: SelectionSpace) -> tuple[Selection, ...]:
    """The selections with these indices in the space."""
    return tuple(space.nodes[choice] for choice in choices)

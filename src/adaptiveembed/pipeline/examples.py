"""A few queries of an evaluation, told in full: those that succeed and those that fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adaptiveembed.allocation.adaptive import AdaptiveAllocator, Explanation
from adaptiveembed.evaluation.evaluate import SelectionRanks, oracle_selections
from adaptiveembed.pipeline.evaluating import AdaptiveResults
from adaptiveembed.retrieval.ranking import Hit
from adaptiveembed.retrieval.search import search
from adaptiveembed.structure.candidates import CAES
from adaptiveembed.structure.direction import Direction
from adaptiveembed.structure.selection import Selection

SHOWN_HITS = 3
MISSED = 10
"""A query whose answer stands behind so many items has failed."""


@dataclass(frozen=True, eq=False)
class Example:
    """One query: what it was given and why, and what it found."""

    direction: Direction
    query: str
    """The id of the pair that asks; that of the answer is the same."""
    explanation: Explanation
    threshold: float
    oracle: Selection
    """What somebody would have given who knows the answer."""
    rank: int
    """The place of the answer among all items."""
    ranks: Mapping[Selection, int]
    """The place of the answer under every selection that the policy can reach."""
    hits: tuple[Hit, ...]

    @property
    def selection(self) -> Selection:
        return self.explanation.selection


def chosen_examples(
    results: AdaptiveResults,
    allocators: Mapping[Direction, AdaptiveAllocator],
    shown: int = SHOWN_HITS,
) -> list[Example]:
    """For each direction and capacity the first query that succeeds and the first that fails."""
    return [
        example
        for table, selections in zip(results.tables, results.selections, strict=True)
        for example in _of_direction(results, table, selections, allocators, shown)
    ]


def telling_queries(capacities: np.ndarray, ranks: np.ndarray) -> list[int]:
    """By growing capacity: the first query whose answer is first, and the first that misses it.

    Where a capacity has neither, its first query.
    """
    found: list[int] = []
    for capacity in np.unique(capacities):
        members = np.flatnonzero(capacities == capacity)
        kinds = (members[ranks[members] == 1], members[ranks[members] > MISSED])
        told = [int(kind[0]) for kind in kinds if len(kind)]
        found += told or [int(members[0])]
    return found


def _of_direction(
    results: AdaptiveResults,
    table: SelectionRanks,
    selections: Sequence[Selection],
    allocators: Mapping[Direction, AdaptiveAllocator],
    shown: int,
) -> Iterator[Example]:
    task = table.task
    ranks = table.under(selections).min(axis=1)
    chosen = telling_queries(np.array([one.capacity for one in selections]), ranks)
    queries = task.queries[np.array(chosen)]
    allocator = allocators[task.direction]
    oracle = oracle_selections(table)
    asked = CAES(queries, tuple(selections[place] for place in chosen))
    for place, explanation, ranking in zip(
        chosen, allocator.explain(queries), search(task.gallery, asked, shown), strict=True
    ):
        yield Example(
            task.direction,
            task.query_ids[place],
            explanation,
            allocator.threshold,
            oracle[place],
            int(ranks[place]),
            {
                node: int(table.ranks[table.space.index(node), place].min())
                for node in results.deployed.nodes
            },
            tuple(ranking),
        )

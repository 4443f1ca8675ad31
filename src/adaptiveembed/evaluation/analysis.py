"""How capacity was spread, and how much of what allocation could gain was gained.

The oracle of App. A.3 takes the best of many noisy rankings and so flatters itself. The *transfer
oracle* does not: it chooses each query's selection on one random half of the distractors and is
scored on the other. What remains of its lead over the best fixed selection is headroom that a
policy could learn. It still knows the positive, so it bounds a policy and promises nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from adaptiveembed.allocation.oracle import oracle_choice
from adaptiveembed.errors import SettingError
from adaptiveembed.evaluation.evaluate import SelectionRanks, best_fixed
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.shapes import GalleryIndices, QueryIndices, RankTable
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import SelectionSpace

NUM_SPLITS = 10
MIN_GALLERY = 3
"""One positive, and a distractor for each half."""


def capacity_histogram(selections: Iterable[Selection]) -> dict[int, int]:
    """How many items were given each capacity, by ascending capacity."""
    counts = Counter(selection.capacity for selection in selections)
    return dict(sorted(counts.items()))


def selection_distribution(
    selections: Sequence[Selection], space: SelectionSpace
) -> dict[Selection, float]:
    """The share of items that each selection of the space was given, also where it is 0."""
    counts = Counter(space.index(selection) for selection in selections)
    return {node: counts[place] / len(selections) for place, node in enumerate(space.nodes)}


@dataclass(frozen=True)
class Transfer:
    """mAP on halves of the distractors, averaged over both roles and all splits.

    ``adaptive`` is None when no selections were given to compare.
    """

    fixed: Selection
    best_fixed: float
    oracle: float
    adaptive: float | None = None

    @property
    def headroom(self) -> float:
        """What the transfer oracle gains over the best fixed selection."""
        return self.oracle - self.best_fixed

    @property
    def share(self) -> float | None:
        """The share of the headroom that the given selections gained; None without headroom."""
        if self.adaptive is None or self.headroom <= 0:
            return None
        return (self.adaptive - self.best_fixed) / self.headroom


def transfer_oracle(
    table: SelectionRanks,
    generator: np.random.Generator,
    selections: Sequence[Selection] | None = None,
    num_splits: int = NUM_SPLITS,
) -> Transfer:
    """What choosing selections by query gains once the luck of the distractors is taken out.

    ``table`` holds the ranks in the whole gallery; ``selections``, one per query, are what an
    allocator chose in the table's space. The best fixed selection is that of the whole gallery.
    """
    _require_splits(table, num_splits)
    fixed = best_fixed([table])
    known = [table.places([fixed] * len(table.task))]
    known += [] if selections is None else [table.places(selections)]
    halves = _random_halves(len(table.task.gallery), num_splits, generator)
    scores = [_scores_of_split(table, half, known) for half in halves]
    oracle, best, *adaptive = (float(np.mean(one)) for one in zip(*scores, strict=True))
    return Transfer(fixed, best, oracle, *adaptive)


def ranks_in_halves(table: SelectionRanks, half: GalleryIndices) -> tuple[RankTable, RankTable]:
    """The table's ranks when only this half of the gallery, or only the other, can distract.

    A query's positives take part in both halves.
    """
    task = table.task
    first = rank_table(task.gallery, task.queries, task.positives, table.space.nodes, among=half)
    # Positive i stands behind i - 1 positives and behind distractors of the one half or the other,
    # so its two ranks add up to its rank in the whole gallery and i.
    places = np.where(table.ranks > 0, np.arange(1, table.ranks.shape[-1] + 1), 0)
    return first, table.ranks - first + places


def _scores_of_split(
    table: SelectionRanks, half: GalleryIndices, known: Sequence[QueryIndices]
) -> list[float]:
    """The mAP of the transfer oracle and of choices known beforehand, mean of the two roles."""
    first, second = ranks_in_halves(table, half)
    roles = ((first, second), (second, first))
    scores = [_scores_of_role(table, *role, known) for role in roles]
    return [float(np.mean(one)) for one in zip(*scores, strict=True)]


def _scores_of_role(
    table: SelectionRanks, chosen_on: RankTable, scored_on: RankTable, known: Sequence[QueryIndices]
) -> list[float]:
    precision = average_precision(scored_on)
    queries = np.arange(precision.shape[1])
    choices = (oracle_choice(chosen_on, table.space), *known)
    return [float(precision[choice, queries].mean()) for choice in choices]


def _random_halves(
    num_items: int, num_splits: int, generator: np.random.Generator
) -> Iterator[GalleryIndices]:
    for _ in range(num_splits):
        yield np.sort(generator.permutation(num_items)[: num_items // 2])


def _require_splits(table: SelectionRanks, num_splits: int) -> None:
    if num_splits < 1:
        raise SettingError(f"num_splits is {num_splits}; average over at least one split")
    if len(table.task.gallery) < MIN_GALLERY:
        raise SettingError(
            f"a gallery of {len(table.task.gallery)} items has no two halves of distractors; "
            f"use one of at least {MIN_GALLERY} items"
        )

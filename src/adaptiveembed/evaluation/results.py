"""What an evaluation found: ranks and selections of every query, and their means."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adaptiveembed.errors import SettingError
from adaptiveembed.metrics.measures import MEASURES
from adaptiveembed.shapes import PerQuery, QueryIndices, Ranks
from adaptiveembed.structure.direction import Direction
from adaptiveembed.structure.selection import Selection


@dataclass(frozen=True, eq=False)
class TaskEvaluation:
    """How well every query of one direction was answered, and under which selection.

    ``ranks`` are those of each query's positives, by the pessimistic rule of ``metrics.ranks``.
    """

    direction: Direction
    query_ids: tuple[str, ...]
    selections: tuple[Selection, ...]
    ranks: Ranks
    gallery_size: int
    dim: int
    gallery_vectors_stored: int | float
    """Vectors that a gallery item must keep: only its own for a fixed selection, else all. Where
    items differ it is their mean."""
    compared: QueryIndices | PerQuery | None = None
    """Vectors of a gallery item that each query met; open: as many as its own."""

    def __len__(self) -> int:
        return len(self.query_ids)

    @cached_property
    def capacities(self) -> QueryIndices:
        """The number of vectors with which each query was compared."""
        return np.array([one.capacity for one in self.selections], dtype=np.int64)

    @cached_property
    def measures(self) -> dict[str, PerQuery]:
        """Every measure of ``metrics.measures``, per query."""
        return {name: measure(self.ranks) for name, measure in MEASURES.items()}

    @cached_property
    def means(self) -> dict[str, float]:
        """Every measure, averaged over the queries."""
        return {name: float(values.mean()) for name, values in self.measures.items()}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One method on every direction of an evaluation."""

    method: str
    directions: tuple[TaskEvaluation, ...]

    def __post_init__(self) -> None:
        counts = Counter(one.direction for one in self.directions)
        direction, times = max(counts.items(), key=lambda item: item[1])
        if times > 1:
            raise SettingError(
                f"direction {direction} is evaluated {times} times by {self.method!r}; evaluate "
                f"each dataset by itself, so that every direction stands for one gallery"
            )

    @cached_property
    def means(self) -> dict[str, float]:
        """Every measure, averaged over the directions, each with the same weight."""
        return {
            name: float(np.mean([one.means[name] for one in self.directions])) for name in MEASURES
        }

    @property
    def dim(self) -> int:
        """The dimension of the vectors."""
        return self.directions[0].dim

    @property
    def query_vectors(self) -> float:
        """Mean capacity over all queries of all directions, the paper's Avg. Tokens."""
        return float(np.concatenate([one.capacities for one in self.directions]).mean())

    @property
    def gallery_vectors_compared(self) -> float:
        """Mean number of vectors of a gallery item that a query looks at."""
        counts = [
            one.capacities if one.compared is None else one.compared for one in self.directions
        ]
        return float(np.concatenate(counts).mean())

    @property
    def gallery_vectors_stored(self) -> int | float:
        """Vectors that a gallery item must keep to be searched in this way."""
        return max(one.gallery_vectors_stored for one in self.directions)

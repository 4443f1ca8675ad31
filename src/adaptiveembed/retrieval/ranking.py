"""What a search returns: ids and scores, best first, and the capacity each query was given."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adaptiveembed.errors import DtypeError, ShapeError

PADDING = -1
"""Index that fills the end of a row, of rankings or of positives, that has fewer than another."""


@dataclass(frozen=True)
class Hit:
    """One gallery item in the ranking of one query."""

    id: str
    score: float


@dataclass(frozen=True, eq=False)
class Ranking:
    """The items found for one query, best first; equal scores stand in gallery order.

    ``capacity`` is the number of vectors with which the query was compared.
    """

    ids: tuple[str, ...]
    scores: npt.NDArray[np.float32]
    capacity: int

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: int) -> Hit:
        return Hit(self.ids[place], float(self.scores[place]))

    def __iter__(self) -> Iterator[Hit]:
        return (self[place] for place in range(len(self)))


@dataclass(frozen=True, eq=False)
class Rankings:
    """The rankings of a batch of queries, as arrays that share the ids of one gallery.

    Where a query has fewer items than another, the end of its row is filled with index -1 and score
    minus infinity, which single rankings leave out.

    >>> found = Rankings(
    ...     indices=np.array([[1, 0]]),
    ...     scores=np.array([[0.9, 0.2]], dtype=np.float32),
    ...     gallery_ids=("cat", "dog"),
    ...     capacities=np.array([2]),
    ... )
    >>> found[0].ids
    ('dog', 'cat')
    """

    # not named shapes: the errors below say what to do
    indices: np.ndarray
    scores: np.ndarray
    gallery_ids: tuple[str, ...]
    capacities: np.ndarray

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_dtypes(self)
        _check_indices(self)
        _check_padding(self)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, query: int) -> Ranking:
        found = self.indices[query] != PADDING
        ids = tuple(self.gallery_ids[index] for index in self.indices[query][found])
        return Ranking(ids, self.scores[query][found], int(self.capacities[query]))

    def __iter__(self) -> Iterator[Ranking]:
        return (self[query] for query in range(len(self)))

    def to_dicts(self) -> list[list[dict[str, str | float]]]:
        """Plain lists and dicts, ready for JSON: one list of ``{"id", "score"}`` per query."""
        return [[{"id": hit.id, "score": hit.score} for hit in ranking] for ranking in self]


def _check_shapes(rankings: Rankings) -> None:
    indices, scores, capacities = rankings.indices, rankings.scores, rankings.capacities
    if indices.ndim != 2 or indices.shape != scores.shape or capacities.shape != indices.shape[:1]:
        raise ShapeError(
            f"rankings were given indices {indices.shape}, scores {scores.shape} and capacities "
            f"{capacities.shape}; give indices and scores of one shape [queries, k] and one "
            "capacity per query"
        )


def _check_dtypes(rankings: Rankings) -> None:
    for name, array, expected in (
        ("indices", rankings.indices, np.int64),
        ("scores", rankings.scores, np.float32),
        ("capacities", rankings.capacities, np.int64),
    ):
        if array.dtype != expected:
            needed = np.dtype(expected).name
            raise DtypeError(f"{name} are {array.dtype}; convert them with .astype({needed!r})")


def _check_indices(rankings: Rankings) -> None:
    outside = (rankings.indices < PADDING) | (rankings.indices >= len(rankings.gallery_ids))
    if outside.any():
        raise ShapeError(
            f"index {rankings.indices[outside][0]} lies outside of a gallery of "
            f"{len(rankings.gallery_ids)} items; give places in the gallery, or {PADDING} where "
            "fewer items were found"
        )


def _check_padding(rankings: Rankings) -> None:
    """Refuse an item after the filling: it would be exported with the score of another."""
    padded = rankings.indices == PADDING
    wrong = np.flatnonzero((padded[:, :-1] & ~padded[:, 1:]).any(axis=1))
    if wrong.size:
        raise ShapeError(
            f"the indices of query {wrong[0]} are {rankings.indices[wrong[0]].tolist()}, with an "
            f"item after the filling {PADDING}; put the filling at the end of the row"
        )

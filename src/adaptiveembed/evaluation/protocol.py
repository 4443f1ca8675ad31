"""What an evaluation asks: queries, a gallery, and what should be found there (App. B)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError, UnknownIdError
from adaptiveembed.metrics.ranks import checked_positives
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.ranking import PADDING
from adaptiveembed.retrieval.search import require_comparable_queries
from adaptiveembed.shapes import GalleryIndices, Positives
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Direction
from adaptiveembed.structure.ids import checked_ids, distinct_ids


@dataclass(frozen=True, eq=False)
class RetrievalTask:
    """Queries of one modality, the gallery of the other, and each query's positives.

    ``positives`` holds gallery indices [queries, positives], filled with -1 at the end of a row.
    ``from_relevant`` makes a task from ids.
    """

    direction: Direction
    query_ids: tuple[str, ...]
    queries: CandidateSets
    gallery: Gallery
    positives: np.ndarray  # not a named shape: the errors below say what to do

    def __post_init__(self) -> None:
        _require_direction(self.direction)
        query_ids = distinct_ids(self.query_ids, meaning="query ids")
        positives = checked_positives(self.positives, len(self.gallery))
        object.__setattr__(self, "query_ids", query_ids)
        object.__setattr__(self, "positives", positives)
        require_comparable_queries(self.gallery, self.queries)
        _require_one_of_each(self)
        _require_a_positive_each(self)

    @classmethod
    def from_relevant(
        cls,
        direction: Direction,
        query_ids: Sequence[str],
        queries: CandidateSets,
        gallery: Gallery,
        relevant: Sequence[Sequence[str]],
    ) -> "RetrievalTask":
        """The task in which each query should find the gallery items with its ``relevant`` ids."""
        positives = positive_indices(relevant, gallery)
        ids = checked_ids(query_ids, meaning="query ids")
        return cls(direction, ids, queries, gallery, positives)

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def relevant(self) -> list[list[str]]:
        """The ids of each query's positives, as the exports of ``retrieval.runs`` take them."""
        ids = self.gallery.ids
        return [[ids[index] for index in row if index != PADDING] for row in self.positives]


def positive_indices(relevant: Sequence[Sequence[str]], gallery: Gallery) -> Positives:
    """Gallery indices [queries, positives] of each query's relevant ids, filled with -1."""
    relevant = [_checked_relevant(query, ids) for query, ids in enumerate(relevant)]
    counts = [len(ids) for ids in relevant]
    positives = np.full((len(counts), max(counts, default=1)), PADDING, dtype=np.int64)
    found = gallery.indices_of([one for ids in relevant for one in ids])
    positives[np.arange(positives.shape[1]) < np.array(counts)[:, None]] = found
    return positives


def full_gallery(
    ids: Sequence[str],
    source: CandidateSets,
    target: CandidateSets,
    query_ids: Sequence[str],
    direction: Direction,
) -> tuple[RetrievalTask, RetrievalTask]:
    """The two directions of the paper's protocol: full gallery, one positive per query.

    Row i of ``source`` and of ``target`` are the two modalities of the pair ``ids[i]``. The gallery
    is every pair, training prefix and query split alike; the queries are those of ``query_ids``,
    and the one positive of each is its own counterpart.
    """
    _require_direction(direction)
    pairs, asked = checked_ids(ids), checked_ids(query_ids, meaning="query ids")
    if not asked:
        raise EmptyBatchError("query_ids is empty; name at least one pair as a query")
    source_gallery, target_gallery = (
        Gallery.from_candidates(pairs, one) for one in (source, target)
    )
    return (
        _counterparts(direction, asked, source_gallery, target_gallery),
        _counterparts(direction.reversed, asked, target_gallery, source_gallery),
    )


def _counterparts(
    direction: Direction, query_ids: tuple[str, ...], queries: Gallery, gallery: Gallery
) -> RetrievalTask:
    """Every query of these ids, taken from its own gallery, should find its id in the other."""
    asked = queries.candidates(_indices_of_queries(query_ids, queries))
    relevant = [[query_id] for query_id in query_ids]
    return RetrievalTask.from_relevant(direction, query_ids, asked, gallery, relevant)


def _indices_of_queries(query_ids: tuple[str, ...], pairs: Gallery) -> GalleryIndices:
    try:
        return pairs.indices_of(query_ids)
    except UnknownIdError as error:
        raise UnknownIdError(
            f"{error} (the queries of a full-gallery evaluation are pairs of its gallery; pass "
            "the ids of the training prefix and of the query split together)"
        ) from error


def _checked_relevant(query: int, relevant: Sequence[str]) -> tuple[str, ...]:
    ids = distinct_ids(relevant, meaning=f"the relevant ids of query {query} (counted from 0)")
    if not ids:
        raise EmptyBatchError(
            f"query {query} (counted from 0) has no relevant id; give at least one, or leave the "
            "query out"
        )
    return ids


def _require_direction(given: object) -> None:
    if not isinstance(given, Direction):
        raise SettingError(
            f"a direction is needed, got {given!r}; write for example "
            f"Direction(Modality.TEXT, Modality.IMAGE)"
        )


def _require_one_of_each(task: RetrievalTask) -> None:
    if not len(task.query_ids) == len(task.queries) == len(task.positives):
        raise ShapeError(
            f"a retrieval task was given {len(task.query_ids)} query ids, {len(task.queries)} "
            f"queries and positives for {len(task.positives)}; give one of each per query"
        )


def _require_a_positive_each(task: RetrievalTask) -> None:
    without = (task.positives == PADDING).all(axis=1)
    if without.any():
        raise EmptyBatchError(
            f"query {task.query_ids[int(without.argmax())]!r} has no positive; give at least one, "
            "or leave the query out"
        )

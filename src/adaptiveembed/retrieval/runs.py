"""Rankings and relevance judgements in the shapes that other evaluation tools read.

Ties. Those tools sort by score themselves and break ties in ways of their own: trec_eval, and with
it pytrec_eval and ir_measures, by descending document id. Exported scores therefore *fall strictly*
along each ranking: a score that does not lie below its predecessor is lowered by the smallest step
that single precision, which trec_eval reads, keeps apart (about 6e-8). Every tool then sees exactly
our order, in which equal scores stand in gallery order. Our own measures count ties against the
query instead (pessimistic rank), so on data with ties they can be lower than what a tool computes
from an exported run.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adaptiveembed.errors import SettingError, ShapeError
from adaptiveembed.retrieval.ranking import Rankings
from adaptiveembed.shapes import TopScores
from adaptiveembed.structure.ids import checked_ids, distinct_ids

SMALLEST_STEP = np.float32(2.0**-24)
"""Least distance by which an exported score falls: the spacing of float32 just below 1."""


class ScoredDoc(NamedTuple):
    """One line of a run, with the field names of ``ir_measures.ScoredDoc``."""

    query_id: str
    doc_id: str
    score: float


class Qrel(NamedTuple):
    """One relevance judgement, with the field names of ``ir_measures.Qrel``."""

    query_id: str
    doc_id: str
    relevance: int = 1
    iteration: str = "0"


def to_ir_measures(rankings: Rankings, query_ids: Sequence[str]) -> list[ScoredDoc]:
    """Every found item as one row, queries in order, best first."""
    return list(_scored_docs(rankings, query_ids))


def to_ranx(rankings: Rankings, query_ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """The dict of dicts from which ``ranx.Run`` is made: query id to document id to score."""
    run: dict[str, dict[str, float]] = {query_id: {} for query_id in query_ids}
    for row in _scored_docs(rankings, query_ids):
        run[row.query_id][row.doc_id] = row.score
    return run


def to_trec(
    path: str | Path, rankings: Rankings, query_ids: Sequence[str], tag: str = "adaptiveembed"
) -> None:
    """Write a TREC run file: lines ``query Q0 document rank score tag``, rank counted from 1."""
    _check_query_ids(query_ids, len(rankings))  # before there is a file
    _refuse_whitespace("tag", [tag])
    _refuse_whitespace("query id", query_ids)
    _refuse_whitespace("gallery id", rankings.gallery_ids)
    rows = _scored_docs(rankings, query_ids)
    _write_lines(Path(path), _trec_lines(rows, tag))


def qrels_to_ir_measures(query_ids: Sequence[str], relevant: Sequence[Sequence[str]]) -> list[Qrel]:
    """Every relevant item as one row of relevance 1."""
    _check_relevant(query_ids, relevant)
    return [
        Qrel(query_id, doc_id)
        for query_id, doc_ids in zip(query_ids, relevant, strict=True)
        for doc_id in doc_ids
    ]


def qrels_to_ranx(
    query_ids: Sequence[str], relevant: Sequence[Sequence[str]]
) -> dict[str, dict[str, int]]:
    """The dict of dicts from which ``ranx.Qrels`` is made: query id to document id to 1."""
    _check_relevant(query_ids, relevant)
    return {
        query_id: dict.fromkeys(doc_ids, 1)
        for query_id, doc_ids in zip(query_ids, relevant, strict=True)
    }


def qrels_to_trec(
    path: str | Path, query_ids: Sequence[str], relevant: Sequence[Sequence[str]]
) -> None:
    """Write a TREC qrels file: lines ``query 0 document 1``."""
    rows = qrels_to_ir_measures(query_ids, relevant)
    _refuse_whitespace("query id", query_ids)
    _refuse_whitespace("gallery id", (row.doc_id for row in rows))
    _write_lines(Path(path), (f"{row.query_id} {row.iteration} {row.doc_id} 1" for row in rows))


def strictly_falling(scores: TopScores) -> TopScores:
    """Scores [queries, k] that fall along each row, lowered only where they did not."""
    falling = scores.copy()
    for place in range(1, scores.shape[1]):
        previous = falling[:, place - 1]
        # nextafter rules where float32 is too coarse for the step, below -1
        below = np.minimum(previous - SMALLEST_STEP, np.nextafter(previous, np.float32(-np.inf)))
        falling[:, place] = np.minimum(scores[:, place], below)
    return falling


def _scored_docs(rankings: Rankings, query_ids: Sequence[str]) -> Iterator[ScoredDoc]:
    _check_query_ids(query_ids, len(rankings))
    scores = strictly_falling(rankings.scores)
    for query_id, ranking, row in zip(query_ids, rankings, scores, strict=True):
        for doc_id, score in zip(ranking.ids, row, strict=False):
            yield ScoredDoc(query_id, doc_id, float(score))


def _trec_lines(rows: Iterable[ScoredDoc], tag: str) -> Iterator[str]:
    query_id, rank = None, 0
    for row in rows:
        rank = rank + 1 if row.query_id == query_id else 1
        query_id = row.query_id
        # nine significant digits read back as the same float32
        yield f"{row.query_id} Q0 {row.doc_id} {rank} {row.score:.9g} {tag}"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _check_relevant(query_ids: Sequence[str], relevant: Sequence[Sequence[str]]) -> None:
    _check_query_ids(query_ids, len(relevant))
    for query_id, doc_ids in zip(query_ids, relevant, strict=True):
        checked_ids(doc_ids, meaning=f"the relevant ids of query {query_id!r}")


def _check_query_ids(query_ids: Sequence[str], needed: int) -> None:
    distinct_ids(query_ids, meaning="query ids")
    if len(query_ids) != needed:
        raise ShapeError(
            f"got {len(query_ids)} query ids for {needed} queries; give one id per query"
        )


def _refuse_whitespace(what: str, ids: Iterable[str]) -> None:
    for one in ids:
        if one.split() != [one]:
            raise SettingError(
                f"{what} {one!r} cannot stand in a TREC file, whose columns are separated by "
                "whitespace; rename it, or export with to_ranx or to_ir_measures instead"
            )

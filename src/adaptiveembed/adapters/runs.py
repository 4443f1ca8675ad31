"""Our rankings under the measures of ir_measures and ranx.

The rows and dicts themselves are made by ``retrieval.runs``, which needs neither. Scores are
exported so that both tools keep our order; where scores are equal that is the gallery's order,
while our own measures count equal scores against the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptiveembed.adapters.libraries import library
from adaptiveembed.retrieval.ranking import Rankings
from adaptiveembed.retrieval.runs import (
    qrels_to_ir_measures,
    qrels_to_ranx,
    to_ir_measures,
    to_ranx,
)
from adaptiveembed.shapes import PerQuery

IR_MEASURES = {
    "mAP": "AP",
    "MRR": "RR",
    "R@1": "R@1",
    "R@5": "R@5",
    "R@10": "R@10",
    "nDCG": "nDCG",
}
"""What ir_measures calls the measures that our reports print; it has no mean rank."""

RANX = {
    "mAP": "map",
    "MRR": "mrr",
    "R@1": "recall@1",
    "R@5": "recall@5",
    "R@10": "recall@10",
    "nDCG": "ndcg",
}
"""What ranx calls them."""


def measured_by_ir_measures(
    rankings: Rankings,
    query_ids: Sequence[str],
    relevant: Sequence[Sequence[str]],
) -> dict[str, PerQuery]:
    """What ir_measures finds for every query, by our names; rankings are of the whole gallery."""
    tool = library("ir_measures")
    names = {tool.parse_measure(theirs): ours for ours, theirs in IR_MEASURES.items()}
    place = {query: row for row, query in enumerate(query_ids)}
    found = {each: np.zeros(len(place)) for each in names.values()}
    qrels, run = qrels_to_ir_measures(query_ids, relevant), to_ir_measures(rankings, query_ids)
    for row in tool.iter_calc(list(names), qrels, run):
        found[names[row.measure]][place[row.query_id]] = row.value
    return found


def ranx_run(rankings: Rankings, query_ids: Sequence[str], name: str | None = None) -> Any:  # noqa: ANN401 - ranx.Run
    """The rankings as a ``ranx.Run``."""
    return library("ranx", install="ranx").Run(to_ranx(rankings, query_ids), name=name)


def ranx_qrels(query_ids: Sequence[str], relevant: Sequence[Sequence[str]]) -> Any:  # noqa: ANN401 - ranx.Qrels
    """The relevant ids as ``ranx.Qrels``."""
    return library("ranx", install="ranx").Qrels(qrels_to_ranx(query_ids, relevant))

"""A trained model on the query split: every row that a table of results needs (App. B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.errors import TrainingError
from adaptiveembed.evaluation.analysis import Transfer, transfer_oracle
from adaptiveembed.evaluation.evaluate import (
    SelectionRanks,
    allocation_evaluation,
    best_fixed,
    fixed_evaluation,
    oracle_evaluation,
)
from adaptiveembed.evaluation.results import Evaluation, TaskEvaluation
from adaptiveembed.pipeline.paired import PairedFeatures
from adaptiveembed.pipeline.representing import embed_pairs, selection_tables
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.metaembed import Budget, metaembed_ranks
from adaptiveembed.representation.settings import GlobalPosition
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Direction
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import SelectionSpace, every_prefix

ADAPTIVE, ORACLE = "adaptive", "oracle"
SINGLE = "single vector"
TRANSFER_SEED = 0


@dataclass(frozen=True, eq=False)
class AdaptiveResults:
    """What the queries of a dataset reach under every selection, and what they were given."""

    tables: tuple[SelectionRanks, ...]
    selections: tuple[tuple[Selection, ...], ...]
    """The policy's selections, for the queries of each table."""
    deployed: SelectionSpace
    """What the policy decides in."""
    global_position: GlobalPosition

    def evaluations(self) -> list[Evaluation]:
        """Fixed selections that can be deployed, the best of all, ours, and the oracle."""
        best = best_fixed(self.tables)
        space = len(self.tables[0].space)
        return [
            *(fixed_evaluation(self.tables, node) for node in self.deployed.nodes),
            fixed_evaluation(self.tables, best, f"best of {space}: {best}"),
            allocation_evaluation(self.tables, self.selections, ADAPTIVE),
            oracle_evaluation(self.tables, f"{ORACLE} of {space}"),
        ]

    def every_evaluation(self) -> list[Evaluation]:
        """Every fixed selection, ours and the oracle: what a study compares."""
        nodes = self.tables[0].space.nodes
        return [
            *(fixed_evaluation(self.tables, node) for node in nodes),
            allocation_evaluation(self.tables, self.selections, ADAPTIVE),
            oracle_evaluation(self.tables, ORACLE),
        ]

    def transfers(self, num_splits: int = 10) -> dict[Direction, Transfer]:
        """How much of the oracle's lead is no luck, and the share of it that was gained (R15)."""
        return {
            table.task.direction: transfer_oracle(
                table, np.random.default_rng(TRANSFER_SEED), chosen, num_splits
            )
            for table, chosen in zip(self.tables, self.selections, strict=True)
        }


def evaluate_adaptive(
    embedder: PairEmbedder,
    allocators: Mapping[Direction, Allocator],
    data: PairedFeatures,
    deployed: SelectionSpace,
    progress: Progress = silent,
) -> AdaptiveResults:
    """The query split asked in both directions; the gallery is every pair of the dataset."""
    asked = asked_rows(data)
    candidates = embed_pairs(embedder, data, progress)
    tables = selection_tables(data, candidates, asked, every_prefix(embedder.layout))
    selections = tuple(
        allocators[one.task.direction].allocate(one.task.queries).selections for one in tables
    )
    mode = embedder.settings.global_position
    return AdaptiveResults(tuple(tables), selections, deployed, mode)


def evaluate_budgets(
    embedder: PairEmbedder,
    data: PairedFeatures,
    budgets: Sequence[Budget],
    progress: Progress = silent,
) -> list[Evaluation]:
    """MetaEmbed on the query split, under each of its budgets."""
    asked = asked_rows(data)
    source, target = embed_pairs(embedder, data, progress)
    return [
        Evaluation(
            f"MetaEmbed {budget}",
            (
                budget_result(data, (source, target), asked, budget, data.direction),
                budget_result(data, (target, source), asked, budget, data.direction.reversed),
            ),
        )
        for budget in budgets
    ]


def budget_result(
    data: PairedFeatures,
    sides: tuple[CandidateSets, CandidateSets],
    asked: np.ndarray,
    budget: Budget,
    direction: Direction,
) -> TaskEvaluation:
    """One direction under one budget."""
    queries, gallery = sides
    ranks = metaembed_ranks(queries[asked], gallery, asked[:, None], budget)
    # a query's role has one group of vectors, and the budget takes a prefix of it
    selection = Selection(GroupLayout((queries.layout.sizes[0],)), (budget.query,))
    return TaskEvaluation(
        direction=direction,
        query_ids=tuple(data.ids[row] for row in asked),
        selections=(selection,) * len(asked),
        ranks=ranks,
        gallery_size=len(gallery),
        dim=gallery.dim,
        gallery_vectors_stored=budget.gallery,
        compared=np.full(len(asked), budget.gallery),
    )


def asked_rows(data: PairedFeatures) -> np.ndarray:
    """The rows of the queries, of which there must be one at least."""
    if not len(data.queries):
        raise TrainingError(
            f"{data.name} have no pair of split 'query', so nothing can be evaluated; mark some "
            f"pairs of the manifest with split = query"
        )
    return data.queries

"""Stage I from pairs to an embedder, judged on validation while it learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

from adaptiveembed.evaluation.evaluate import (
    SelectionRanks,
    evaluate_every_selection,
    fixed_evaluation,
    oracle_evaluation,
)
from adaptiveembed.evaluation.protocol import RetrievalTask, full_gallery
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.pipeline.paired import PairedFeatures
from adaptiveembed.pipeline.recipe import Method, Recipe
from adaptiveembed.pipeline.rows import TrainingRows
from adaptiveembed.representation.diagnostics import spread
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.metaembed import Budget, MetaEmbedder, metaembed_ranks
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.space import SelectionSpace
from adaptiveembed.training.loop import TrainingSummary
from adaptiveembed.training.stage_one import TrainingPairs, train_embedder

VALIDATION_GALLERY = 5000
"""Items among which validation pairs are searched while training; all of them are at the end."""

JUDGED_BUDGETS = 3
"""MetaEmbed is judged while training by its smallest budgets, whose cost is small too."""

FIGURE = "mAP"
"""The figure that decides which weights are kept."""


@dataclass(frozen=True, eq=False)
class Represented:
    """An embedder that was trained, and how that went."""

    embedder: PairEmbedder
    summary: TrainingSummary


def fit_representation(  # noqa: PLR0913 - what is learned from, how, where, and who is told
    data: PairedFeatures,
    rows: TrainingRows,
    recipe: Recipe,
    folder: Path,
    *,
    progress: Progress = silent,
    matryoshka_widths: tuple[int, ...] = (),
) -> Represented:
    """Train an embedder on the rows of Stage I, or go on where that was stopped in the folder."""
    embedder = starting_embedder(data, rows, recipe, matryoshka_widths)
    pairs = TrainingPairs(
        data.source,
        data.target,
        tuple(data.ids[row] for row in rows.representation),
        rows.representation,
        rows.representation,
    )
    summary = train_embedder(
        embedder,
        pairs,
        recipe.objective(),
        recipe.representation.training,
        folder,
        validate=validation(data, rows, recipe),
        progress=progress,
    )
    return Represented(embedder, summary)


def starting_embedder(
    data: PairedFeatures,
    rows: TrainingRows,
    recipe: Recipe,
    matryoshka_widths: tuple[int, ...] = (),
) -> PairEmbedder:
    """The embedder before its first step: what has a closed form is fitted."""
    kinds = {Method.ADAPTIVE: PairEmbedder, Method.METAEMBED: MetaEmbedder}
    source, target = data.direction.source, data.direction.target
    return kinds[recipe.method].fitted(
        recipe.representation.embedder,
        (source, data.source),
        (target, data.target),
        rows.representation,
        recipe.seed,
        validation=rows.validation,
        matryoshka_widths=matryoshka_widths,
    )


def embed_pairs(
    embedder: PairEmbedder, data: PairedFeatures, progress: Progress = silent
) -> tuple[CandidateSets, CandidateSets]:
    """The candidate sets of all pairs, the source's and the target's."""
    count, total = len(data), 2 * len(data)
    source = embedder.embed(
        data.direction.source, data.source, progress=lambda done, *_: progress(done, total)
    )
    target = embedder.embed(
        data.direction.target, data.target, progress=lambda done, *_: progress(count + done, total)
    )
    return source, target


def validation(
    data: PairedFeatures, rows: TrainingRows, recipe: Recipe
) -> RepresentationValidation | BudgetValidation:
    """What judges an embedder of the recipe while it is trained."""
    chosen = _with_distractors(rows)
    pairs, asked = data.take(chosen), np.isin(chosen, rows.validation)
    if recipe.method is Method.METAEMBED:
        return BudgetValidation(pairs, np.flatnonzero(asked), recipe.budgets[:JUDGED_BUDGETS])
    return RepresentationValidation(pairs, np.flatnonzero(asked), recipe.space)


@dataclass(frozen=True, eq=False)
class RepresentationValidation:
    """Figures of an embedder on validation pairs among other training pairs.

    ``mAP`` is that of the best selection of the space, mean over the directions: a mean over the
    selections would end the training in the valley through which the large ones go. Without
    headroom, or with a cosine near 1, there is nothing to allocate.
    """

    pairs: PairedFeatures
    asked: np.ndarray
    space: SelectionSpace

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        assert isinstance(model, PairEmbedder)
        source, target = embed_pairs(model, self.pairs)
        tables = selection_tables(self.pairs, (source, target), self.asked, self.space)
        oracle = oracle_evaluation(tables).means[FIGURE]
        fixed = {
            f"mAP {node}": fixed_evaluation(tables, node).means[FIGURE] for node in self.space.nodes
        }
        best = max(fixed.values())
        return {
            FIGURE: best,
            **fixed,
            "headroom": oracle - best,
            "cosine": (spread(source).cosine + spread(target).cosine) / 2,
        }


@dataclass(frozen=True, eq=False)
class BudgetValidation:
    """Figures of MetaEmbed on validation pairs: ``mAP`` is that of the best budget."""

    pairs: PairedFeatures
    asked: np.ndarray
    budgets: tuple[Budget, ...]

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        assert isinstance(model, MetaEmbedder)
        sides = embed_pairs(model, self.pairs)
        figures = {f"mAP {budget}": self._precision(sides, budget) for budget in self.budgets}
        return {FIGURE: max(figures.values()), **figures}

    def _precision(self, sides: tuple[CandidateSets, CandidateSets], budget: Budget) -> float:
        means = [
            average_precision(
                metaembed_ranks(one[self.asked], other, self.asked[:, None], budget)
            ).mean()
            for one, other in (sides, sides[::-1])
        ]
        return float(np.mean(means))


def selection_tables(
    pairs: PairedFeatures,
    candidates: tuple[CandidateSets, CandidateSets],
    asked: np.ndarray,
    space: SelectionSpace,
) -> list[SelectionRanks]:
    """The ranks of both directions under every selection; all pairs are the gallery."""
    tasks = pair_tasks(pairs, candidates, asked)
    return [evaluate_every_selection(task, space) for task in tasks]


def pair_tasks(
    pairs: PairedFeatures, candidates: tuple[CandidateSets, CandidateSets], asked: np.ndarray
) -> tuple[RetrievalTask, RetrievalTask]:
    """Both directions of the full-gallery protocol over these pairs."""
    ids = [pairs.ids[row] for row in asked]
    return full_gallery(pairs.ids, *candidates, ids, pairs.direction)


def _with_distractors(rows: TrainingRows) -> np.ndarray:
    """The validation rows and, evenly chosen, as many others as fill the gallery."""
    others = np.setdiff1d(rows.all, rows.validation)
    room = min(len(others), max(0, VALIDATION_GALLERY - len(rows.validation)))
    chosen = np.linspace(0, len(others) - 1, room).astype(np.int64)
    return np.sort(np.concatenate([rows.validation, others[chosen]]))

"""Stage II from an embedder to a policy with its bank and thresholds (Sec. 3.2, App. A.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.adaptive import AdaptiveAllocator
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import PolicyInputs, policy_inputs
from adaptiveembed.allocation.policy import (
    InvariantPolicy,
    LearnedPolicy,
    PolicySharing,
    action_probabilities,
    make_policy,
)
from adaptiveembed.allocation.thresholds import ThresholdCurve, choose_threshold
from adaptiveembed.allocation.upo import upo_loss
from adaptiveembed.allocation.utility import (
    UtilityGallery,
    marginal_utility,
    node_values,
    standardized_utility,
    state_utilities,
    utility_scale,
)
from adaptiveembed.errors import NotFiniteError
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.recipe import AllocationRecipe, Recipe
from adaptiveembed.pipeline.representing import FIGURE
from adaptiveembed.pipeline.rows import TrainingRows
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.shapes import EdgeUtilities, RankTable
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Direction
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.space import SelectionSpace
from adaptiveembed.training.loop import TrainingSummary
from adaptiveembed.training.stage_two import PolicyExamples, train_policy

BATCH_SIZE = 1024
"""Items whose probabilities are computed at a time."""


@dataclass(frozen=True, eq=False)
class EmbeddedPairs:
    """The candidate sets of both sides of joint pairs."""

    data: JointPairs
    source: CandidateSets
    target: CandidateSets

    @property
    def directions(self) -> tuple[Direction, Direction]:
        return self.data.direction, self.data.direction.reversed

    def sides(self, direction: Direction) -> tuple[CandidateSets, CandidateSets]:
        """Queries and gallery of a direction."""
        forward = direction == self.data.direction
        return (self.source, self.target) if forward else (self.target, self.source)


@dataclass(frozen=True, eq=False)
class Allocated:
    """The allocators of both directions, and how their policies were learned."""

    allocators: Mapping[Direction, AdaptiveAllocator]
    curves: Mapping[Direction, ThresholdCurve]
    """What every threshold reached on validation."""
    summaries: tuple[TrainingSummary, ...]
    """One for every policy: one for both directions, or one for each."""


@dataclass(frozen=True, eq=False)
class DirectionExamples:
    """What one direction gives to Stage II."""

    bank: RetrievalBank
    training: PolicyExamples
    validation: PolicyInputs
    validation_ranks: RankTable


def fit_allocation(
    embedded: EmbeddedPairs,
    rows: TrainingRows,
    recipe: Recipe,
    folder: Path,
    progress: Progress = silent,
) -> Allocated:
    """Train policies on the utilities of the rows, or go on where that was stopped."""
    examples = {
        direction: direction_examples(embedded, direction, rows, recipe)
        for direction in embedded.directions
    }
    learned = [
        fit_policy({one: examples[one] for one in group}, recipe, folder / _name(group), progress)
        for group in _sharing(recipe, embedded.directions)
    ]
    return Allocated(
        {one: each for part in learned for one, each in part.allocators.items()},
        {one: each for part in learned for one, each in part.curves.items()},
        tuple(summary for part in learned for summary in part.summaries),
    )


def fit_policy(
    examples: Mapping[Direction, DirectionExamples],
    recipe: Recipe,
    folder: Path,
    progress: Progress = silent,
) -> Allocated:
    """Train one policy for these directions, and choose the threshold of each."""
    training = PolicyExamples.concatenate([each.training for each in examples.values()])
    policy = empty_policy(recipe)
    if isinstance(policy, InvariantPolicy):
        policy.standardize_by(training.inputs)
    judge = PolicyValidation(examples, policy.actions)
    settings = recipe.allocation
    summary = train_policy(
        policy, training, upo_loss, settings.training, folder, validate=judge, progress=progress
    )
    policy.eval()
    curves = judge.curves(policy)
    allocators = {
        direction: AdaptiveAllocator(policy, each.bank, curve.threshold, settings.feedback)
        for (direction, each), curve in zip(examples.items(), curves.values(), strict=True)
    }
    return Allocated(allocators, curves, (summary,))


def empty_policy(recipe: Recipe) -> LearnedPolicy:
    """The policy of a recipe before its first step."""
    settings, dim = recipe.allocation, recipe.representation.embedder.dim
    depth = settings.feedback.depth
    return make_policy(settings.policy, recipe.space, dim, depth, seed=recipe.seed)


def _sharing(
    recipe: Recipe, directions: tuple[Direction, Direction]
) -> tuple[tuple[Direction, ...], ...]:
    """The directions that each policy serves."""
    if recipe.allocation.policy.sharing is PolicySharing.SHARED:
        return (directions,)
    return tuple((each,) for each in directions)


def _name(directions: tuple[Direction, ...]) -> str:
    """The folder of a policy's training."""
    (first, *others) = directions
    return "both" if others else f"{first.source}-{first.target}"


@dataclass(frozen=True, eq=False)
class PolicyValidation:
    """Figures of a policy on validation pairs, each direction under its own best threshold."""

    examples: Mapping[Direction, DirectionExamples]
    actions: Actions

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        curves = self.curves(model)
        figures = {}
        for direction, curve in curves.items():
            figures[f"mAP {direction}"] = float(curve.precision[curve.best])
            figures[f"capacity {direction}"] = float(curve.capacity[curve.best])
        found = [float(curve.precision[curve.best]) for curve in curves.values()]
        return {FIGURE: float(np.mean(found)), **figures}

    def curves(self, model: nn.Module) -> dict[Direction, ThresholdCurve]:
        """What every threshold reaches."""
        return {
            direction: choose_threshold(
                batched_probabilities(model, each.validation), each.validation_ranks, self.actions
            )
            for direction, each in self.examples.items()
        }


def batched_probabilities(model: nn.Module, inputs: PolicyInputs) -> torch.Tensor:
    """The probabilities of all actions, without gradient and on the CPU."""
    like = next(model.parameters())
    with torch.inference_mode():
        parts = [
            action_probabilities(model(inputs[start : start + BATCH_SIZE].to(like.device))).cpu()
            for start in range(0, len(inputs), BATCH_SIZE)
        ]
    found = torch.cat(parts)
    # a threshold would take NaN for an item that stops
    if not found.isfinite().all():
        raise NotFiniteError(
            "the policy gives probabilities that hold NaN; train it again with a lower "
            "allocation.training.optimizer.learning_rate"
        )
    return found


def direction_examples(
    embedded: EmbeddedPairs,
    direction: Direction,
    rows: TrainingRows,
    recipe: Recipe,
) -> DirectionExamples:
    """The bank of a direction, and what its samples read and gain."""
    space, settings = recipe.space, recipe.allocation
    queries, gallery = embedded.sides(direction)
    bank = made_bank(embedded, gallery, rows, settings)
    ranks = dataset_ranks(embedded, direction, rows, space)
    taught = ranks
    if settings.utility.gallery is UtilityGallery.JOINT:
        taught = joint_ranks(embedded, direction, rows, space)

    def inputs_of(chosen: np.ndarray) -> PolicyInputs:
        ids = [embedded.data.pairs.ids[row] for row in chosen]
        left_out = bank.places(ids) if settings.feedback.leave_partner_out else None
        return policy_inputs(queries[chosen], bank, space, settings.feedback, left_out=left_out)

    policy, validation = (
        np.searchsorted(rows.all, each) for each in (rows.policy, rows.validation)
    )
    gains = marginal_utility(node_values(taught[:, policy], settings.utility), space)
    return DirectionExamples(
        bank,
        PolicyExamples(inputs_of(rows.policy), standardised(gains, space, settings)),
        inputs_of(rows.validation),
        ranks[:, validation],
    )


def standardised(
    gains: EdgeUtilities, space: SelectionSpace, settings: AllocationRecipe
) -> torch.Tensor:
    """The utilities of all actions at all states, on the scale of their direction (R10)."""
    scale = utility_scale(gains, space, settings.utility)
    return state_utilities(standardized_utility(gains, space, scale), space)


def made_bank(
    embedded: EmbeddedPairs, gallery: CandidateSets, rows: TrainingRows, settings: AllocationRecipe
) -> RetrievalBank:
    """The bank of the gallery's side: what Stage I learned from, or some of it (R12)."""
    ids = tuple(embedded.data.pairs.ids[row] for row in rows.representation)
    bank = RetrievalBank(ids, gallery[rows.representation])
    return bank.subsampled(settings.bank.size, settings.bank.sampling, settings.bank.seed)


def dataset_ranks(
    embedded: EmbeddedPairs, direction: Direction, rows: TrainingRows, space: SelectionSpace
) -> RankTable:
    """Ranks of all training rows, each in the gallery of its own dataset (R21)."""
    return _ranks_within(_by_dataset(embedded.data, rows.all), embedded, direction, space)


def joint_ranks(
    embedded: EmbeddedPairs, direction: Direction, rows: TrainingRows, space: SelectionSpace
) -> RankTable:
    """Ranks of all training rows, each in one gallery of all datasets (R21)."""
    return _ranks_within([rows.all], embedded, direction, space)


def _ranks_within(
    parts: Sequence[np.ndarray],
    embedded: EmbeddedPairs,
    direction: Direction,
    space: SelectionSpace,
) -> RankTable:
    """Ranks of the rows of all parts, ascending, each in the gallery of its part."""
    queries, items = embedded.sides(direction)
    found: list[RankTable] = []
    for own in parts:
        ids = [f"{row}" for row in own]
        gallery = Gallery.from_candidates(ids, items[own])
        positives = np.arange(len(own))[:, None]
        found.append(rank_table(gallery, queries[own], positives, space.nodes))
    return np.concatenate(found, axis=1)[:, np.argsort(np.concatenate(parts))]


def _by_dataset(data: JointPairs, rows: np.ndarray) -> Sequence[np.ndarray]:
    owners = data.owners[rows]
    return [rows[owners == owner] for owner in np.unique(owners)]

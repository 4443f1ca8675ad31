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
class Lessons:
    """What some pairs read of a bank in one direction, and what every expansion gains them."""

    inputs: PolicyInputs
    gains: EdgeUtilities
    """Not standardised yet: that takes all lessons of a direction at once (R10)."""

    @classmethod
    def concatenate(cls, parts: Sequence[Lessons]) -> Lessons:
        """The lessons of all parts, one part after another."""
        inputs = PolicyInputs.concatenate([part.inputs for part in parts])
        return cls(inputs, np.concatenate([part.gains for part in parts], axis=1))


@dataclass(frozen=True, eq=False)
class DirectionExamples:
    """What one direction gives to Stage II."""

    bank: RetrievalBank
    training: PolicyExamples
    validation: PolicyInputs
    validation_ranks: RankTable


def fit_allocation(  # noqa: PLR0913 - what from, how, where, and two with defaults
    embedded: EmbeddedPairs,
    rows: TrainingRows,
    recipe: Recipe,
    folder: Path,
    *,
    progress: Progress = silent,
    lessons: Mapping[Direction, Lessons] | None = None,
) -> Allocated:
    """Train policies on lessons, or go on where that was stopped.

    Without lessons of other embedders, the rows of the policy give them in this one.
    """
    taught = lessons or {}
    examples = {
        direction: direction_examples(embedded, direction, rows, recipe, taught.get(direction))
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
    lessons: Lessons | None = None,
) -> DirectionExamples:
    """The bank of a direction, what its samples read and gain, and what judges the policy."""
    bank = made_bank(embedded, direction, rows, recipe.allocation)
    if lessons is None:
        lessons = direction_lessons(embedded, direction, rows, recipe, bank)
    utilities = standardised(lessons.gains, recipe.space, recipe.allocation)
    return DirectionExamples(
        bank,
        PolicyExamples(lessons.inputs, utilities),
        read_inputs(embedded, direction, rows.validation, recipe, bank),
        dataset_ranks(embedded, direction, rows, rows.validation, recipe.space),
    )


def direction_lessons(
    embedded: EmbeddedPairs,
    direction: Direction,
    rows: TrainingRows,
    recipe: Recipe,
    bank: RetrievalBank,
) -> Lessons:
    """What the rows of the policy read and gain in one direction."""
    ranked = {UtilityGallery.OWN: dataset_ranks, UtilityGallery.JOINT: joint_ranks}
    settings = recipe.allocation.utility
    ranks = ranked[settings.gallery](embedded, direction, rows, rows.policy, recipe.space)
    return Lessons(
        read_inputs(embedded, direction, rows.policy, recipe, bank),
        marginal_utility(node_values(ranks, settings), recipe.space),
    )


def read_inputs(
    embedded: EmbeddedPairs,
    direction: Direction,
    asked: np.ndarray,
    recipe: Recipe,
    bank: RetrievalBank,
) -> PolicyInputs:
    """What the policy reads of these rows in one direction."""
    queries, _ = embedded.sides(direction)
    settings = recipe.allocation.feedback
    ids = [embedded.data.pairs.ids[row] for row in asked]
    left_out = bank.places(ids) if settings.leave_partner_out else None
    return policy_inputs(queries[asked], bank, recipe.space, settings, left_out=left_out)


def standardised(
    gains: EdgeUtilities, space: SelectionSpace, settings: AllocationRecipe
) -> torch.Tensor:
    """The utilities of all actions at all states, on the scale of their direction (R10)."""
    scale = utility_scale(gains, space, settings.utility)
    return state_utilities(standardized_utility(gains, space, scale), space)


def made_bank(
    embedded: EmbeddedPairs, direction: Direction, rows: TrainingRows, settings: AllocationRecipe
) -> RetrievalBank:
    """The bank of the gallery's side: what Stage I learned from, or some of it (R12)."""
    _, gallery = embedded.sides(direction)
    ids = tuple(embedded.data.pairs.ids[row] for row in rows.representation)
    bank = RetrievalBank(ids, gallery[rows.representation])
    return bank.subsampled(settings.bank.size, settings.bank.sampling, settings.bank.seed)


def dataset_ranks(
    embedded: EmbeddedPairs,
    direction: Direction,
    rows: TrainingRows,
    asked: np.ndarray,
    space: SelectionSpace,
) -> RankTable:
    """Ranks of some training rows, each in the training gallery of its own dataset (R21)."""
    return _ranks_within(_by_dataset(embedded.data, rows.all), embedded, direction, asked, space)


def joint_ranks(
    embedded: EmbeddedPairs,
    direction: Direction,
    rows: TrainingRows,
    asked: np.ndarray,
    space: SelectionSpace,
) -> RankTable:
    """Ranks of some training rows, each in one training gallery of all datasets (R21)."""
    return _ranks_within([rows.all], embedded, direction, asked, space)


def _ranks_within(
    parts: Sequence[np.ndarray],
    embedded: EmbeddedPairs,
    direction: Direction,
    asked: np.ndarray,
    space: SelectionSpace,
) -> RankTable:
    """Ranks of the rows asked for, ascending, each in the gallery of the part that it is in."""
    queries, items = embedded.sides(direction)
    asked_of = [(own, chosen) for own in parts if len(chosen := np.intersect1d(own, asked))]
    found: list[RankTable] = []
    for own, chosen in asked_of:
        gallery = Gallery.from_candidates([f"{row}" for row in own], items[own])
        positives = np.searchsorted(own, chosen)[:, None]
        found.append(rank_table(gallery, queries[chosen], positives, space.nodes))
    return np.concatenate(found, axis=1)[
        :, np.argsort(np.concatenate([rows for _, rows in asked_of]))
    ]


def _by_dataset(data: JointPairs, rows: np.ndarray) -> Sequence[np.ndarray]:
    owners = data.owners[rows]
    return [rows[owners == owner] for owner in np.unique(owners)]

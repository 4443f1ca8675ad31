"""The learned allocator: candidates to feedback to probabilities to selections (Sec. 3.2).

Only the states that an item reaches are looked at, all items of a state together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
import torch

from adaptiveembed.allocation.actions import STOP, Actions
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import (
    BankReading,
    FeedbackSettings,
    PolicyInputs,
    item_slices,
)
from adaptiveembed.allocation.mua import walk
from adaptiveembed.allocation.policy import Policy, action_probabilities
from adaptiveembed.errors import LayoutMismatchError, SettingError
from adaptiveembed.shapes import ActionProbabilities, FeedbackArray, ItemIndices
from adaptiveembed.structure.candidates import CAES, CandidateSets
from adaptiveembed.structure.selection import Selection


@dataclass(frozen=True, eq=False)
class Decision:
    """What an item was given to choose at one state, and what it was shown there."""

    state: Selection
    stop: float
    """How probable stopping was."""
    expansions: dict[Selection, float]
    """How probable each expansion was."""
    chosen: Selection
    """Where it went on to; the state itself where it stopped."""
    bank_ids: tuple[str, ...]
    """The items of the bank that were the feedback, best first."""
    bank_scores: tuple[float, ...]
    """The scores by which they were."""
    responses: FeedbackArray
    """How every position responds to each of these items."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """How an item came by its selection, decision after decision."""

    selection: Selection
    decisions: tuple[Decision, ...]

    @property
    def capacity(self) -> int:
        return self.selection.capacity


@dataclass(frozen=True, eq=False)
class AdaptiveAllocator:
    """Gives every item the selection that a learned policy leads it to.

    An expansion is taken where its probability is above the threshold, which is chosen on
    validation data (``thresholds``). Policy, bank and candidates are on one device.
    """

    policy: Policy
    bank: RetrievalBank
    threshold: float
    feedback: FeedbackSettings = field(default_factory=FeedbackSettings)

    def __post_init__(self) -> None:
        if not (isfinite(self.threshold) and 0 <= self.threshold <= 1):
            raise SettingError(
                f"the threshold is {self.threshold}; give a probability, 0 expands as far as "
                f"possible and 1 never"
            )
        if self.bank.layout != self.actions.space.layout:
            raise LayoutMismatchError(
                f"the bank has layout {self.bank.layout} and the policy's space "
                f"{self.actions.space.layout}; make both with one layout"
            )
        if self.feedback.depth > len(self.bank):
            raise SettingError(
                f"the feedback needs the top {self.feedback.depth} items and the bank has "
                f"{len(self.bank)}; give the bank that the policy was trained with"
            )

    @property
    def actions(self) -> Actions:
        """What the policy chooses among."""
        return self.policy.actions

    def allocate(self, candidates: CandidateSets) -> CAES:
        """The candidates, each with its selection."""
        selections: list[Selection] = []
        for part in item_slices(len(candidates), self.bank):
            selections += _Walk(self, candidates[part]).selections
        return CAES(candidates, tuple(selections))

    def explain(self, candidates: CandidateSets) -> list[Explanation]:
        """How each item comes by the selection that ``allocate`` gives it."""
        explanations: list[Explanation] = []
        for part in item_slices(len(candidates), self.bank):
            explanations += _Walk(self, candidates[part]).explanations()
        return explanations


class _Walk:
    """One batch led through the space, and what it saw at every state that it reached."""

    def __init__(self, allocator: AdaptiveAllocator, candidates: CandidateSets) -> None:
        self._allocator = allocator
        self._reading = BankReading(candidates, allocator.bank, allocator.feedback)
        self._device = candidates.vectors.device
        self._visits: list[tuple[ItemIndices, PolicyInputs, ActionProbabilities]] = []
        actions = allocator.actions
        places = walk(self._decide, len(candidates), actions, allocator.threshold)
        self.selections = [actions.space.nodes[place] for place in places.tolist()]

    @torch.no_grad()
    def _decide(self, state: Selection, items: ItemIndices) -> ActionProbabilities:
        inputs = self._reading.at(state, items.to(self._device))
        probabilities = action_probabilities(self._allocator.policy(inputs)).squeeze(1)
        self._visits.append((items, inputs, probabilities))
        return probabilities

    def explanations(self) -> Iterator[Explanation]:
        """What led every item to its selection."""
        decisions: list[list[Decision]] = [[] for _ in self.selections]
        for items, inputs, probabilities in self._visits:
            for row, item in enumerate(items.tolist()):
                decision = self._decision(inputs, probabilities, row, self.selections[item])
                decisions[item].append(decision)
        for selection, taken in zip(self.selections, decisions, strict=True):
            yield Explanation(selection, tuple(taken))

    def _decision(
        self, inputs: PolicyInputs, probabilities: ActionProbabilities, row: int, end: Selection
    ) -> Decision:
        (state,) = inputs.states
        space, odds = self._allocator.actions.space, probabilities[row].tolist()
        expansions = {
            edge.target: odds[1 + place]
            for place, edge in enumerate(space.edges)
            if edge.source == state
        }
        return Decision(
            state,
            odds[STOP],
            expansions,
            state if end == state else max(expansions, key=expansions.__getitem__),
            tuple(self._allocator.bank.ids[item] for item in inputs.top_items[row, 0].tolist()),
            tuple(inputs.top_scores[row, 0].tolist()),
            np.asarray(inputs.feedback[row, 0].cpu()),
        )

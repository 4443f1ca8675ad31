"""Bank feedback (App. A.4): how selected and candidate positions respond to what matters now.

At a state, the bank's items are ranked by the mean response of the selected positions, and the
responses of all positions to the top items are what the policy sees. Nothing here knows which item
is relevant. Only the positions that are selected somewhere are compared with the whole bank; the
others are compared with the top items alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce

import torch
from torch import Tensor

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.bank import NOWHERE, RetrievalBank
from adaptiveembed.errors import (
    EmptyBatchError,
    LayoutMismatchError,
    SettingError,
    ShapeError,
)
from adaptiveembed.shapes import (
    BankPlaces,
    BankScores,
    CandidateVectors,
    Feedback,
    FeedbackItems,
    FeedbackScores,
    ItemIndices,
    SingleVectors,
    StateFeedback,
    StatesItems,
    StatesScores,
)
from adaptiveembed.similarity.setsim import require_same_space, setsim_matrix
from adaptiveembed.similarity.tiling import MEMORY_BUDGET
from adaptiveembed.structure.candidates import CandidateSets, activate
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import SelectionSpace

GATHERED = 4 << 20
"""Bytes of bank vectors that are copied at a time to be compared, few enough to stay in a cache."""


class BankScore(StrEnum):
    """By which score of the bank's items the top ones are found."""

    RESPONSES = "responses"
    """The mean response of the selected positions, as in the paper."""
    SETSIM = "setsim"
    """SetSim under the selection, by which it would really be searched; our variant."""


@dataclass(frozen=True)
class FeedbackSettings:
    """What the policy is shown of the bank."""

    depth: int = 50
    """L: how many of the bank's items."""
    score: BankScore = BankScore.RESPONSES
    """What makes an item a top one: ``responses`` as in the paper, or ``setsim``."""
    leave_partner_out: bool = True
    """Whether a training sample's own partner is taken out of its feedback (R12); false is the
    paper read literally."""

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise SettingError(f"depth is {self.depth}; show at least 1 item of the bank")


@dataclass(frozen=True, eq=False)
class PolicyInputs:
    """All that any policy may read of a batch of items, at some states of a space."""

    states: tuple[Selection, ...]
    """What is selected in each of them."""
    candidates: CandidateVectors
    feedback: Feedback
    """F_t of every state: responses of all positions to the state's top items, best item first."""
    top_items: StatesItems
    """The places of these items in the bank."""
    top_scores: StatesScores
    """The scores by which they are the top ones, descending."""

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, items: slice | Tensor) -> PolicyInputs:
        """The inputs of these items."""
        return PolicyInputs(self.states, *(each[items] for each in self.tensors))

    @classmethod
    def concatenate(cls, parts: Sequence[PolicyInputs]) -> PolicyInputs:
        """The items of all parts, one part after another."""
        _require_parts_of_equal_states(parts)
        columns = zip(*(part.tensors for part in parts), strict=True)
        return cls(parts[0].states, *(torch.cat(column) for column in columns))

    def to(self, device: torch.device | str) -> PolicyInputs:
        """The same inputs on another device."""
        return PolicyInputs(self.states, *(each.to(device) for each in self.tensors))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What there is of every item."""
        return self.candidates, self.feedback, self.top_items, self.top_scores


def policy_inputs(  # noqa: PLR0913 - two of them have defaults that suit nearly everyone
    candidates: CandidateSets,
    bank: RetrievalBank,
    space: SelectionSpace,
    settings: FeedbackSettings | None = None,
    *,
    left_out: BankPlaces | None = None,
    progress: Progress = silent,
) -> PolicyInputs:
    """What a policy may read of every item at every state, a few items at a time to bound memory.

    ``left_out`` holds the place in the bank that each item must not see, -1 for none.
    """
    states = Actions(space).states
    _require_places_for_all(left_out, len(candidates))
    _require_layout("space", space.layout, candidates)
    parts = []
    for part in item_slices(len(candidates), bank):
        hidden = None if left_out is None else left_out[part]
        reading = BankReading(candidates[part], bank, settings, hidden)
        parts.append(_at_all(states, reading))
        progress(min(part.stop, len(candidates)), len(candidates))
    return PolicyInputs.concatenate(parts)


class BankReading:
    """What a batch of items reads of a bank, computed for the states that are asked for.

    The responses of a position are computed once for each item, when a state first needs them.
    """

    def __init__(
        self,
        candidates: CandidateSets,
        bank: RetrievalBank,
        settings: FeedbackSettings | None = None,
        left_out: BankPlaces | None = None,
    ) -> None:
        self._settings = settings or FeedbackSettings()
        _require_comparable(candidates, bank)
        _require_depth(self._settings.depth, len(bank), left_out)
        self._bank, self._left_out = bank, left_out
        self._candidates = candidates
        self._vectors = candidates.vectors.detach().float()
        self._responses: dict[int, Tensor] = {}
        shape = self._vectors.shape[:2]
        self._known = torch.zeros(shape, dtype=torch.bool, device=self._vectors.device)

    def at(self, state: Selection, items: ItemIndices | None = None) -> PolicyInputs:
        """The inputs of these items at one state; of all items if none are given."""
        if items is None:
            items = torch.arange(len(self._vectors), device=self._vectors.device)
        left_out = None if self._left_out is None else self._left_out[items]
        values, places = top_items(self._scores(state, items), self._settings.depth, left_out)
        vectors = self._vectors[items]
        feedback = responses_to(vectors, self._bank, places)
        return PolicyInputs(
            (state,), vectors, feedback.unsqueeze(1), places.unsqueeze(1), values.unsqueeze(1)
        )

    def _scores(self, state: Selection, items: ItemIndices) -> BankScores:
        if self._settings.score is BankScore.SETSIM:
            return setsim_scores(self._candidates[items], self._bank, state)
        responses = [self._responses_of(position, items) for position in state.positions]
        return reduce(torch.add, responses) / state.capacity

    def _responses_of(self, position: int, items: ItemIndices) -> BankScores:
        if position not in self._responses:
            shape = len(self._vectors), len(self._bank)
            self._responses[position] = self._vectors.new_empty(shape)
        responses = self._responses[position]
        missing = items[~self._known[items, position]]
        if len(missing):
            responses[missing] = bank_responses(self._vectors[missing, position], self._bank)
            self._known[missing, position] = True
        return responses[items]


def bank_responses(vectors: SingleVectors, bank: RetrievalBank) -> BankScores:
    """A_{i,n} of single vectors with every item of the bank, as ``similarity.maxsim.responses``.

    One bank position at a time, which takes no longer than the product of the vectors.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        found = vectors @ bank.by_position[0].T
        product = torch.empty_like(found)
        for stored in bank.by_position[1:]:
            torch.maximum(found, torch.matmul(vectors, stored.T, out=product), out=found)
    return found


def setsim_scores(candidates: CandidateSets, bank: RetrievalBank, state: Selection) -> BankScores:
    """SetSim of every item with every item of the bank under a selection."""
    sets = activate(candidates, state).detach().float()
    return setsim_matrix(sets, activate(bank.candidates, state).float())


def top_items(
    scores: BankScores, depth: int, left_out: BankPlaces | None = None
) -> tuple[FeedbackScores, FeedbackItems]:
    """The scores and places of each row's top items, best first, without the one left out."""
    _require_depth(depth, scores.shape[1], left_out)
    if left_out is not None:
        rows = torch.nonzero(left_out != NOWHERE).squeeze(-1)
        scores = scores.clone()
        scores[rows, left_out[rows]] = -torch.inf
    found = scores.topk(depth)
    return found.values, found.indices


def responses_to(
    vectors: CandidateVectors, bank: RetrievalBank, items: FeedbackItems
) -> StateFeedback:
    """The responses of all positions of each item to some items of the bank."""
    row_bytes = 4 * items.shape[1] * vectors.shape[2]
    parts = [
        _responses_to(vectors[part], bank, items[part])
        for part in _slices(len(vectors), GATHERED // row_bytes)
    ]
    return torch.cat(parts)


def item_slices(num_items: int, bank: RetrievalBank) -> Iterator[slice]:
    """Parts of which the responses of all positions to the bank fit into the memory budget."""
    return _slices(num_items, MEMORY_BUDGET // (8 * bank.layout.num_candidates * len(bank)))


def _responses_to(vectors: Tensor, bank: RetrievalBank, items: Tensor) -> Tensor:
    products = (_products(vectors, stored, items) for stored in bank.by_position)
    return reduce(lambda found, product: torch.maximum(found, product, out=found), products)


def _products(vectors: Tensor, stored: Tensor, items: Tensor) -> Tensor:
    """The cosines of all positions with one position of some items of the bank."""
    rows = stored.index_select(0, items.flatten()).view(*items.shape, -1)
    with torch.autocast(vectors.device.type, enabled=False):
        return torch.bmm(vectors, rows.transpose(1, 2))


def _at_all(states: Sequence[Selection], reading: BankReading) -> PolicyInputs:
    found = [reading.at(state) for state in states]
    return replace(
        found[0],
        states=tuple(states),
        feedback=torch.cat([each.feedback for each in found], dim=1),
        top_items=torch.cat([each.top_items for each in found], dim=1),
        top_scores=torch.cat([each.top_scores for each in found], dim=1),
    )


def _slices(count: int, size: int) -> Iterator[slice]:
    size = max(1, size)
    return (slice(start, start + size) for start in range(0, count, size))


def _require_parts_of_equal_states(parts: Sequence[PolicyInputs]) -> None:
    if not parts:
        raise EmptyBatchError("nothing to concatenate; give at least one part")
    for part in parts[1:]:
        if part.states != parts[0].states:
            raise ShapeError(
                f"cannot concatenate inputs at states {', '.join(map(str, parts[0].states))} and "
                f"at {', '.join(map(str, part.states))}; make all of them with one space"
            )


def _require_places_for_all(left_out: Tensor | None, num_items: int) -> None:
    if left_out is not None and len(left_out) != num_items:
        raise ShapeError(
            f"got {len(left_out)} places to leave out for {num_items} items; "
            f"give one per item, -1 for none"
        )


def _require_comparable(candidates: CandidateSets, bank: RetrievalBank) -> None:
    _require_layout("bank", bank.layout, candidates)
    require_same_space(candidates.vectors, bank.candidates.vectors)


def _require_layout(name: str, layout: GroupLayout, candidates: CandidateSets) -> None:
    if layout != candidates.layout:
        raise LayoutMismatchError(
            f"the {name} has layout {layout} and the candidates {candidates.layout}; "
            f"make all of them with one layout"
        )


def _require_depth(depth: int, bank_size: int, left_out: Tensor | None) -> None:
    usable = bank_size - (left_out is not None and bool((left_out != NOWHERE).any()))
    if depth > usable:
        raise SettingError(
            f"the feedback needs the top {depth} items and the bank has {usable}"
            f"{' beside the one left out' if usable < bank_size else ''}; "
            f"choose a feedback depth of at most {usable} or a larger bank"
        )
    if left_out is not None and bool(((left_out < NOWHERE) | (left_out >= bank_size)).any()):
        raise ShapeError(
            f"left_out names places beyond the bank of {bank_size} items; "
            f"use bank.places(ids), which is -1 for none"
        )

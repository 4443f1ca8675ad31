"""What of an item and its feedback survives a change of the embedding space, as pure functions.

Responses, how they agree, and cosines between an item's own candidates stay as they are when all
vectors are rotated; coordinates do not. So a policy that reads nothing else can be trained on
representations of several folds, each with a space of its own. All scores here are mean responses
of some positions to the items of one list, [items, depth].
"""

from dataclasses import dataclass

import torch

from adaptiveembed.shapes import (
    CandidateVectors,
    FeedbackScores,
    Invariants,
    ItemFacts,
    StateFeedback,
)
from adaptiveembed.structure.space import Expansion

PLACES = (1, 2, 3, 5, 10, 20, 50)
"""Which of the sorted scores are read."""

LENGTHS = (1, 3, 10, 25)
"""Of which lengths top lists are compared."""

TEMPERATURE = 0.03
"""What scores are divided by before they are a distribution, as in training (App. B)."""

NUM_PLAIN = 16
"""Features that are there whatever the depth."""


@dataclass(frozen=True)
class EdgePositions:
    """The positions that an expansion starts from, adds and ends with."""

    source: list[int]
    added: list[int]
    target: list[int]

    @classmethod
    def of(cls, edge: Expansion) -> "EdgePositions":
        """Those of this expansion."""
        source, target = edge.source.positions, edge.target.positions
        added = [position for position in target if position not in source]
        return cls(list(source), added, list(target))


def edge_invariants(
    candidates: CandidateVectors, feedback: StateFeedback, edge: EdgePositions
) -> Invariants:
    """Everything that is read of every item for one expansion of the state of this feedback."""
    before, more, after = (
        feedback[:, positions].mean(dim=1) for positions in (edge.source, edge.added, edge.target)
    )
    return torch.cat(
        [
            sorted_scores(before),
            sorted_scores(after),
            overlaps(before, after),
            overlaps(before, more),
            _columns(
                margin(before),
                margin(after),
                entropy(before),
                entropy(after),
                before.std(dim=1, correction=0),
                after.std(dim=1, correction=0),
                correlation(before, more),
                more.mean(dim=1) - before.mean(dim=1),
                fall_of_the_leader(before, after),
                fall_of_the_leader(before, more),
                disagreement(feedback[:, edge.source], before),
            ),
            block_cosines(candidates, edge),
        ],
        dim=1,
    )


def num_invariants(depth: int) -> int:
    """How many features there are for feedback of this depth."""
    return 2 * len(_within(PLACES, depth)) + 2 * len(_within(LENGTHS, depth)) + NUM_PLAIN


def sorted_scores(scores: FeedbackScores) -> Invariants:
    """The first, second, third, fifth, ... greatest score."""
    places = [place - 1 for place in _within(PLACES, scores.shape[1])]
    return scores.sort(dim=1, descending=True).values[:, places]


def margin(scores: FeedbackScores) -> ItemFacts:
    """How far the greatest score lies above the second; 0 where there is none."""
    best = scores.topk(min(2, scores.shape[1]), dim=1).values
    return best[:, 0] - best[:, -1]


def entropy(scores: FeedbackScores) -> ItemFacts:
    """How evenly a softmax spreads over the list, in nats."""
    logs = (scores / TEMPERATURE).log_softmax(dim=1)
    return -(logs.exp() * logs).sum(dim=1)


def overlaps(one: FeedbackScores, other: FeedbackScores) -> Invariants:
    """The Jaccard index of the two scores' top items, for several lengths of the top."""
    return _columns(*(jaccard(one, other, length) for length in _within(LENGTHS, one.shape[1])))


def jaccard(one: FeedbackScores, other: FeedbackScores, length: int) -> ItemFacts:
    """How many items are in both top lists of this length, divided by how many are in either."""
    masks = [
        torch.zeros_like(scores, dtype=torch.bool).scatter(
            1, scores.topk(length).indices, value=True
        )
        for scores in (one, other)
    ]
    both = (masks[0] & masks[1]).sum(dim=1)
    return both / (2 * length - both)


def correlation(one: FeedbackScores, other: FeedbackScores) -> ItemFacts:
    """Pearson's correlation of two scores over the list; 0 where one of them is constant."""
    first, second = (each - each.mean(dim=1, keepdim=True) for each in (one, other))
    lengths = first.norm(dim=1) * second.norm(dim=1)
    product = (first * second).sum(dim=1)
    return torch.where(lengths > 1e-12, product / lengths.clamp(min=1e-12), 0)


def fall_of_the_leader(before: FeedbackScores, after: FeedbackScores) -> ItemFacts:
    """How far the item that leads by one score lies below the one that leads by the other."""
    leader = before.argmax(dim=1, keepdim=True)
    return after.amax(dim=1) - after.gather(1, leader).squeeze(1)


def disagreement(responses: StateFeedback, scores: FeedbackScores) -> ItemFacts:
    """The deviation between the selected positions' responses to the item that leads."""
    leader = scores.argmax(dim=1).view(-1, 1, 1).expand(-1, responses.shape[1], 1)
    return responses.gather(2, leader).squeeze(2).std(dim=1, correction=0)


def block_cosines(candidates: CandidateVectors, edge: EdgePositions) -> Invariants:
    """How alike an item's own vectors are: those selected, those added, and these with those."""
    gram = candidates @ candidates.transpose(1, 2)
    between = gram[:, edge.source][:, :, edge.added].flatten(1)
    within = [
        gram[:, positions][:, :, positions].mean(dim=(1, 2))
        for positions in (edge.source, edge.added)
    ]
    return _columns(between.mean(dim=1), between.amin(dim=1), between.amax(dim=1), *within)


def _columns(*facts: ItemFacts) -> Invariants:
    return torch.stack(facts, dim=1)


def _within(numbers: tuple[int, ...], depth: int) -> list[int]:
    return [number for number in numbers if number <= depth]

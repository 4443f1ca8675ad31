"""Policies: from what the bank says of an item to the logits of all actions (App. A.4).

The Token Selection Transformer is the paper's. ``InvariantPolicy`` is ours: it reads only what
survives a change of the embedding space, so that it can be trained across folds and with little
data. Both answer for a batch of items at any states of their space at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.feedback import PolicyInputs
from adaptiveembed.allocation.invariants import EdgePositions, edge_invariants, num_invariants
from adaptiveembed.errors import SettingError
from adaptiveembed.shapes import (
    CandidateMask,
    CandidateVectors,
    HiddenCandidates,
    StateFeedback,
    StateLogits,
    StateProbabilities,
)
from adaptiveembed.structure.space import SelectionSpace

SMALLEST_DEVIATION = 1e-6
"""Added to the deviation that responses are divided by."""

CONSTANT = 1e-5
"""A feature of a smaller deviation is taken for constant, and is not divided by it."""


class PolicyKind(StrEnum):
    """What maps inputs to logits."""

    TST = "tst"
    """The Token Selection Transformer, as in the paper."""
    TST_WITHOUT_FEEDBACK = "tst-without-feedback"
    """The same without the feedback and its attention: the paper's ablation (R20)."""
    INVARIANT = "invariant"
    """A small network on facts that survive a change of the embedding space; ours."""


class DecisionContext(StrEnum):
    """What the embedding e_t stands for."""

    NODE = "node"
    """The selection at which something is decided."""
    STEP = "step"
    """The step at which it is, however it was reached."""


class PolicySharing(StrEnum):
    """Which directions one policy serves."""

    SHARED = "shared"
    """Both."""
    EACH = "each"
    """One; every direction has its own."""


@dataclass(frozen=True)
class PolicySettings:
    """The policy of Stage II (R19)."""

    kind: PolicyKind = PolicyKind.TST
    """``tst`` as in the paper, ``tst-without-feedback`` for its ablation, or ``invariant``."""
    width: int = 128
    """Numbers of a hidden representation."""
    heads: int = 4
    """Heads of each attention."""
    context: DecisionContext = DecisionContext.NODE
    """What a decision context is: a ``node`` of the space, or a ``step``."""
    sharing: PolicySharing = PolicySharing.SHARED
    """Whether one policy is ``shared`` by both directions, or ``each`` has its own."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.heads < 1 or self.width % self.heads:
            raise SettingError(
                f"a width of {self.width} cannot be divided among {self.heads} heads; "
                f"give a multiple of the heads"
            )


@runtime_checkable
class Policy(Protocol):
    """Says how much every action speaks for itself, for items at states of one space."""

    @property
    def actions(self) -> Actions:
        """The actions that it chooses among."""
        ...

    def __call__(self, inputs: PolicyInputs) -> StateLogits:
        """Logits of all actions at the states of the inputs; minus infinity where none is."""
        ...


class LearnedPolicy(nn.Module):
    """What policies with weights have in common: which actions there are, and where."""

    def __init__(self, space: SelectionSpace) -> None:
        super().__init__()
        self.actions = Actions(space)
        self.register_buffer("admissible", self.actions.admissible, persistent=False)

    admissible: Tensor

    def places(self, inputs: PolicyInputs) -> Tensor:
        """The places among all states of the states of the inputs."""
        places = [self.actions.place(state) for state in inputs.states]
        return torch.tensor(places, device=self.admissible.device)


class TokenSelectionTransformer(LearnedPolicy):
    """Candidate positions read the selected ones and the bank's feedback, and are pooled."""

    def __init__(
        self,
        space: SelectionSpace,
        dim: int,
        settings: PolicySettings | None = None,
        *,
        reader: nn.Module,
    ) -> None:
        super().__init__(space)
        settings = settings or PolicySettings()
        width = settings.width
        contexts = decision_contexts(self.actions, settings.context)
        # What follows from the space is no part of the state that is saved.
        self.register_buffer("contexts", contexts, persistent=False)
        self.register_buffer("selected", self.actions.selected, persistent=False)
        self.register_buffer("expandable", self.actions.candidates, persistent=False)
        self.embedding = CandidateEmbedding(dim, space.layout.num_candidates, width)
        self.attention = CrossAttention(width, settings.heads)
        self.reader = reader
        self.context = nn.Embedding(int(contexts.max()) + 1, width)
        self.head = mlp(width, width, self.actions.num_actions)

    contexts: Tensor
    selected: Tensor
    expandable: Tensor

    def forward(self, inputs: PolicyInputs) -> StateLogits:
        batch, places = len(inputs), self.places(inputs)
        selected, expandable = (
            mask[places].repeat(batch, 1) for mask in (self.selected, self.expandable)
        )
        hidden = self.embedding(inputs.candidates).repeat_interleave(len(places), dim=0)
        hidden = self.attention(hidden, hidden, selected)
        hidden = self.reader(hidden, inputs.feedback.flatten(0, 1), selected, expandable)
        pooled = mean_over(hidden, expandable).view(batch, len(places), -1)
        logits: Tensor = self.head(pooled + self.context(self.contexts[places]))
        return logits.masked_fill(~self.admissible[places], -torch.inf)


class CandidateEmbedding(nn.Module):
    """H: every candidate, and which position it has."""

    def __init__(self, dim: int, num_candidates: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, width)
        self.positions = nn.Parameter(torch.randn(num_candidates, width))
        # A unit vector comes out with numbers of size 1, like those that stand for its position.
        nn.init.normal_(self.linear.weight)

    def forward(self, candidates: CandidateVectors) -> HiddenCandidates:
        hidden: Tensor = self.linear(candidates) + self.positions
        return hidden


class CrossAttention(nn.Module):
    """LN(H + MHA(H, K, K)) over keys K, of which some may be hidden."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def forward(
        self, hidden: HiddenCandidates, keys: Tensor, seen: Tensor | None = None
    ) -> HiddenCandidates:
        unseen = None if seen is None else ~seen
        read, _ = self.attention(hidden, keys, keys, key_padding_mask=unseen, need_weights=False)
        normalised: Tensor = self.norm(hidden + read)
        return normalised


class FeedbackReader(nn.Module):
    """Candidates read the responses to the bank's top items, one row for each of these."""

    def __init__(self, num_candidates: int, width: int, heads: int) -> None:
        super().__init__()
        self.encode = mlp(3 * num_candidates, width, width)
        self.attention = CrossAttention(width, heads)

    def forward(
        self,
        hidden: HiddenCandidates,
        feedback: StateFeedback,
        selected: CandidateMask,
        expandable: CandidateMask,
    ) -> HiddenCandidates:
        rows = normalized_feedback(feedback, selected).transpose(1, 2)
        masks = torch.cat([selected, expandable], dim=-1).to(rows.dtype)
        masks = masks.unsqueeze(1).expand(-1, rows.shape[1], -1)
        read: Tensor = self.attention(hidden, self.encode(torch.cat([rows, masks], dim=-1)))
        return read


class NoReader(nn.Module):
    """Candidates go on as they are: nothing is read of the bank."""

    def forward(
        self,
        hidden: HiddenCandidates,
        feedback: StateFeedback,
        selected: CandidateMask,
        expandable: CandidateMask,
    ) -> HiddenCandidates:
        return hidden


class InvariantPolicy(LearnedPolicy):
    """A small network looks at every expansion by itself; stopping has logit 0.

    Its features are taken apart from their mean over the training samples and divided by their
    deviation; call ``standardize_by`` with the training inputs before training.
    """

    def __init__(
        self, space: SelectionSpace, depth: int, settings: PolicySettings | None = None
    ) -> None:
        super().__init__(space)
        width = (settings or PolicySettings()).width
        shape = len(space.edges), num_invariants(depth)
        self.edges = tuple(EdgePositions.of(edge) for edge in space.edges)
        self.register_buffer("means", torch.zeros(shape))
        self.register_buffer("deviations", torch.ones(shape))
        self.first = nn.Linear(shape[1], width)
        self.of_edge = nn.Embedding(shape[0], width)
        self.last = nn.Sequential(nn.GELU(), nn.Linear(width, 1))

    means: Tensor
    deviations: Tensor

    def forward(self, inputs: PolicyInputs) -> StateLogits:
        shape = len(inputs), len(inputs.states), self.actions.num_actions
        logits = inputs.candidates.new_full(shape, -torch.inf)
        logits[..., 0] = 0
        for place, edge in self._edges_of(inputs):
            features = self.features(inputs, place, edge)
            standard = (features - self.means[edge]) / self.deviations[edge]
            score = self.last(self.first(standard) + self.of_edge.weight[edge]).squeeze(-1)
            logits[:, place, 1 + edge] = score.to(logits.dtype)
        return logits

    def features(self, inputs: PolicyInputs, place: int, edge: int) -> Tensor:
        """What is read of every item for one expansion of the state at this place."""
        return edge_invariants(inputs.candidates, inputs.feedback[:, place], self.edges[edge])

    @torch.no_grad()
    def standardize_by(self, inputs: PolicyInputs) -> None:
        """Take mean and deviation of every feature from these inputs, at all states."""
        for place, edge in self._edges_of(inputs):
            features = self.features(inputs, place, edge).double()
            self.means[edge] = features.mean(dim=0)
            deviations = features.std(dim=0, correction=0)
            self.deviations[edge] = deviations.where(deviations > CONSTANT, 1)

    def _edges_of(self, inputs: PolicyInputs) -> list[tuple[int, int]]:
        """The places of a state in the inputs and of an expansion that starts there."""
        sources = [edge.source for edge in self.actions.space.edges]
        return [
            (place, edge)
            for place, state in enumerate(inputs.states)
            for edge, source in enumerate(sources)
            if source == state
        ]


def make_policy(
    settings: PolicySettings, space: SelectionSpace, dim: int, depth: int, *, seed: int = 0
) -> LearnedPolicy:
    """A policy with random weights, which depend on the seed alone.

    Args:
        settings: Which one.
        space: What it decides in.
        dim: The dimension of the candidates.
        depth: How many items of the bank the feedback shows.
        seed: What the weights start from.
    """
    num_candidates = space.layout.num_candidates
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if settings.kind is PolicyKind.INVARIANT:
            return InvariantPolicy(space, depth, settings)
        readers: dict[PolicyKind, Callable[[], nn.Module]] = {
            PolicyKind.TST: lambda: FeedbackReader(num_candidates, settings.width, settings.heads),
            PolicyKind.TST_WITHOUT_FEEDBACK: NoReader,
        }
        return TokenSelectionTransformer(space, dim, settings, reader=readers[settings.kind]())


def action_probabilities(logits: StateLogits) -> StateProbabilities:
    """pi(a given s): how probable every action is at every state."""
    return logits.float().softmax(dim=-1)


def normalized_feedback(feedback: StateFeedback, selected: CandidateMask) -> StateFeedback:
    """F_t less the mean of the selected positions' responses, divided by their deviation."""
    seen = selected.unsqueeze(-1)
    count = selected.sum(dim=1).view(-1, 1, 1) * feedback.shape[2]
    mean = _total(feedback, seen) / count
    deviation = (_total((feedback - mean).square(), seen) / count).sqrt()
    return (feedback - mean) / (deviation + SMALLEST_DEVIATION)


def mean_over(hidden: HiddenCandidates, positions: CandidateMask) -> Tensor:
    """The mean of the hidden representations of some positions of each row."""
    chosen = positions.unsqueeze(-1)
    return hidden.masked_fill(~chosen, 0).sum(dim=1) / chosen.sum(dim=1)


def decision_contexts(actions: Actions, context: DecisionContext) -> Tensor:
    """For every state the number of its decision context."""
    if context is DecisionContext.NODE:
        return torch.arange(len(actions.states))
    return torch.tensor([actions.space.step_of(state) for state in actions.states])


def mlp(inputs: int, width: int, outputs: int) -> nn.Sequential:
    """Two linear layers with a nonlinearity between them."""
    return nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, outputs))


def _total(values: Tensor, seen: Tensor) -> Tensor:
    return values.masked_fill(~seen, 0).sum(dim=(1, 2), keepdim=True)

"""MetaEmbed in our framework (R17): vectors by role, nested budgets and MaxSim.

It differs from ours in its vectors and in its loss only. Every item has vectors for its role as
query and vectors for its role as gallery item; they are the two groups of its layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from adaptiveembed.errors import (
    EmptyBatchError,
    LayoutMismatchError,
    SettingError,
    ShapeError,
)
from adaptiveembed.metrics.ranks import checked_positives, ranks_of_positives
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.settings import EmbedderSettings, GlobalPosition
from adaptiveembed.shapes import (
    BudgetScores,
    GallerySets,
    Loss,
    QuerySets,
    Ranks,
    ScoreMask,
)
from adaptiveembed.similarity.maxsim import maxsim_matrix
from adaptiveembed.similarity.setsim import accumulated, require_same_space
from adaptiveembed.similarity.tiling import MEMORY_BUDGET
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.groups import GroupLayout

ROLE_LAYOUT = "16+64"
"""The layout of the paper's baseline: 16 vectors of the query role, 64 of the gallery role."""


class Budget(NamedTuple):
    """How many vectors of a query meet how many of a gallery item; prints as ``2/4``."""

    query: int
    gallery: int

    def __str__(self) -> str:
        return f"{self.query}/{self.gallery}"

    @property
    def capacity(self) -> float:
        """What the paper's table calls the average number of tokens (R16)."""
        return (self.query + self.gallery) / 2

    @classmethod
    def parse(cls, text: str) -> Budget:
        """The budget written as ``"2/4"``."""
        query, slash, gallery = text.partition("/")
        if not (slash and query.strip().isdecimal() and gallery.strip().isdecimal()):
            raise SettingError(f"a budget is written as query/gallery, like 2/4, got {text!r}")
        return cls(int(query), int(gallery))


LARGEST_ROLE = 256
"""Vectors of one role at most: their places are kept as bytes."""

PAPER_BUDGETS = tuple(map(Budget.parse, ("1/1", "2/4", "4/8", "8/16", "16/64")))
"""The nested budgets that the paper evaluates, and the smallest one."""


def by_role(settings: EmbedderSettings, layout: str = ROLE_LAYOUT) -> EmbedderSettings:
    """The settings of the baseline that differs from ``settings`` in the number of vectors only."""
    return replace(settings, layout=layout)


class MetaEmbedder(PairEmbedder):
    """Embeds items with a group of vectors for each role; what is global heads both groups."""

    def __init__(self, settings: EmbedderSettings, widths: Mapping[Modality, int]) -> None:
        _require_two_roles(settings.group_layout)
        super().__init__(settings, widths)

    @property
    def global_places(self) -> tuple[int, ...]:
        """The first position of each role, if it comes from the global feature."""
        learned = self.settings.global_position is GlobalPosition.LEARNED
        return () if learned else self.layout.starts


@dataclass(frozen=True)
class MetaEmbedLoss:
    """`metaembed_loss` with its settings: an objective like that of MGCL."""

    layout: GroupLayout
    """The query role's vectors, then the gallery role's."""
    budgets: tuple[Budget, ...] = PAPER_BUDGETS
    """What is compared, each a loss of its own; all have the same weight."""
    temperature: float = 0.03
    """What MaxSim is divided by before the softmax."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "budgets", tuple(Budget(*each) for each in self.budgets))
        _require_two_roles(self.layout)
        _require_budgets(self.budgets, self.layout)
        if not 0 < self.temperature < inf:
            raise SettingError(
                f"the temperature is a positive number, got {self.temperature}; try 0.03"
            )

    def __call__(
        self, source: QuerySets, target: GallerySets, same_item: Tensor | None = None
    ) -> Loss:
        return metaembed_loss(
            source, target, self.layout, self.budgets, self.temperature, same_item=same_item
        )


def metaembed_loss(  # noqa: PLR0913 - the two sides and all that the loss is of
    source: QuerySets,
    target: GallerySets,
    layout: GroupLayout,
    budgets: Sequence[Budget],
    temperature: float,
    *,
    same_item: Tensor | None = None,
) -> Loss:
    """InfoNCE on the MaxSim sum, averaged over pairs, directions and nested budgets.

    Row n of source and of target are one pair; the query role of one side searches the gallery role
    of the other. Where ``same_item`` [n, m] is true, n and m are not negatives of each other.
    """
    _require_pairs(source, target, layout)
    excluded = _excluded(same_item, source)
    ways = ((source, target, excluded), (target, source, excluded.T))
    losses = [
        directed_info_nce(
            nested_maxsim(
                query_role(asking, layout), gallery_role(asked, layout), tuple(budgets)
            ).div(temperature),
            left_out,
        )
        for asking, asked, left_out in ways
    ]
    return torch.stack(losses).mean()


def query_role(vectors: Tensor, layout: GroupLayout) -> Tensor:
    """The vectors with which items search."""
    return vectors[:, : layout.sizes[0]]


def gallery_role(vectors: Tensor, layout: GroupLayout) -> Tensor:
    """The vectors by which items are found."""
    return vectors[:, layout.sizes[0] :]


def directed_info_nce(logits: BudgetScores, excluded: ScoreMask) -> Loss:
    """The mean over budgets and queries of -log of the softmax at the query's own item."""
    own = logits.diagonal(dim1=-2, dim2=-1)
    return (logits.masked_fill(excluded, -inf).logsumexp(dim=-1) - own).mean()


def nested_maxsim(
    queries: QuerySets, gallery: GallerySets, budgets: tuple[Budget, ...]
) -> BudgetScores:
    """The MaxSim sum of all pairs under each budget [budgets, queries, gallery].

    One product serves all budgets, and its cosines are never kept: the gradient is that of the
    first greatest cosine of each query vector.
    """
    require_same_space(queries, gallery)
    found: Tensor = _NestedMaxSim.apply(queries, gallery, budgets)  # type: ignore[no-untyped-call]
    return found


def metaembed_ranks(
    queries: CandidateSets,
    gallery: CandidateSets,
    positives: np.ndarray,  # not a named shape: the errors of metrics.ranks say what to do
    budget: Budget,
    memory_budget: int = MEMORY_BUDGET,
) -> Ranks:
    """Pessimistic ranks [queries, positives] of each query's positives under one budget (R7).

    Scores are made a few queries at a time. They come from a matrix product, so that equal items
    may differ in the last bit of their scores, unlike those of SetSim.
    """
    _require_budgets((budget,), queries.layout)
    places = checked_positives(positives, len(gallery))
    asking = query_role(queries.vectors, queries.layout)[:, : budget.query]
    asked = gallery_role(gallery.vectors, gallery.layout)[:, : budget.gallery]
    at_once = max(1, memory_budget // (4 * len(gallery)))
    return np.concatenate(
        [
            ranks_of_positives(maxsim_matrix(part, asked).numpy(), rows)
            for part, rows in zip(
                torch.split(asking, at_once),
                np.split(places, range(at_once, len(places), at_once)),
                strict=True,
            )
        ]
    )


class _NestedMaxSim(torch.autograd.Function):
    """MaxSim under nested budgets, tile by tile; what is kept is which vectors were greatest."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, queries: Tensor, gallery: Tensor, budgets: tuple[Budget, ...]
    ) -> Tensor:
        asking, asked = _largest(queries, gallery, budgets)
        scores = asking.new_empty(len(budgets), len(asking), len(asked))
        places = asking.new_empty(
            len(asking), sum(budget.query for budget in budgets), len(asked), dtype=torch.uint8
        )
        for tile in _tiles(asking, asked):
            maxima, columns = _nested_maxima(_cosines(asking[tile], asked), budgets)
            scores[:, tile] = torch.stack([each.sum(dim=1) for each in maxima])
            torch.cat(columns, dim=1, out=places[tile])
        ctx.save_for_backward(queries, gallery, places)
        ctx.budgets = budgets  # type: ignore[attr-defined]
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        queries, gallery, places = ctx.saved_tensors  # type: ignore[attr-defined]
        budgets: tuple[Budget, ...] = ctx.budgets  # type: ignore[attr-defined]
        asking, asked = _largest(queries, gallery, budgets)
        of_queries, of_gallery = torch.zeros_like(queries), torch.zeros_like(gallery)
        to_queries = of_queries[:, : asking.shape[1]]
        to_gallery = torch.zeros_like(asked)
        for tile in _tiles(asking, asked):
            weights = _weights(gradient[:, tile], places[tile], budgets, asked.shape[1])
            to_queries[tile] = torch.tensordot(weights, asked, dims=2)
            to_gallery += torch.tensordot(weights, asking[tile], dims=([0, 1], [0, 1]))
        of_gallery[:, : asked.shape[1]] = to_gallery
        return of_queries, of_gallery, None


def _largest(queries: Tensor, gallery: Tensor, budgets: Sequence[Budget]) -> tuple[Tensor, Tensor]:
    """What the largest budget compares, in the type of the scores."""
    largest = budgets[-1]
    asking, asked = accumulated(queries[:, : largest.query], gallery[:, : largest.gallery])
    return asking.contiguous(), asked.contiguous()


def _cosines(asking: Tensor, asked: Tensor) -> Tensor:
    """All cosines [queries, query vectors, gallery, gallery vectors]."""
    with torch.autocast(asking.device.type, enabled=False):
        product = asking.flatten(0, 1) @ asked.flatten(0, 1).T
    return product.view(*asking.shape[:2], *asked.shape[:2])


def _nested_maxima(cosines: Tensor, budgets: Sequence[Budget]) -> tuple[list[Tensor], list[Tensor]]:
    """The greatest cosines [queries, query vectors, gallery] under each budget, and where."""
    ends = [0, *(budget.gallery for budget in budgets)]
    maxima, columns = [], []
    best = torch.full_like(cosines[..., 0], -inf)
    place = torch.zeros_like(best, dtype=torch.uint8)
    for budget, (start, end) in zip(budgets, pairwise(ends), strict=True):
        if end > start:
            more, index = cosines[..., start:end].max(dim=-1)
            place = torch.where(more > best, (index + start).to(torch.uint8), place)
            best = torch.maximum(more, best)
        maxima.append(best[:, : budget.query])
        columns.append(place[:, : budget.query])
    return maxima, columns


def _weights(gradient: Tensor, places: Tensor, budgets: Sequence[Budget], size: int) -> Tensor:
    """How much each cosine [queries, query vectors, gallery, gallery vectors] is asked to grow."""
    shape = (len(places), budgets[-1].query, places.shape[2], size)
    weights = gradient.new_zeros(shape)
    parts = torch.split(places, [budget.query for budget in budgets], dim=1)
    for budget, part, of_scores in zip(budgets, parts, gradient, strict=True):
        index = part.long().unsqueeze(-1)
        amount = of_scores[:, None, :, None].expand(index.shape)
        weights[:, : budget.query].scatter_add_(-1, index, amount)
    return weights


def _tiles(asking: Tensor, asked: Tensor) -> list[slice]:
    """Parts of the queries whose cosines, and a copy of them, fit into the memory budget."""
    row = 2 * asking.element_size() * asking.shape[1] * asked.shape[0] * asked.shape[1]
    size = max(1, MEMORY_BUDGET // max(1, row))
    return [slice(start, start + size) for start in range(0, len(asking), size)]


def _excluded(same_item: Tensor | None, like: Tensor) -> Tensor:
    """The pairs left out of every softmax: the same item, other than a pair itself."""
    itself = torch.eye(len(like), dtype=torch.bool, device=like.device)
    if same_item is None:
        return torch.zeros_like(itself)
    if same_item.shape != itself.shape or same_item.dtype != torch.bool:
        raise ShapeError(
            f"same_item is {same_item.dtype} of shape {tuple(same_item.shape)} for {len(like)} "
            f"pairs; give a truth for every two of them, as ids[:, None] == ids"
        )
    return same_item & ~itself


def _require_two_roles(layout: GroupLayout) -> None:
    if layout.num_groups != 2:
        raise SettingError(
            f"layout {layout} has {layout.num_groups} groups and MetaEmbed two roles; write the "
            f"vectors of the query role and of the gallery role, like {ROLE_LAYOUT}"
        )


def _require_budgets(budgets: Sequence[Budget], layout: GroupLayout) -> None:
    if not budgets:
        raise SettingError("no budget was given; give at least one, for example 2/4")
    shown = ", ".join(map(str, budgets))
    for budget, before in zip(budgets, (Budget(1, 1), *budgets), strict=False):
        if budget.query < before.query or budget.gallery < before.gallery:
            raise SettingError(f"budgets {shown} are not nested; give them in growing order")
    queries, gallery = layout.sizes
    largest = budgets[-1]
    if largest.query > queries or largest.gallery > min(gallery, LARGEST_ROLE):
        raise SettingError(
            f"budget {largest} does not fit layout {layout}, which has {queries} vectors of the "
            f"query role and {gallery} of the gallery role (at most {LARGEST_ROLE}); "
            f"choose a smaller budget"
        )


def _require_pairs(source: Tensor, target: Tensor, layout: GroupLayout) -> None:
    if len(source) != len(target):
        raise ShapeError(
            f"row n of both sides is one pair, got {len(source)} source and {len(target)} target "
            f"sets; give as many of each"
        )
    if not len(source):
        raise EmptyBatchError("a loss needs at least one pair, got none; leave out empty batches")
    for side, sets in (("source", source), ("target", target)):
        if sets.shape[1] != layout.num_candidates:
            raise LayoutMismatchError(
                f"{side} sets have {sets.shape[1]} vectors and layout {layout} has "
                f"{layout.num_candidates} positions; give all candidates, or another layout"
            )

"""(g) One step of MGCL beside the MaxSim ranking loss of sentence-transformers."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from adaptiveembed.representation.mgcl import (
    MultiGroupContrastiveLoss,
    Objective,
    group_prefixes,
    whole_set,
)
from adaptiveembed.structure import PAPER_LAYOUT
from benchmarks.timing import Contenders, Result, against_fastest, interleaved

PAIRS, DIM = 1024, 256
"""The vectors of both losses are [pairs, 8, dim]."""

ROUNDS = 5

SCORED_AT_ONCE = 64
"""Queries that the peer scores at a time in its second form, which is faster than its default."""


def training_steps() -> Iterator[Result]:
    """(g) Forward and backward of MGCL, and of its ablation, on the tensors that the peer gets."""
    sides = unit_pairs(PAIRS)
    peers: Contenders = {
        "sentence-transformers": step(ranking_loss(), *sides),
        f"sentence-transformers, {SCORED_AT_ONCE} at a time": step(
            ranking_loss(score_mini_batch_size=SCORED_AT_ONCE), *sides
        ),
    }
    for name, prefixes, goal in (
        ("all prefixes", group_prefixes(PAPER_LAYOUT), "<= 1.3"),
        ("whole sets", whole_set(PAPER_LAYOUT), "report"),
    ):
        objective = MultiGroupContrastiveLoss(PAPER_LAYOUT, prefixes, temperature=0.03)
        contenders: Contenders = {"mgcl_loss": step(objective, *sides)} | peers
        setting = f"{PAIRS:,} pairs, {PAPER_LAYOUT}, {name}, d={DIM}"
        seconds = interleaved(contenders, ROUNDS)
        yield against_fastest("g training step / MaxSim loss", setting, goal, seconds)


def step(loss: Objective, source: Tensor, target: Tensor) -> Callable[[], object]:
    """Forward and backward, to the gradients of both sides."""
    return lambda: torch.autograd.grad(loss(source, target, None), (source, target))


def ranking_loss(**settings: int) -> Objective:
    """The peer's loss without its encoder: the vectors are what the model would have made."""
    from sentence_transformers.multi_vector_encoder.losses import (  # noqa: PLC0415
        MultiVectorMultipleNegativesRankingLoss,
    )

    class GivenVectors(nn.Module):
        def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:  # noqa: ANN401
            return features

    ranking = MultiVectorMultipleNegativesRankingLoss(GivenVectors(), **settings)

    def loss(source: Tensor, target: Tensor, _same_item: Tensor | None) -> Tensor:
        active = torch.ones(source.shape[:2], dtype=torch.bool)
        columns = (source, target)
        return ranking([{"token_embeddings": each, "attention_mask": active} for each in columns])

    return loss


def unit_pairs(count: int) -> tuple[Tensor, Tensor]:
    """Random directions of both sides, which ask for their gradients."""
    raw = torch.randn(2, count, PAPER_LAYOUT.num_candidates, DIM)
    source, target = nn.functional.normalize(raw, dim=-1).unbind()
    return source.clone().requires_grad_(), target.clone().requires_grad_()

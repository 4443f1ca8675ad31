"""Multi-Group Contrastive Learning: InfoNCE on SetSim under every prefix (Eq. 3, R4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import torch
from torch import Tensor

from adaptiveembed.errors import (
    DtypeError,
    EmptyBatchError,
    LayoutMismatchError,
    SettingError,
    ShapeError,
)
from adaptiveembed.shapes import GallerySets, Loss, QuerySets, ScoreMatrix
from adaptiveembed.similarity.assignment import require_supported_capacity
from adaptiveembed.similarity.setsim import require_same_space, setsim_matrices
from adaptiveembed.structure import GroupLayout, GroupPrefix, Selection

Objective: TypeAlias = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""The loss of source and target vectors [batch, candidates, dim], whose rows n are one pair.

The third is a mask [batch, batch] of pairs that are the same item, or None.
"""


@dataclass(frozen=True)
class MultiGroupContrastiveLoss:
    """`mgcl_loss` with its settings: an `Objective`.

    >>> layout = GroupLayout((4, 4))
    >>> mgcl = MultiGroupContrastiveLoss(layout, group_prefixes(layout), temperature=0.03)
    >>> without_mgcl = MultiGroupContrastiveLoss(layout, whole_set(layout), temperature=0.03)
    """

    layout: GroupLayout
    """The groups of the candidates."""

    prefixes: tuple[Selection, ...]
    """The sets that are compared, each a loss of its own; all have the same weight."""

    temperature: float
    """What SetSim is divided by before the softmax; 0.03 in the paper."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefixes", tuple(self.prefixes))
        _require_prefixes(self.prefixes)
        if self.prefixes[0].layout != self.layout:
            raise _mismatch(self.prefixes[0], self.layout)
        _require_temperature(self.temperature)

    def __call__(
        self, source: QuerySets, target: GallerySets, same_item: Tensor | None = None
    ) -> Loss:
        return mgcl_loss(source, target, self.prefixes, self.temperature, same_item)


def group_prefixes(layout: GroupLayout) -> tuple[Selection, ...]:
    """Every prefix of every group on its own: what MGCL compares (R4)."""
    return tuple(_selection_of(layout, prefix) for prefix in layout.group_prefixes())


def whole_set(layout: GroupLayout) -> tuple[Selection, ...]:
    """All positions at once: what the ablation without MGCL compares (R20)."""
    return (Selection.full(layout),)


def mgcl_loss(
    source: QuerySets,
    target: GallerySets,
    prefixes: Sequence[Selection],
    temperature: float,
    same_item: Tensor | None = None,
) -> Loss:
    """Bidirectional InfoNCE on SetSim, averaged over pairs, directions and prefixes (Eq. 3).

    Row n of source and of target are one pair of unit sets. Where `same_item` [n, m] is true, n and
    m are not negatives of each other. A pair without any negative, such as that of a batch of
    one, has loss 0.
    """
    _require_prefixes(prefixes)
    _require_temperature(temperature)
    _require_pairs(source, target, prefixes[0].layout)
    excluded = _excluded(same_item, len(source), source.device)
    matrices = setsim_matrices(source, target, [prefix.positions for prefix in prefixes])
    losses = [info_nce(_masked(scores / temperature, excluded)) for scores in matrices]
    return torch.stack(losses).mean()


def info_nce(logits: ScoreMatrix) -> Loss:
    """The mean, over pairs and both directions, of -log of the softmax at the pair itself."""
    own = logits.diagonal()
    return (logits.logsumexp(dim=1) + logits.logsumexp(dim=0) - 2 * own).mean() / 2


def _masked(logits: Tensor, excluded: Tensor | None) -> Tensor:
    return logits if excluded is None else logits.masked_fill(excluded, -inf)


def _excluded(same_item: Tensor | None, batch: int, device: torch.device) -> Tensor | None:
    """The pairs that are left out of every softmax: the same item, other than a pair itself."""
    if same_item is None:
        return None
    if same_item.shape != (batch, batch):
        raise ShapeError(
            f"same_item has shape {tuple(same_item.shape)} for {batch} pairs; give one truth for "
            f"every two of them, [{batch}, {batch}]"
        )
    if same_item.dtype != torch.bool:
        raise DtypeError(f"same_item holds {same_item.dtype}; give truths, as ids[:, None] == ids")
    return same_item & ~torch.eye(batch, dtype=torch.bool, device=device)


def _selection_of(layout: GroupLayout, prefix: GroupPrefix) -> Selection:
    lengths = (prefix.length if group == prefix.group else 0 for group in range(layout.num_groups))
    return Selection(layout, tuple(lengths))


def _require_prefixes(prefixes: Sequence[Selection]) -> None:
    if not prefixes:
        raise SettingError("a loss over no prefix teaches nothing; give at least one")
    for prefix in prefixes:
        if prefix.layout != prefixes[0].layout:
            raise _mismatch(prefix, prefixes[0].layout)
        require_supported_capacity(prefix.capacity)


def _mismatch(prefix: Selection, layout: GroupLayout) -> LayoutMismatchError:
    return LayoutMismatchError(
        f"prefix {prefix} is of layout {prefix.layout}, where layout {layout} is needed; build all "
        f"prefixes on the layout of the candidates"
    )


def _require_temperature(temperature: float) -> None:
    if not 0 < temperature < inf:
        raise SettingError(f"the temperature is a positive number, got {temperature}; try 0.03")


def _require_pairs(source: Tensor, target: Tensor, layout: GroupLayout) -> None:
    require_same_space(source, target)
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

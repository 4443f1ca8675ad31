"""MaxSim of sets that differ in size, such as the vectors of every piece of an item."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from adaptiveembed.errors import DtypeError, EmptyBatchError, ShapeError
from adaptiveembed.shapes import ScoreMatrix
from adaptiveembed.similarity.setsim import matrix_cosines, require_same_space
from adaptiveembed.similarity.tiling import MEMORY_BUDGET, accumulation_type, tile_slices


@dataclass(frozen=True, eq=False, repr=False)
class RaggedSets:
    """Sets of at least one vector each, padded to one size.

    What stands where the mask is false is never read, be it NaN.
    """

    vectors: Tensor  # [items, size, dim]
    mask: Tensor  # [items, size], true where a vector is real

    def __post_init__(self) -> None:
        _require_tensors(self)
        _require_a_vector_each(self.mask)

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, items: slice) -> RaggedSets:
        """These sets, cut behind the last real vector of them."""
        mask = self.mask[items]
        places = mask.any(dim=0).nonzero()
        size = int(places.max()) + 1 if len(places) else 0
        return RaggedSets(self.vectors[items, :size], mask[:, :size])

    def __repr__(self) -> str:
        mean = float(self.mask.sum(dim=1).float().mean())
        return (
            f"RaggedSets({len(self)} items, {mean:.1f} vectors each, dim {self.vectors.shape[2]})"
        )


def ragged_maxsim_matrix(
    queries: RaggedSets, gallery: RaggedSets, memory_budget: int = MEMORY_BUDGET
) -> ScoreMatrix:
    """The sum over a query's vectors of each one's greatest cosine, for all pairs.

    Padding on either side neither matches nor counts. Vectors are compared as they are: give unit
    vectors. Beside the scores, memory is bounded by the budget, however large the gallery.
    """
    require_same_space(queries.vectors, gallery.vectors)
    shape = (len(queries), len(gallery))
    kind = accumulation_type(queries.vectors, gallery.vectors)
    scores = torch.empty(shape, dtype=kind, device=queries.vectors.device)
    for rows, columns in tile_slices(queries.vectors, gallery.vectors, memory_budget):
        scores[rows, columns] = _sum_of_maxima(queries[rows], gallery[columns])
    return scores


@torch.no_grad()
def _sum_of_maxima(queries: RaggedSets, gallery: RaggedSets) -> Tensor:
    cosines = matrix_cosines(queries.vectors, gallery.vectors)
    maxima = cosines.masked_fill_(~gallery.mask, -inf).amax(dim=-1)
    return maxima.masked_fill_(~queries.mask.unsqueeze(-1), 0).sum(dim=1)


def _require_tensors(sets: RaggedSets) -> None:
    for name in ("vectors", "mask"):
        given: object = getattr(sets, name)
        if not isinstance(given, Tensor):
            raise DtypeError(
                f"{name} is a torch tensor, got {type(given).__name__}; use torch.from_numpy"
            )
    if sets.mask.dtype != torch.bool:
        raise DtypeError(f"the mask holds {sets.mask.dtype}; convert it with .bool()")
    if sets.vectors.dim() != 3 or sets.mask.shape != sets.vectors.shape[:2]:
        raise ShapeError(
            f"ragged sets are vectors [items, size, dim] and a mask [items, size], got "
            f"{tuple(sets.vectors.shape)} and {tuple(sets.mask.shape)}"
        )


def _require_a_vector_each(mask: Tensor) -> None:
    empty = ~mask.any(dim=1)
    if empty.any():
        raise EmptyBatchError(
            f"item {int(empty.nonzero()[0])} has no vector; give it one, or leave it out"
        )

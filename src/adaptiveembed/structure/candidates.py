"""Candidate sets, and candidate sets with a selection each (CAES, Eq. 1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.errors import (
    DtypeError,
    EmptyBatchError,
    LayoutMismatchError,
    NotFiniteError,
    NotNormalizedError,
    ShapeError,
    UnknownSelectionError,
)
from adaptiveembed.shapes import (
    ActiveVectors,
    CandidateArray,
    ItemCounts,
    ItemIndices,
    SetArray,
    SetVectors,
)
from adaptiveembed.structure.groups import GroupLayout, require_layout
from adaptiveembed.structure.selection import Selection, require_selection

UNIT_LENGTH_TOLERANCE = {
    torch.float32: 1e-5,
    torch.float16: 1e-3,
    # A number of 8 significant bits is off by up to 2**-8, and so is the length of a short vector.
    torch.bfloat16: 4e-3,
}
"""How far a length may be from 1, for every supported number type: what rounding costs."""

CHECKED_AT_ONCE = 1 << 22
"""Numbers whose length is measured in one go, which bounds the memory that checking takes."""

ItemIndex = int | np.integer | slice | Sequence[int] | np.ndarray | Tensor


@dataclass(frozen=True, eq=False, repr=False)
class CandidateSets:
    """The candidates of at least one item, unit vectors of shape [batch, candidates, dim].

    They are checked once, when made, and neither copied nor moved. An index of any kind, also a
    single integer, gives candidate sets again: ``candidates[3]`` is a batch of one item.
    """

    vectors: Tensor  # not a named shape: the errors below say what to do
    layout: GroupLayout

    def __post_init__(self) -> None:
        require_layout(self.layout)
        _require_tensor(self.vectors)
        _require_candidate_shape(self.vectors, self.layout)
        _require_supported_dtype(self.vectors)
        _require_unit_length(self.vectors)

    @classmethod
    def normalized(cls, raw: Tensor, layout: GroupLayout) -> "CandidateSets":
        """Candidate sets in the directions of ``raw``, whose vectors may have any length but 0."""
        require_layout(layout)
        _require_tensor(raw)
        _require_candidate_shape(raw, layout)
        _require_supported_dtype(raw)
        return cls(_scaled_to_unit_length(raw), layout)

    @classmethod
    def concatenate(cls, parts: "Iterable[CandidateSets]") -> "CandidateSets":
        """The items of all parts, one part after another."""
        parts = tuple(parts)
        _require_parts_that_fit(parts)
        return _already_checked(torch.cat([part.vectors for part in parts]), parts[0].layout)

    def __len__(self) -> int:
        return self.vectors.shape[0]

    def __getitem__(self, index: ItemIndex) -> "CandidateSets":
        return _already_checked(self.vectors[_rows(index, len(self))], self.layout)

    def __repr__(self) -> str:
        kind = str(self.vectors.dtype).removeprefix("torch.")
        return f"CandidateSets({len(self)} items, layout {self.layout}, dim {self.dim}, {kind})"

    @property
    def dim(self) -> int:
        return self.vectors.shape[2]

    def positions(self, selection: Selection) -> tuple[int, ...]:
        """The positions that ``selection`` activates in these candidate sets."""
        require_selection(selection)
        if selection.layout != self.layout:
            raise LayoutMismatchError(
                f"selection {selection} is of layout {selection.layout} and the candidate sets of "
                f"layout {self.layout}; build the selection on the layout of the candidate sets"
            )
        return selection.positions

    def numpy(self) -> CandidateArray:
        """The vectors as an array; bfloat16, which numpy does not have, becomes float32."""
        return _as_array(self.vectors)


@dataclass(frozen=True, eq=False, repr=False)
class CAES:
    """Content-adaptive embedding sets: candidate sets and, for each item, its selection.

    As with candidate sets, an index of any kind gives a CAES again.
    """

    candidates: CandidateSets
    selections: tuple[Selection, ...]

    def __post_init__(self) -> None:
        _require_list_of_selections(self.selections)
        object.__setattr__(self, "selections", tuple(self.selections))
        if len(self.selections) != len(self.candidates):
            raise ShapeError(
                f"got {len(self.selections)} selections for {len(self.candidates)} items; "
                f"give one selection per item"
            )
        for selection in set(self.selections):
            self.candidates.positions(selection)

    @classmethod
    def concatenate(cls, parts: "Iterable[CAES]") -> "CAES":
        """The items of all parts, one part after another."""
        parts = tuple(parts)
        candidates = CandidateSets.concatenate([part.candidates for part in parts])
        return cls(candidates, tuple(each for part in parts for each in part.selections))

    def __len__(self) -> int:
        return len(self.selections)

    def __getitem__(self, index: ItemIndex) -> "CAES":
        rows = torch.arange(len(self), device="cpu")[_rows(index, len(self))].tolist()
        return CAES(self.candidates[index], tuple(self.selections[row] for row in rows))

    def __repr__(self) -> str:
        mean = sum(selection.capacity for selection in self.selections) / len(self)
        return f"CAES({self.candidates!r}, mean capacity {mean:.2f})"

    @property
    def layout(self) -> GroupLayout:
        return self.candidates.layout

    @property
    def capacities(self) -> ItemCounts:
        """How many vectors each item activates, on the CPU."""
        counts = [selection.capacity for selection in self.selections]
        return torch.tensor(counts, device="cpu")

    @property
    def positions(self) -> tuple[tuple[int, ...], ...]:
        """The active positions of each item."""
        return tuple(selection.positions for selection in self.selections)

    @property
    def vectors(self) -> list[SetVectors]:
        """The active vectors of each item, [capacity, dim]."""
        rows: Iterable[Tensor] = self.candidates.vectors.unbind()
        return [row[list(each)] for row, each in zip(rows, self.positions, strict=True)]

    def numpy(self) -> list[SetArray]:
        """The active vectors of each item as arrays, [capacity, dim]."""
        rows = self.candidates.numpy()
        return [row[list(each)] for row, each in zip(rows, self.positions, strict=True)]

    def buckets(self) -> dict[Selection, ItemIndices]:
        """The items of each selection, in order of first appearance.

        The indices are on the CPU, from where they index tensors of every device.
        """
        items: dict[Selection, list[int]] = {}
        for item, selection in enumerate(self.selections):
            items.setdefault(selection, []).append(item)
        return {
            selection: torch.tensor(indices, device="cpu") for selection, indices in items.items()
        }


def activate(candidates: CandidateSets, selection: Selection) -> ActiveVectors:
    """The vectors of every item at the positions of one selection, in ascending order."""
    return candidates.vectors[:, list(candidates.positions(selection))]


def _already_checked(vectors: Tensor, layout: GroupLayout) -> CandidateSets:
    """Candidate sets of rows that come from other candidate sets, without measuring them again."""
    if not vectors.shape[0]:
        raise EmptyBatchError("no item was chosen; choose at least one")
    candidates = object.__new__(CandidateSets)
    object.__setattr__(candidates, "vectors", vectors)
    object.__setattr__(candidates, "layout", layout)
    return candidates


def _rows(index: ItemIndex, num_items: int) -> slice | Tensor:
    """An index that keeps the item axis."""
    if isinstance(index, slice):
        return index
    # On the CPU, from where indices reach tensors of every device.
    found = index.cpu() if isinstance(index, Tensor) else torch.tensor(index, device="cpu")
    rows = found.reshape(-1)
    if rows.dtype == torch.bool:
        _require_mask_of_all(rows, num_items)
        return rows
    _require_known_items(rows, num_items)
    return rows.to(torch.int64)


def _require_list_of_selections(given: object) -> None:
    if isinstance(given, (Selection, str)):
        raise UnknownSelectionError(
            f"a CAES has a list of selections, one per item, got {str(given)!r}; "
            f"use FixedAllocator to give every item the same"
        )


def _require_mask_of_all(mask: Tensor, num_items: int) -> None:
    if len(mask) != num_items:
        raise ShapeError(
            f"a mask of {len(mask)} entries cannot choose among {num_items} items; "
            f"give one entry per item"
        )


def _require_known_items(rows: Tensor, num_items: int) -> None:
    # An empty list arrives as float32.
    if rows.is_floating_point() and rows.numel():
        raise DtypeError(
            f"items are chosen by whole numbers or by a mask, got {rows.dtype}; "
            f"convert the index with .long()"
        )
    unknown = rows[(rows < -num_items) | (rows >= num_items)]
    if unknown.numel():
        # Not one of our errors: Python ends an iteration over items by an IndexError.
        raise IndexError(
            f"no item {int(unknown[0])} among {num_items}; choose 0 to {num_items - 1}"
        )


def _as_array(vectors: Tensor) -> CandidateArray:
    detached = vectors.detach().cpu()
    array: np.ndarray = (detached.float() if detached.dtype == torch.bfloat16 else detached).numpy()
    return array


def _scaled_to_unit_length(raw: Tensor) -> Tensor:
    """Every vector divided by its length, in float32 and rounded once.

    The largest coordinate is divided out first, because squares of very large or very small
    numbers leave the range of float32.
    """
    largest = raw.detach().abs().amax(dim=-1, keepdim=True).float()
    _require_directions(largest.squeeze(-1))
    scaled = raw.float() / largest
    lengths: Tensor = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return (scaled / lengths).to(raw.dtype)


def _require_directions(largest: Tensor) -> None:
    if not torch.isfinite(largest).all():
        item, position = _first(~torch.isfinite(largest))
        raise NotFiniteError(_not_finite(item, position))
    if not largest.all():
        item, position = _first(largest == 0)
        raise NotNormalizedError(_no_direction(item, position))


def _require_tensor(vectors: object) -> None:
    if isinstance(vectors, Tensor):
        return
    convert = "torch.from_numpy" if isinstance(vectors, np.ndarray) else "torch.tensor"
    raise DtypeError(
        f"candidate sets hold a torch tensor, got {type(vectors).__name__}; "
        f"convert with {convert}(vectors)"
    )


def _require_candidate_shape(vectors: Tensor, layout: GroupLayout) -> None:
    shape = tuple(vectors.shape)
    if len(shape) != 3:
        raise ShapeError(
            f"candidate sets have three axes, [batch, candidates, dim], got shape {shape}; "
            f"a single item of shape [candidates, dim] needs .unsqueeze(0)"
        )
    if shape[0] == 0:
        raise EmptyBatchError(f"candidate sets need at least one item, got shape {shape}")
    if shape[1] != layout.num_candidates:
        raise LayoutMismatchError(
            f"layout {layout} has {layout.num_candidates} positions and the vectors of shape "
            f"{shape} have {shape[1]}; give the layout that the vectors were made with"
        )
    if shape[2] == 0:
        raise ShapeError(f"vectors need at least one dimension, got shape {shape}")


def _require_supported_dtype(vectors: Tensor) -> None:
    if vectors.dtype not in UNIT_LENGTH_TOLERANCE:
        supported = ", ".join(str(each) for each in UNIT_LENGTH_TOLERANCE)
        raise DtypeError(
            f"candidate sets hold {supported}, got {vectors.dtype}; convert with .float()"
        )


def _require_unit_length(vectors: Tensor) -> None:
    items_at_once = max(1, CHECKED_AT_ONCE // vectors[0].numel())
    tolerance = UNIT_LENGTH_TOLERANCE[vectors.dtype]
    for start in range(0, vectors.shape[0], items_at_once):
        part = vectors.detach()[start : start + items_at_once]
        lengths = torch.linalg.vector_norm(part, dim=-1, dtype=torch.float32)
        # A length that is not a number is not within anything, so this finds it as well.
        wrong = ~((lengths - 1).abs() <= tolerance)
        if wrong.any():
            item, position = _first(wrong)
            raise _length_error(part[item, position], start + item, position, tolerance)


def _length_error(
    vector: Tensor, item: int, position: int, tolerance: float
) -> NotFiniteError | NotNormalizedError:
    if not torch.isfinite(vector).all():
        return NotFiniteError(_not_finite(item, position))
    if not vector.any():
        return NotNormalizedError(_no_direction(item, position))
    length = float(torch.linalg.vector_norm(vector.double()))
    return NotNormalizedError(
        f"the vector at item {item}, position {position} has length {length:.6g}, needed is 1 "
        f"within {tolerance:g} for {vector.dtype}; use CandidateSets.normalized(vectors, layout)"
    )


def _not_finite(item: int, position: int) -> str:
    return (
        f"the vector at item {item}, position {position} holds NaN or infinity; "
        f"look for the cause in what made it, or leave the item out"
    )


def _no_direction(item: int, position: int) -> str:
    return (
        f"the vector at item {item}, position {position} is zero and has no direction; "
        f"leave the item out or give it a vector"
    )


def _first(mask: Tensor) -> tuple[int, int]:
    item, position = mask.nonzero()[0].tolist()
    return item, position


def _require_parts_that_fit(parts: Sequence[CandidateSets]) -> None:
    if not parts:
        raise EmptyBatchError("nothing to concatenate; give at least one part")
    first = parts[0]
    for part in parts[1:]:
        if part.layout != first.layout:
            raise LayoutMismatchError(
                f"cannot concatenate candidate sets of layouts {first.layout} and {part.layout}; "
                f"all parts need one layout"
            )
        if part.dim != first.dim:
            raise ShapeError(
                f"cannot concatenate vectors of {first.dim} and {part.dim} dimensions; "
                f"all parts need one dimension"
            )
        if part.vectors.dtype != first.vectors.dtype:
            raise DtypeError(
                f"cannot concatenate {first.vectors.dtype} and {part.vectors.dtype}; "
                f"convert all parts to one type"
            )

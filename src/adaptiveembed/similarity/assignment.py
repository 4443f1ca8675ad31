"""The exact best one-to-one assignment of small square matrices (the maximum in Eq. 2)."""

from functools import lru_cache
from itertools import combinations

import torch
from torch import Tensor

from adaptiveembed.errors import CapacityLimitError, ShapeError
from adaptiveembed.shapes import Assignments, AssignmentTotals, Cosines
from adaptiveembed.similarity.kernels.calls import best_columns

MAX_CAPACITY = 8
"""The largest set that is matched exactly: the dynamic program has 2**capacity states."""


def best_assignment(cosines: Cosines) -> tuple[AssignmentTotals, Assignments]:
    """The greatest one-to-one total of every matrix, and the column that each row takes.

    Totals carry the gradient of the one assignment returned. Where several are equally good, it is
    always the same: the last row takes the lowest column, then the one before it.
    """
    require_square(cosines)
    columns = assignment_columns(cosines)
    return assignment_total(cosines, columns), columns


def assignment_columns(cosines: Cosines) -> Assignments:
    """The column that each row takes in the best assignment."""
    values = cosines.detach()
    if values.device.type == "cpu" and values.dtype == torch.float32:
        return _columns_by_kernel(values)
    return _columns_by_layers(values)


def assignment_total(cosines: Cosines, columns: Assignments) -> AssignmentTotals:
    """The sum over rows of the entries in the columns given."""
    return cosines.gather(-1, columns.unsqueeze(-1)).squeeze(-1).sum(-1)


def require_square(cosines: Tensor) -> None:
    """Refuse what cannot be matched exactly."""
    if cosines.dim() < 2 or cosines.shape[-1] != cosines.shape[-2]:
        raise ShapeError(
            f"an assignment needs square matrices [..., size, size], got {tuple(cosines.shape)}; "
            f"compare sets of equal capacity"
        )
    require_supported_capacity(cosines.shape[-1])


def require_supported_capacity(capacity: int) -> None:
    """Refuse sets that are empty or too large."""
    if not 1 <= capacity <= MAX_CAPACITY:
        raise CapacityLimitError(
            f"sets of {capacity} vectors cannot be matched exactly, 1 to {MAX_CAPACITY} can; "
            f"select fewer positions"
        )


def _columns_by_kernel(cosines: Tensor) -> Tensor:
    *pairs, size, _ = cosines.shape
    # The kernel reads [queries, rows, gallery, columns], as the product of two batches lies.
    flat = cosines.reshape(-1, size, size) if len(pairs) != 2 else None
    layout = cosines.permute(0, 2, 1, 3) if flat is None else flat.permute(1, 0, 2).unsqueeze(0)
    columns = best_columns(layout.contiguous().numpy(), torch.get_num_threads())
    return torch.from_numpy(columns).reshape(*pairs, size)


def _columns_by_layers(cosines: Tensor) -> Tensor:
    """The same on any device: one layer per row, all subsets of columns of one size at once."""
    size = cosines.shape[-1]
    values = cosines[..., 0, :]
    choices: list[Tensor] = []
    for row in range(1, size):
        columns, sources = _layer(size, row, cosines.device)
        reached = values[..., sources] + cosines[..., row, :][..., columns]
        values, choice = reached.max(dim=-1)
        choices.append(choice)
    return _columns_of_choices(cosines, choices)


def _columns_of_choices(cosines: Tensor, choices: list[Tensor]) -> Tensor:
    """Walk back from the one subset of all columns."""
    size = cosines.shape[-1]
    state = torch.zeros(cosines.shape[:-2], dtype=torch.int64, device=cosines.device)
    taken: list[Tensor] = []
    for row in range(size - 1, 0, -1):
        columns, sources = _layer(size, row, cosines.device)
        choice = choices[row - 1].gather(-1, state.unsqueeze(-1)).squeeze(-1)
        taken.append(columns[state, choice])
        state = sources[state, choice]
    return torch.stack([state, *reversed(taken)], dim=-1)


@lru_cache(maxsize=256)
def _layer(size: int, row: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """For every subset of row + 1 columns, its columns, and the smaller subset that lacks each."""
    smaller = {subset: number for number, subset in enumerate(combinations(range(size), row))}
    subsets = list(combinations(range(size), row + 1))
    sources = [
        [smaller[tuple(other for other in subset if other != column)] for column in subset]
        for subset in subsets
    ]
    return torch.tensor(subsets, device=device), torch.tensor(sources, device=device)

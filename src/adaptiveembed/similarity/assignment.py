"""The exact best one-to-one assignment of small square matrices (the maximum in Eq. 2)."""

from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import combinations

import torch
from torch import Tensor

from adaptiveembed.errors import CapacityLimitError, ShapeError
from adaptiveembed.shapes import Assignments, AssignmentTotals, Cosines
from adaptiveembed.similarity.kernels.calls import best_assignments, best_totals
from adaptiveembed.similarity.kernels.panels import Floats

MAX_CAPACITY = 8
"""The largest set that is matched exactly: the dynamic program has 2**capacity states."""


def best_assignment(cosines: Cosines) -> tuple[AssignmentTotals, Assignments]:
    """The greatest one-to-one total of every matrix, and the column that each row takes.

    Totals carry the gradient of the one assignment returned. Where several are equally good, it is
    always the same: the last row takes the lowest column, then the one before it.
    """
    require_square(cosines)
    if has_kernel(cosines) and not (torch.is_grad_enabled() and cosines.requires_grad):
        return _by_kernel(cosines)
    columns = assignment_columns(cosines)
    return assignment_total(cosines, columns), columns


def assignment_columns(cosines: Cosines) -> Assignments:
    """The column that each row takes in the best assignment."""
    values = cosines.detach()
    if has_kernel(values):
        return _by_kernel(values)[1]
    (columns,) = columns_by_layers(values, (values.shape[-1],))
    return columns


def best_total(cosines: Cosines) -> AssignmentTotals:
    """The greatest one-to-one total of every matrix, without its assignment where it can be."""
    require_square(cosines)
    if has_kernel(cosines) and not (torch.is_grad_enabled() and cosines.requires_grad):
        totals = best_totals(_matrices(cosines), torch.get_num_threads())
        return torch.from_numpy(totals).reshape(cosines.shape[:-2])
    return assignment_total(cosines, assignment_columns(cosines))


def has_kernel(cosines: Tensor) -> bool:
    """Whether a compiled kernel solves these."""
    return cosines.device.type == "cpu" and cosines.dtype == torch.float32


def assignment_total(cosines: Cosines, columns: Assignments) -> AssignmentTotals:
    """The sum over rows of the entries in the columns given, in the order of the program's sums."""
    return reduce(torch.add, cosines.gather(-1, columns.unsqueeze(-1)).squeeze(-1).unbind(-1))


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


def _by_kernel(cosines: Tensor) -> tuple[Tensor, Tensor]:
    totals, columns = best_assignments(_matrices(cosines), torch.get_num_threads())
    shape = cosines.shape[:-1]
    return torch.from_numpy(totals).reshape(shape[:-1]), torch.from_numpy(columns).reshape(shape)


def _matrices(cosines: Tensor) -> Floats:
    """The matrices [queries, gallery, rows, columns], where they lie if they can be read there."""
    values = cosines.detach()
    *pairs, size, _ = values.shape
    split = values if len(pairs) == 2 else values.reshape(1, -1, size, size)
    matrices: Floats = (split if split.stride(-1) == 1 else split.contiguous()).numpy()
    return matrices


def columns_by_layers(cosines: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """The best columns of the first so many rows among as many columns, on any device.

    One layer per row, all subsets of columns of one size at once; the last length is the greatest.
    The state of the first k columns is the first of its layer, so one program serves all lengths.
    """
    size = cosines.shape[-1]
    values = cosines[..., 0, :]
    choices: list[Tensor] = []
    for row in range(1, lengths[-1]):
        columns, sources = _layer(size, row, cosines.device)
        reached = values[..., sources] + cosines[..., row, :][..., columns]
        values, choice = reached.max(dim=-1)
        choices.append(choice)
    return [_columns_of_choices(cosines, choices[: length - 1]) for length in lengths]


def _columns_of_choices(cosines: Tensor, choices: list[Tensor]) -> Tensor:
    """Walk back from the subset of the first columns."""
    size = cosines.shape[-1]
    state = torch.zeros(cosines.shape[:-2], dtype=torch.int64, device=cosines.device)
    taken: list[Tensor] = []
    for row in range(len(choices), 0, -1):
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

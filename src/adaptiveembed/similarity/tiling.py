"""Walking a large score matrix within a memory budget."""

from collections.abc import Callable, Iterator
from math import comb, isqrt
from typing import NamedTuple

import torch
from torch import Tensor

from adaptiveembed.errors import SettingError
from adaptiveembed.similarity.assignment import MAX_CAPACITY

MEMORY_BUDGET = 256 << 20
"""Bytes that the products behind one tile of scores may take, unless told otherwise."""

Score = Callable[[Tensor, Tensor], Tensor]


class ScoreTile(NamedTuple):
    """A rectangle of a score matrix: which queries, which gallery items, and their scores."""

    queries: slice
    gallery: slice
    scores: Tensor


def score_tiles(
    score: Score, queries: Tensor, gallery: Tensor, memory_budget: int = MEMORY_BUDGET
) -> Iterator[ScoreTile]:
    """The score matrix of two batches of sets, tile by tile, each made within the budget."""
    for rows, columns in tile_slices(queries, gallery, memory_budget):
        yield ScoreTile(rows, columns, score(queries[rows], gallery[columns]))


def tile_slices(
    queries: Tensor, gallery: Tensor, memory_budget: int = MEMORY_BUDGET
) -> Iterator[tuple[slice, slice]]:
    """The rectangles that cover all pairs, each scored within the budget; a query's in a row."""
    tall, wide = _tile_shape(queries, gallery, memory_budget)
    for rows in _slices(len(queries), tall):
        for columns in _slices(len(gallery), wide):
            yield rows, columns


def assembled(score: Score, queries: Tensor, gallery: Tensor) -> Tensor:
    """The whole score matrix, made tile by tile within the default budget."""
    shape, kind = (len(queries), len(gallery)), accumulation_type(queries, gallery)
    scores = torch.empty(shape, dtype=kind, device=queries.device)
    for tile in score_tiles(score, queries, gallery):
        scores[tile.queries, tile.gallery] = tile.scores
    return scores


def _tile_shape(queries: Tensor, gallery: Tensor, memory_budget: int) -> tuple[int, int]:
    """How many queries and how many items a tile may have."""
    converted = [_converted_bytes(side, queries, gallery) for side in (queries, gallery)]
    # Half of the budget goes to the products; sets that change their type share the other half.
    pair = (1 + any(converted)) * pair_bytes(queries, gallery)
    pairs = memory_budget // pair
    limits = [memory_budget // (4 * each) if each else pairs for each in converted]
    if min(pairs, *limits) < 1:
        raise SettingError(
            f"a memory budget of {memory_budget} bytes does not hold one pair of sets; "
            f"give at least {max(pair, 4 * max(converted))}"
        )
    # Square tiles read each side least often; a side that is short leaves room for the other.
    tall = min(len(queries), limits[0], max(isqrt(pairs), pairs // max(1, len(gallery))))
    return tall, min(limits[1], max(1, pairs // max(1, tall)))


def pair_bytes(queries: Tensor, gallery: Tensor) -> int:
    """The most that scoring takes for a pair: its cosines, and what solves their assignment."""
    rows, columns = queries.shape[1], gallery.shape[1]
    kind = accumulation_type(queries, gallery)
    if kind == torch.float32 and queries.device.type == "cpu":
        return 2 * int(kind.itemsize) * rows * columns
    # The dynamic program holds its largest layer up to four times, and all of its choices.
    # Sets too large for it are compared by their maxima alone.
    capacity = min(rows, columns, MAX_CAPACITY)
    terms = max(comb(capacity, size) * size for size in range(1, capacity + 1))
    choices = 8 << capacity
    return int(kind.itemsize) * (2 * rows * columns + 4 * terms) + choices


def accumulation_type(queries: Tensor, gallery: Tensor) -> torch.dtype:
    """The type of the scores of two batches: float64 if one of them is, else float32."""
    return torch.promote_types(torch.promote_types(queries.dtype, gallery.dtype), torch.float32)


def _converted_bytes(side: Tensor, queries: Tensor, gallery: Tensor) -> int:
    """What an item takes in the type of the scores, if it has another."""
    kind = accumulation_type(queries, gallery)
    return 0 if side.dtype == kind else int(kind.itemsize) * side.shape[1] * side.shape[2]


def _slices(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, max(1, size))]

"""Walking a large score matrix within a memory budget."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from adaptiveembed.errors import SettingError

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
    """The score matrix of two batches of sets, tile by tile, each made within the budget.

    A tile of all queries is preferred, because it reads the gallery once.
    """
    pair = 4 * queries.shape[1] * gallery.shape[1]
    pairs = memory_budget // (2 * pair)  # the products, and as much again to work on them
    if pairs < 1:
        raise SettingError(
            f"a memory budget of {memory_budget} bytes does not hold one pair of sets, which takes "
            f"{2 * pair}; give at least that"
        )
    tall = min(len(queries), pairs)
    wide = max(1, pairs // max(1, tall))
    for rows in _slices(len(queries), tall):
        for columns in _slices(len(gallery), wide):
            yield ScoreTile(rows, columns, score(queries[rows], gallery[columns]))


def assembled(score: Score, queries: Tensor, gallery: Tensor) -> Tensor:
    """The whole score matrix, made tile by tile within the default budget."""
    scores = torch.empty(len(queries), len(gallery), dtype=torch.float32, device=queries.device)
    for tile in score_tiles(score, queries, gallery):
        scores[tile.queries, tile.gallery] = tile.scores
    return scores


def _slices(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, max(1, size))]

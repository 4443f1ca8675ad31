"""SetSim of all pairs with its gradient, under many sets of positions at once.

Sets of positions of which one begins another form a chain. A chain costs one product and one
dynamic program: the state of the first k rows and columns is the best total of the first k
positions. What is kept for the gradient is a word for every score, its assignment (R5), so that
memory grows with the pairs and not with their cosines.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from adaptiveembed.similarity.assignment import assignment_total, columns_by_layers, has_kernel
from adaptiveembed.similarity.kernels.assign import COLUMN_BITS
from adaptiveembed.similarity.kernels.calls import cosine_gradients, matching_scores
from adaptiveembed.similarity.kernels.panels import Scope, StoredVectors
from adaptiveembed.similarity.tiling import MEMORY_BUDGET, pair_bytes

GRADIENT_TILE = 1 << 22
"""Gradients of cosines that are held at once by the compiled path: 16 MB."""

Positions = tuple[int, ...]


class Chain(NamedTuple):
    """Sets of positions that are all beginnings of the longest among them."""

    positions: Positions
    lengths: tuple[int, ...]  # ascending
    places: tuple[int, ...]  # of each among the sets that were asked for


def chains(position_sets: Sequence[Positions]) -> tuple[Chain, ...]:
    """The sets of positions in as few chains as taking the longest first makes."""
    members: dict[Positions, list[int]] = {}
    longest_first = sorted(range(len(position_sets)), key=lambda place: -len(position_sets[place]))
    for place in longest_first:
        begun = position_sets[place]
        longest = next((each for each in members if each[: len(begun)] == begun), begun)
        members.setdefault(longest, []).insert(0, place)
    return tuple(
        Chain(positions, tuple(len(position_sets[place]) for place in places), tuple(places))
        for positions, places in members.items()
    )


def differentiable_scores(
    queries: Tensor, gallery: Tensor, position_sets: Sequence[Positions]
) -> tuple[Tensor, ...]:
    """A score matrix for each set of positions, of vectors in the type that scores have.

    The gradient is that of the assignments returned. It cannot be differentiated again.
    """
    scores: tuple[Tensor, ...] = _Scores.apply(  # type: ignore[no-untyped-call]
        queries, gallery, chains(position_sets)
    )
    return scores


class _Scores(torch.autograd.Function):
    """Scores of all chains; the gradient reads their words."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch gives it no type
        queries: Tensor,
        gallery: Tensor,
        chains: tuple[Chain, ...],
    ) -> tuple[Tensor, ...]:
        match = _match_by_kernel if has_kernel(queries) else _match_by_layers
        with torch.autocast(queries.device.type, enabled=False):
            found = [match(queries, gallery, chain) for chain in chains]
        ctx.save_for_backward(queries, gallery, *(words for _, words in found))
        ctx.chains = chains
        placed = {
            place: matrix
            for chain, (matrices, _) in zip(chains, found, strict=True)
            for place, matrix in zip(chain.places, matrices, strict=True)
        }
        return tuple(placed[place] for place in range(len(placed)))

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,  # noqa: ANN401 - torch gives it no type
        *gradients: Tensor,
    ) -> tuple[Tensor, Tensor, None]:
        queries, gallery, *words = ctx.saved_tensors
        spread = _spread_by_kernel if has_kernel(queries) else _spread_by_layers
        of_queries, of_gallery = torch.zeros_like(queries), torch.zeros_like(gallery)
        with torch.autocast(queries.device.type, enabled=False):
            for chain, match in zip(ctx.chains, words, strict=True):
                positions = list(chain.positions)
                asked = [gradients[place] for place in chain.places]
                found = spread(
                    queries[:, positions], gallery[:, positions], chain.lengths, match, asked
                )
                of_queries[:, positions] += found[0]
                of_gallery[:, positions] += found[1]
        return of_queries, of_gallery, None


# -- Compiled: words [prefix, item, query], queries filled up to whole vectors ---------------------


def _match_by_kernel(queries: Tensor, gallery: Tensor, chain: Chain) -> tuple[list[Tensor], Tensor]:
    """The score matrices of a chain, and the words of their assignments."""
    stored = StoredVectors(gallery.detach().contiguous().transpose(0, 1).numpy())
    scope = Scope(stored, chain.positions, np.arange(len(gallery)), torch.get_num_threads())
    sets = queries.detach()[:, list(chain.positions)].numpy()
    scores, words = matching_scores(sets, scope, chain.lengths)
    matrices = torch.from_numpy(scores)[..., : len(queries)].transpose(1, 2)
    return list(matrices.unbind()), torch.from_numpy(words)


def _spread_by_kernel(
    queries: Tensor,
    gallery: Tensor,
    lengths: tuple[int, ...],
    words: Tensor,
    asked: Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    """The gradients of both sides' sets, from those of their scores under each length.

    The gradients of the cosines [item and column, row and query] of some items at a time are
    multiplied with the queries, row by row, and with the items.
    """
    num_queries, capacity, dim = queries.shape
    lanes = words.shape[2]
    rows = _filled(queries.transpose(0, 1), 1, lanes).flatten(0, 1)
    given = torch.stack([_filled(each.T, 1, lanes) for each in asked])
    of_rows, of_gallery = torch.zeros_like(rows), torch.empty_like(gallery)
    step = max(1, GRADIENT_TILE // max(1, capacity**2 * lanes))
    # The kernel writes float32, whatever type and device torch makes tensors of by default.
    shape = (min(step, len(gallery)), capacity, capacity, lanes)
    space = torch.empty(shape, dtype=torch.float32, device="cpu")
    for items in _runs(len(gallery), step):
        tile = space[: items.stop - items.start]
        arrays = (given[:, items].numpy(), words[:, items].numpy(), lengths, tile.numpy())
        cosine_gradients(*arrays, torch.get_num_threads())
        product = tile.flatten(0, 1).flatten(1)
        of_gallery[items] = (product @ rows).view_as(of_gallery[items])
        of_rows.addmm_(product.T, gallery[items].flatten(0, 1))
    of_queries = of_rows.view(capacity, lanes, dim)[:, :num_queries].transpose(0, 1)
    return of_queries, of_gallery


def _filled(values: Tensor, axis: int, count: int) -> Tensor:
    """The values with as many zeros after them as make up the count, in order in memory."""
    missing = count - values.shape[axis]
    if not missing:
        return values.contiguous()
    shape = [*values.shape]
    shape[axis] = missing
    return torch.cat([values, values.new_zeros(shape)], dim=axis)


# -- On any device and in any type: words [prefix, query, item] ------------------------------------


def _match_by_layers(queries: Tensor, gallery: Tensor, chain: Chain) -> tuple[list[Tensor], Tensor]:
    """The same without a kernel, some queries at a time."""
    rows, columns = (side[:, list(chain.positions)] for side in (queries, gallery))
    shape = (len(chain.lengths), len(rows), len(columns))
    scores = rows.new_empty(shape)
    words = torch.empty(shape, dtype=torch.int32, device=rows.device)
    for part in _query_runs(rows, columns):
        cosines = torch.einsum("qid,gjd->qgij", rows[part], columns)
        found = columns_by_layers(cosines, chain.lengths)
        for number, (length, taken) in enumerate(zip(chain.lengths, found, strict=True)):
            total = assignment_total(cosines[..., :length, :], taken)
            scores[number, part] = (total / length).clamp(-1, 1)
            words[number, part] = (taken << _shifts(length, taken.device)).sum(-1).int()
    return list(scores.unbind()), words


def _spread_by_layers(
    queries: Tensor,
    gallery: Tensor,
    lengths: tuple[int, ...],
    words: Tensor,
    asked: Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    """The same without a kernel, some queries at a time."""
    of_queries, of_gallery = torch.empty_like(queries), torch.zeros_like(gallery)
    for part in _query_runs(queries, gallery):
        tile = queries.new_zeros(*words[0, part].shape, lengths[-1], lengths[-1])
        for length, match, each in zip(lengths, words, asked, strict=True):
            taken = match[part].unsqueeze(-1) >> _shifts(length, words.device)
            hit = _is_column(taken & ((1 << COLUMN_BITS) - 1), length)
            term = (each[part] / length)[..., None, None]
            tile[..., :length, :length] += torch.where(hit, term, 0)
        of_queries[part] = torch.einsum("qgij,gjd->qid", tile, gallery)
        of_gallery += torch.einsum("qgij,qid->gjd", tile, queries[part])
    return of_queries, of_gallery


def _is_column(taken: Tensor, length: int) -> Tensor:
    """For every row the one column that it takes [..., rows, columns]."""
    return taken.unsqueeze(-1) == torch.arange(length, device=taken.device)


def _shifts(length: int, device: torch.device) -> Tensor:
    """Where the column of each row begins in a word."""
    return COLUMN_BITS * torch.arange(length, device=device)


def _query_runs(queries: Tensor, gallery: Tensor) -> Iterator[slice]:
    """Queries whose pairs with the whole gallery keep within the memory budget."""
    return _runs(len(queries), MEMORY_BUDGET // (len(gallery) * pair_bytes(queries, gallery) or 1))


def _runs(count: int, size: int) -> Iterator[slice]:
    """Slices that cover the count, each of at least one and at most so many."""
    step = max(1, size)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))

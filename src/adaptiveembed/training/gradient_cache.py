"""The gradient of a loss over a whole batch, with the graph of only a part of it in memory.

All parts are embedded without a graph; the loss gives the gradient of every vector; then each part
is embedded once more, with a graph, and passes the gradient of its vectors on to the weights. The
result is the gradient of the whole batch by the chain rule, whatever the size of the parts, if both
passes compute the same. So masks of dropout must depend on items and steps alone.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from adaptiveembed.training.distributed import ALONE, Process, gather

Part = TypeVar("Part")


def backward_in_parts(
    embed: Callable[[Part], tuple[Tensor, ...]],
    parts: Sequence[Part],
    loss_of: Callable[..., Tensor],
    num_items: int,
    process: Process = ALONE,
) -> Tensor:
    """``loss_of(*vectors)`` of the whole batch; adds its gradient to that of the weights.

    ``embed`` gives the vectors of a part, one tensor per side, items first. The parts in turn are
    this process's share of the ``num_items`` of the batch; a single one is embedded only once. Of
    several processes each adds what its own vectors give, which is to be summed over them.
    """
    found = [embed(parts[0])] if len(parts) == 1 else _without_graph(embed, parts)
    whole = [gather(torch.cat(side), num_items, process) for side in zip(*found, strict=True)]
    loss, gradients = _gradients(whole, loss_of)
    own = [each[process.share(num_items)] for each in gradients]
    if len(parts) == 1:
        torch.autograd.backward(found[0], own)
        return loss
    start = 0
    for part, (vectors, *_) in zip(parts, found, strict=True):
        rows = slice(start, start + len(vectors))
        torch.autograd.backward(embed(part), [each[rows] for each in own])
        start = rows.stop
    return loss


def _without_graph(
    embed: Callable[[Part], tuple[Tensor, ...]], parts: Sequence[Part]
) -> list[tuple[Tensor, ...]]:
    with torch.no_grad():
        return [embed(part) for part in parts]


def _gradients(
    vectors: Sequence[Tensor], loss_of: Callable[..., Tensor]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The loss of these vectors, and its gradient for each of them."""
    leaves = [each.detach().requires_grad_() for each in vectors]
    loss = loss_of(*leaves)
    return loss.detach(), torch.autograd.grad(loss, leaves)

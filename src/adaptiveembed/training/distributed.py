"""Several processes that train one model, each on its share of every batch.

Started by ``torchrun``, they compute what one process computes: every process gathers the vectors
of the whole batch, so that all of it are negatives, takes the gradient of the whole loss with
respect to its own vectors, and the gradients of the weights are summed over the processes. All of
them read the data and the run folder; only the first one writes.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

PATIENCE = timedelta(hours=12)
"""How long a process waits for another, for example for the validation of the first."""


@dataclass(frozen=True)
class Process:
    """One of ``size`` processes."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, num_items: int) -> slice:
        """The part of a batch that is this process's own."""
        return slice(self.rank * num_items // self.size, (self.rank + 1) * num_items // self.size)


ALONE = Process()


@contextmanager
def process_group() -> Iterator[Process]:
    """This process among those that torchrun started; alone if it was not started so."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield current()
    finally:
        # a group that is left open may abort the process at its end
        dist.destroy_process_group()


def current() -> Process:
    """This process in the group that it has joined; alone if there is none."""
    if dist.is_available() and dist.is_initialized():
        return Process(dist.get_rank(), dist.get_world_size())
    return ALONE


def gather(own: Tensor, num_items: int, process: Process) -> Tensor:
    """The rows of all processes, in the order of the batch, as a tensor without a graph."""
    if process.size == 1:
        return own.detach()
    # Plain all_gather: that of torch.distributed.nn passes wrong gradients on gloo.
    longest = -(-num_items // process.size)
    padded = own.new_zeros((longest, *own.shape[1:]))
    padded[: len(own)] = own.detach()
    found = [torch.empty_like(padded) for _ in range(process.size)]
    dist.all_gather(found, padded)
    shares = [Process(rank, process.size).share(num_items) for rank in range(process.size)]
    return torch.cat([rows[: s.stop - s.start] for rows, s in zip(found, shares, strict=True)])


def add_up(weights: Sequence[nn.Parameter], extra: Tensor, process: Process) -> Tensor:
    """``extra`` summed over the processes, as the gradients of the weights are by then.

    A weight has no gradient afterwards if it had none in any process.
    """
    if process.size == 1:
        return extra
    given = extra.new_tensor([weight.grad is not None for weight in weights])
    gradients = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    summed = torch.cat([each.flatten() for each in (*gradients, given, extra)])
    dist.all_reduce(summed)
    sizes = [weight.numel() for weight in weights]
    *parts, given, extra = torch.split(summed, [*sizes, len(weights), len(extra)])
    for weight, part, times in zip(weights, parts, given.tolist(), strict=True):
        weight.grad = part.view_as(weight) if times else None
    return extra


def share_weights(model: nn.Module, process: Process) -> None:
    """Give every process the weights of the first one."""
    if process.size > 1:
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, src=0)


def from_first(numbers: Sequence[float], device: torch.device, process: Process) -> list[float]:
    """The numbers of the first process, in every process."""
    if process.size == 1:
        return list(numbers)
    told = torch.tensor(numbers, dtype=torch.float64, device=device)
    dist.broadcast(told, src=0)
    return [float(number) for number in told]


def wait_for_all(process: Process) -> None:
    """Return when every process has called it."""
    if process.size > 1:
        dist.barrier()

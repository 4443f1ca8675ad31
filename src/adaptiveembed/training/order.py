"""Which items are seen when: a function of the seed, so that nothing of it needs to be stored."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import torch

from adaptiveembed.errors import TrainingError
from adaptiveembed.shapes import ItemIndices
from adaptiveembed.training.randomness import mixed
from adaptiveembed.training.settings import LastBatch, TrainingSettings

Step = TypeVar("Step")
Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Plan:
    """The items of every step."""

    num_items: int
    batch_size: int
    epochs: int
    last_batch: LastBatch
    seed: int

    @classmethod
    def of(cls, settings: TrainingSettings, num_items: int, what: str) -> "Plan":
        """The plan of these settings for so many items, which errors call ``what``."""
        if settings.last_batch is LastBatch.DROP and num_items < settings.batch_size:
            raise TrainingError(
                f"there are {num_items} {what} and a batch takes {settings.batch_size}; "
                f"set batch_size to at most {num_items}, or last_batch to keep"
            )
        return cls(
            num_items, settings.batch_size, settings.epochs, settings.last_batch, settings.seed
        )

    @property
    def steps_per_epoch(self) -> int:
        dropped = self.last_batch is LastBatch.DROP
        return (
            self.num_items // self.batch_size if dropped else -(-self.num_items // self.batch_size)
        )

    @property
    def total_steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    def ends_epoch(self, done: int) -> bool:
        """Whether an epoch is over when so many steps are done."""
        return done % self.steps_per_epoch == 0

    def items_until(self, done: int) -> int:
        """How many items were seen in so many steps, counting repetitions."""
        epochs, batches = divmod(done, self.steps_per_epoch)
        each = min(self.num_items, self.steps_per_epoch * self.batch_size)
        return epochs * each + batches * self.batch_size

    def items(self, step: int) -> ItemIndices:
        """The items of a step, counted from 0."""
        epoch, batch = divmod(step, self.steps_per_epoch)
        start = batch * self.batch_size
        return order(self.num_items, self.seed, epoch)[start : start + self.batch_size]


@lru_cache(maxsize=2)
def order(num_items: int, seed: int, epoch: int) -> ItemIndices:
    """All items in the random order of this epoch; not to be written to."""
    generator = torch.Generator().manual_seed(mixed(seed, epoch))
    return torch.randperm(num_items, generator=generator)


def one_ahead(make: Callable[[Step], Batch], steps: Iterable[Step]) -> Generator[Batch]:
    """What is made of each step, in order, while another thread makes the next."""
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as worker:
        pending = None
        for step in steps:
            following = worker.submit(make, step)
            if pending is not None:
                yield pending.result()
            pending = following
        if pending is not None:
            yield pending.result()

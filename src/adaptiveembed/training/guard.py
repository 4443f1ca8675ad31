"""The watch for numbers that are no longer finite, and the search for where they came from."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adaptiveembed.shapes import ItemIndices
from adaptiveembed.training.distributed import current
from adaptiveembed.training.hardware import Hardware
from adaptiveembed.training.task import Task

LARGE = 1e6
"""Weights that learn stay far below it; products of larger ones soon leave what float32 holds."""


@dataclass(frozen=True)
class Failure:
    """The first step whose loss or gradient was not finite."""

    step: int
    loss: float
    gradient_norm: float

    def __str__(self) -> str:
        if math.isfinite(self.loss):
            return f"the loss is {self.loss:.4g} and the norm of its gradient {self.gradient_norm}"
        return f"the loss is {self.loss}"


class Watch:
    """Notes the first failure where the numbers are, so that no step waits for a device."""

    def __init__(self, device: torch.device) -> None:
        self._noted = torch.full((3,), -1.0, dtype=torch.float64, device=device)

    def note(self, step: int, loss: Tensor, gradient_norm: Tensor) -> None:
        """Look at the loss and the norm of the whole gradient of a step."""
        seen = torch.stack((torch.full_like(loss, step), loss, gradient_norm)).double()
        is_first = (self._noted[0] < 0) & ~seen.isfinite().all()
        self._noted = torch.where(is_first, seen, self._noted)

    def failure(self) -> Failure | None:
        """The first failure so far; asking waits for the device."""
        step, loss, norm = self._noted.tolist()
        return None if step < 0 else Failure(int(step), loss, norm)


def likely_cause(task: Task, hardware: Hardware, failure: Failure, items: ItemIndices) -> str:
    """A sentence on why, found by looking at the items, the weights and the step itself."""
    return (
        task.fault(items)
        or cause_in_weights(task.model)
        or cause_in_size(task.model)
        or _cause_in_precision(task, hardware, failure, items)
        or "the items and the weights are finite, so look at the loss: a temperature too small "
        "divides beyond what numbers hold; raise it, or lower learning_rate"
    )


def cause_in_weights(model: nn.Module) -> str | None:
    """What is wrong with the weights, if anything is."""
    for name, weight in model.named_parameters():
        if not bool(torch.isfinite(weight.detach()).all()):
            return (
                f"the weight {name} holds NaN or infinity, so earlier steps were too large; lower "
                f"learning_rate, or set warmup or clip_norm"
            )
    return None


def cause_in_size(model: nn.Module) -> str | None:
    """Which finite weight is so large that what is computed from it need not be finite."""
    sizes = {name: float(each.detach().abs().max()) for name, each in model.named_parameters()}
    name = max(sizes, key=lambda each: sizes[each])
    if sizes[name] < LARGE:
        return None
    return (
        f"the weight {name} reaches {sizes[name]:.2g}, so earlier steps were too large; lower "
        f"learning_rate, or set warmup or clip_norm"
    )


def _cause_in_precision(
    task: Task, hardware: Hardware, failure: Failure, items: ItemIndices
) -> str | None:
    # a step takes all processes, and those that found the cause in their items are gone
    if not hardware.bf16 or current().size > 1:
        return None
    precise = task.on(Hardware(hardware.device, bf16=False))
    task.model.zero_grad()
    loss = precise.backward(precise.prepare(items), failure.step)
    norm = gradient_norm(task.model.parameters())
    task.model.zero_grad()
    if not bool(torch.isfinite(loss) & torch.isfinite(norm)):
        return None
    return "the same step is finite without autocast to bfloat16; set bf16 to off"


def gradient_norm(weights: Iterable[nn.Parameter]) -> Tensor:
    """The length of the whole gradient, without waiting for the device."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    return torch.nn.utils.get_total_norm(gradients)

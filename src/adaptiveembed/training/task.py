"""What the loop trains: a model, items, and the gradient that a batch of them gives."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from adaptiveembed.shapes import ItemIndices
from adaptiveembed.training.hardware import Hardware


def facts_of(name: str, part: object) -> dict[str, str]:
    """The fields of a part of a training, if it is a dataclass: more cannot be known of it."""
    if not is_dataclass(part):
        return {}
    return {f"{name}.{each.name}": str(getattr(part, each.name)) for each in fields(part)}


@runtime_checkable
class Task(Protocol):
    """One stage of learning.

    Everything of chance in it is a function of the seed, the step and the items, so that a step
    can be taken again.
    """

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def items_name(self) -> str:
        """What its items are, in the plural."""
        ...

    @property
    def model(self) -> nn.Module: ...

    def __len__(self) -> int:
        """How many items there are."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What a stored state must have been made with to be continued."""
        ...

    def on(self, hardware: Hardware) -> "Task":
        """The same task computed there, with its model on that device."""
        ...

    def prepare(self, items: ItemIndices) -> Any:  # noqa: ANN401 - between the task and itself
        """This process's share of a batch, read by another thread."""
        ...

    def backward(self, batch: Any, step: int) -> Tensor:  # noqa: ANN401
        """This process's part of the loss; adds its part of the gradient to that of the weights.

        The sums over all processes are the loss and the gradient of the whole batch.
        """
        ...

    def fault(self, items: ItemIndices) -> str | None:
        """What is wrong with these items, if anything is."""
        ...

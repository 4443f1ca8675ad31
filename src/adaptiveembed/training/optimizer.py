"""AdamW over the weights of a model, and its state by the names of the weights."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.optim import AdamW

from adaptiveembed.errors import CheckpointError
from adaptiveembed.training.checkpoints import Tensors
from adaptiveembed.training.settings import Decay, OptimizerSettings

FUSED_FROM = 1 << 20
"""Numbers from which the fused step is faster on a CPU; it starts its threads for every weight."""


def adamw(model: nn.Module, settings: OptimizerSettings) -> AdamW:
    """The optimizer of all weights that learn; the loop sets its learning rate at every step."""
    groups: list[dict[str, Any]] = [
        {"params": [], "weight_decay": settings.weight_decay},
        {"params": [], "weight_decay": 0.0},
    ]
    for _, weight in _learning(model):
        spared = settings.decay is Decay.MATRICES and weight.dim() < 2
        groups[spared]["params"].append(weight)
    fused = _is_fused(model)
    return AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=(settings.betas[0], settings.betas[1]),
        eps=settings.epsilon,
        fused=fused,
        foreach=not fused,
    )


def optimizer_state(model: nn.Module, optimizer: AdamW) -> dict[str, Tensor]:
    """What the optimizer remembers of each weight, named ``<weight>:<memory>``."""
    return {
        f"{name}:{memory}": value
        for name, weight in _learning(model)
        for memory, value in optimizer.state.get(weight, {}).items()
    }


def load_optimizer_state(model: nn.Module, optimizer: AdamW, state: Tensors) -> None:
    """Have the optimizer remember what ``optimizer_state`` told."""
    weights = dict(_learning(model))
    for key, value in state.items():
        name, _, memory = key.rpartition(":")
        if name not in weights:
            raise CheckpointError(
                f"the stored optimizer knows a weight {name} that does not learn in this model; "
                f"continue with the model that it was made with, or choose another folder"
            )
        weight = weights[name]
        optimizer.state[weight][memory] = value.to(weight.device, copy=True)


def _is_fused(model: nn.Module) -> bool:
    weights = [weight for _, weight in _learning(model)]
    numbers = sum(weight.numel() for weight in weights)
    return numbers >= FUSED_FROM or any(weight.is_cuda for weight in weights)


def _learning(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, each) for name, each in model.named_parameters() if each.requires_grad)

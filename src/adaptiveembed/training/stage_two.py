"""Stage II: the policy learns which expansion of a selection is worth its cost (Sec. 3.2).

What a policy reads and what each action is worth are computed before; training sees every state of
every sample of both directions, and samples nothing (R11).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaptiveembed.allocation.feedback import PolicyInputs
from adaptiveembed.errors import EmptyBatchError, ShapeError, TrainingError
from adaptiveembed.shapes import ActionUtilities, ItemIndices
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.training.distributed import current
from adaptiveembed.training.hardware import ANY_CPU, Hardware
from adaptiveembed.training.loop import TrainingSummary, Validate, train
from adaptiveembed.training.randomness import mixed, seed_generators
from adaptiveembed.training.settings import TrainingSettings
from adaptiveembed.training.task import facts_of

PolicyObjective = Callable[[Tensor, Tensor], Tensor]
"""The loss of logits and utilities [samples, states, actions]: a mean over samples."""


@dataclass(frozen=True, eq=False)
class PolicyExamples:
    """What a policy may read of some samples, and what each action is worth to them."""

    inputs: PolicyInputs
    utilities: ActionUtilities
    """Standardised utilities [samples, states, actions]."""

    def __post_init__(self) -> None:
        if self.utilities.dim() != 3 or len(self.utilities) != len(self.inputs):
            raise ShapeError(
                f"inputs of {len(self.inputs)} samples and utilities "
                f"{tuple(self.utilities.shape)}; give utilities [samples, states, actions]"
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, samples: slice | Tensor) -> "PolicyExamples":
        return replace(self, inputs=self.inputs[samples], utilities=self.utilities[samples])

    @classmethod
    def concatenate(cls, parts: Sequence["PolicyExamples"]) -> "PolicyExamples":
        """The samples of all parts, one part after another: those of both directions."""
        if not parts:
            raise EmptyBatchError("nothing to concatenate; give at least one part")
        inputs = PolicyInputs.concatenate([part.inputs for part in parts])
        return cls(inputs, torch.cat([part.utilities for part in parts]))

    def to(self, device: torch.device | str) -> "PolicyExamples":
        """The same examples on another device."""
        return replace(self, inputs=self.inputs.to(device), utilities=self.utilities.to(device))

    @property
    def named_tensors(self) -> dict[str, Tensor]:
        """Everything in them that a policy or its loss reads."""
        return {
            "candidates": self.inputs.candidates,
            "feedback": self.inputs.feedback,
            "top scores": self.inputs.top_scores,
            "utilities": self.utilities,
        }

    @property
    def fingerprint(self) -> str:
        """Equal for equal examples."""
        states = ", ".join(map(str, self.inputs.states))
        digest = hashlib.blake2b(states.encode(), digest_size=16)
        for tensor in self.named_tensors.values():
            digest.update(repr(tuple(tensor.shape)).encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def train_policy(  # noqa: PLR0913 - what is learned and how, where it is kept, who looks at it
    policy: nn.Module,
    examples: PolicyExamples,
    objective: PolicyObjective,
    settings: TrainingSettings,
    folder: str | Path,
    *,
    validate: Validate | None = None,
    progress: Progress = silent,
    facts: Mapping[str, Any] | None = None,
) -> TrainingSummary:
    """Train a policy on examples, or go on where a training in the folder was stopped.

    Args:
        policy: Maps ``PolicyInputs`` to logits [samples, states, actions].
        examples: What it learns from; ``concatenate`` joins those of both directions.
        objective: The loss, a mean over samples.
        settings: How it learns; ``PolicyTrainingSettings`` has the defaults of this stage.
        folder: For checkpoints and figures; one training per folder.
        validate: As ``training.loop.train`` takes it.
        progress: Told the steps done, and figures.
        facts: What a stored state must have been made with beside the settings, the examples, the
            ``settings`` of the policy and the fields of the objective, where these are dataclasses.
    """
    task = _StageTwo(policy, examples, objective, settings)
    _require_finite(task)
    return train(task, settings, Path(folder), validate=validate, progress=progress, facts=facts)


@dataclass(frozen=True, eq=False)
class _StageTwo:
    """The task of the loop; what it must have is said in ``training.task``."""

    model: nn.Module
    examples: PolicyExamples
    objective: PolicyObjective
    settings: TrainingSettings
    hardware: Hardware = ANY_CPU

    name = "Stage II"
    items_name = "samples"

    def __len__(self) -> int:
        return len(self.examples)

    def facts(self) -> dict[str, Any]:
        return {
            "examples": f"{len(self.examples)} of fingerprint {self.examples.fingerprint}",
            **facts_of("model", getattr(self.model, "settings", None)),
            **facts_of("objective", self.objective),
        }

    def on(self, hardware: Hardware) -> "_StageTwo":
        device = hardware.device
        return replace(
            self,
            model=self.model.to(device),
            examples=self.examples.to(device),
            hardware=hardware,
        )

    def prepare(self, items: ItemIndices) -> tuple[int, list[Tensor]]:
        """The size of the whole batch, and the samples of this process in parts."""
        own = items[current().share(len(items))]
        size = self.settings.micro_batch or max(1, len(own))
        return len(items), [own[start : start + size] for start in range(0, len(own), size)]

    def backward(self, batch: tuple[int, list[Tensor]], step: int) -> Tensor:
        num_samples, parts = batch
        total = torch.zeros((), device=self.hardware.device)
        for place, part in enumerate(parts):
            seed = mixed(self.settings.seed, step, current().rank, place)
            seed_generators(seed, self.hardware.device)
            loss = self._loss(self.examples[part]) * (len(part) / num_samples)
            torch.autograd.backward(loss)
            total += loss.detach()
        return total

    def fault(self, items: ItemIndices) -> str | None:
        for name, tensor in self.examples[items].named_tensors.items():
            wrong = ~tensor.isfinite().flatten(1).all(dim=1)
            if wrong.any():
                sample = int(items[wrong.cpu().nonzero()[0]])
                return f"the {name} of sample {sample} hold NaN or infinity; compute them again"
        return None

    def _loss(self, examples: PolicyExamples) -> Tensor:
        with self.hardware.autocast():
            logits: Tensor = self.model(examples.inputs)
        return self.objective(logits.float(), examples.utilities)


def _require_finite(task: _StageTwo) -> None:
    fault = task.fault(torch.arange(len(task)))
    if fault is not None:
        raise TrainingError(f"Stage II cannot begin: {fault}")

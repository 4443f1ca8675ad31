"""How a training is run. The defaults are those of the paper (App. B, R18)."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

from adaptiveembed.errors import SettingError


class Schedule(StrEnum):
    """How the learning rate changes after its warm-up."""

    CONSTANT = "constant"
    """Not at all, as in the paper."""
    COSINE = "cosine"
    """Down half a cosine wave."""
    LINEAR = "linear"
    """Down a straight line."""


class Decay(StrEnum):
    """Which weights are drawn towards zero."""

    ALL = "all"
    """Every weight, as AdamW does when nothing else is said."""
    MATRICES = "matrices"
    """Weights of two axes and more: no biases, no gains of a normalisation."""


class LastBatch(StrEnum):
    """What becomes of the items that do not fill a last batch."""

    DROP = "drop"
    """They wait for the next epoch, whose order is another."""
    KEEP = "keep"
    """They make a smaller batch."""


class DeviceChoice(StrEnum):
    """Where a model is trained."""

    AUTO = "auto"
    """On CUDA if there is a device, else on the CPU."""
    CPU = "cpu"
    CUDA = "cuda"


class Autocast(StrEnum):
    """Whether a model computes in bfloat16 where torch holds that to be safe."""

    AUTO = "auto"
    """On CUDA devices that can; never on a CPU, where it is rarely faster."""
    OFF = "off"
    ON = "on"


@dataclass(frozen=True)
class OptimizerSettings:
    """AdamW, the course of its learning rate, and clipping."""

    learning_rate: float = 1e-4
    """The highest learning rate."""
    schedule: Schedule = Schedule.CONSTANT
    """What becomes of it after the warm-up: ``constant`` as in the paper, ``cosine`` or
    ``linear``."""
    warmup: float = 0.0
    """The part of all steps, from 0 to 1, in which the rate rises from nothing."""
    final: float = 0.0
    """The part of the rate that a falling schedule leaves at the end."""
    weight_decay: float = 0.01
    """Decoupled weight decay; the paper is silent, this is AdamW's own default."""
    decay: Decay = Decay.ALL
    """Which weights decay: ``all``, or ``matrices``."""
    betas: tuple[float, ...] = (0.9, 0.999)
    """How slowly the two running means of the gradient forget."""
    epsilon: float = 1e-8
    """Added to the root of the second mean."""
    clip_norm: float | None = None
    """The largest norm of the whole gradient; none in the paper."""

    def __post_init__(self) -> None:
        _require_positive(self, "learning_rate", "epsilon")
        if not 0 <= self.warmup <= 1:
            raise SettingError(f"warmup is {self.warmup}; give a part of all steps, from 0 to 1")
        if not 0 <= self.final <= 1:
            raise SettingError(f"final is {self.final}; give a part of the rate, from 0 to 1")
        if not 0 <= self.weight_decay < math.inf:
            raise SettingError(f"weight_decay is {self.weight_decay}; give 0 or more")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise SettingError(f"betas are {self.betas}; give two numbers from 0 to below 1")
        if self.clip_norm is not None:
            _require_positive(self, "clip_norm")


@dataclass(frozen=True)
class TrainingSettings:
    """One training: how much, in what order, where, and how often it is looked at."""

    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    epochs: int = 20
    """How often every item is seen."""
    batch_size: int = 2048
    """Items of one step, over all processes."""
    micro_batch: int | None = None
    """Items embedded at a time by one process; it bounds the memory and changes no gradient. Open:
    the whole batch."""
    last_batch: LastBatch = LastBatch.DROP
    """Items that do not fill a batch are dropped until the next epoch (``drop``), since a smaller
    batch has fewer negatives and so another loss; or they make a smaller batch (``keep``)."""
    seed: int = 0
    """What the order of the items and all masks of dropout are drawn from."""
    patience: int | None = None
    """Validations without improvement after which training stops; open: never."""
    figure: str = "mAP"
    """The figure of the validation whose highest value has the best weights."""
    validate_epochs: int = 1
    """Epochs from one validation to the next; the last epoch is always validated."""
    device: DeviceChoice = DeviceChoice.AUTO
    """Where: ``auto``, ``cpu`` or ``cuda``."""
    bf16: Autocast = Autocast.AUTO
    """Whether the model computes in bfloat16: ``auto``, ``off`` or ``on``. Losses never do."""
    log_steps: int = 10
    """Steps from one logged step to the next."""
    checkpoint_steps: int | None = None
    """Steps from one checkpoint to the next, beside those that are due by time."""
    checkpoint_seconds: float = 60.0
    """A checkpoint is also written when the last one is so old, after every validation, on Ctrl-C
    and at the end; 0: after every step."""

    def __post_init__(self) -> None:
        require_seed("seed", self.seed)
        _require_positive(self, "epochs", "batch_size", "validate_epochs", "log_steps")
        for name in ("micro_batch", "patience", "checkpoint_steps"):
            if getattr(self, name) is not None:
                _require_positive(self, name)
        if not self.checkpoint_seconds >= 0:
            raise SettingError(f"checkpoint_seconds is {self.checkpoint_seconds}; give 0 or more")


@dataclass(frozen=True)
class PolicyTrainingSettings(TrainingSettings):
    """The same for Stage II, whose samples are no negatives of each other."""

    batch_size: int = 256
    """Samples of one step, over all processes; the paper is silent."""
    last_batch: LastBatch = LastBatch.KEEP
    """Samples that do not fill a batch make a smaller one (``keep``), or are dropped until the
    next epoch (``drop``)."""


def learning_rate(settings: OptimizerSettings, step: int, total_steps: int) -> float:
    """The learning rate of a step, counted from 0.

    >>> rates = OptimizerSettings(learning_rate=1.0, warmup=0.5, schedule=Schedule.LINEAR)
    >>> [learning_rate(rates, step, 8) for step in range(8)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    warm = round(settings.warmup * total_steps)
    if step < warm:
        return settings.learning_rate * (step + 1) / warm
    passed = (step - warm) / max(1, total_steps - warm)
    left = settings.final + (1 - settings.final) * _height(settings.schedule, passed)
    return settings.learning_rate * left


def _height(schedule: Schedule, passed: float) -> float:
    if schedule is Schedule.COSINE:
        return (1 + math.cos(math.pi * passed)) / 2
    return 1 - passed if schedule is Schedule.LINEAR else 1.0


def _require_positive(settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if not 0 < value < math.inf:
            raise SettingError(f"{name} is {value}; give a number above 0")


def require_seed(name: str, seed: int) -> None:
    """Refuse what random generators take for no seed."""
    if not 0 <= seed < 1 << 63:
        raise SettingError(f"{name} is {seed}; give a whole number from 0 to below 2^63")

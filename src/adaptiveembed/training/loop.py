"""The one loop of both stages.

A step is a function of the weights, the optimizer's state, the seed and the step's number. So a
training that was killed and is started again with the same arguments goes on from its last
checkpoint and ends with the same bits as if it had never been stopped. Whether it is begun,
continued or found finished follows from what its folder holds.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaptiveembed.errors import (
    CheckpointError,
    NotFiniteError,
    NotNormalizedError,
    TrainingError,
)
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.training import distributed
from adaptiveembed.training.checkpoints import (
    Checkpoint,
    Standing,
    Tensors,
    checkpoints_in,
    read_checkpoint,
    require_same_facts,
    write_checkpoint,
)
from adaptiveembed.training.guard import (
    Watch,
    cause_in_size,
    cause_in_weights,
    gradient_norm,
    likely_cause,
)
from adaptiveembed.training.hardware import Hardware
from adaptiveembed.training.interruption import Interruption
from adaptiveembed.training.optimizer import adamw, load_optimizer_state, optimizer_state
from adaptiveembed.training.order import Plan, one_ahead
from adaptiveembed.training.randomness import mixed, own_randomness, seed_generators
from adaptiveembed.training.reporting import Reporter
from adaptiveembed.training.settings import TrainingSettings, learning_rate
from adaptiveembed.training.task import Task

Validate = Callable[[nn.Module], Mapping[str, float]]
"""The figures of a model on the validation set; the model is in evaluation mode."""

CHECKPOINTS = "checkpoints"

UNBINDING = {"device", "bf16", "micro_batch", "log_steps", "checkpoint_steps", "checkpoint_seconds"}
"""Settings that may be others when a training is continued, because they are no part of what is
computed. The precision that ``bf16`` came to may not."""


@dataclass(frozen=True)
class TrainingSummary:
    """What came of a training."""

    steps: int
    """Steps done, over all starts."""
    epochs: float
    seconds: float
    """Time spent, over all starts."""
    loss: float
    """The loss of the last step."""
    best_step: int | None
    """Steps done when the model had the weights that it has now; open without validation."""
    best: Mapping[str, float]
    """The figures of the validation then."""
    stopped_early: bool
    """Whether validations without improvement ended it."""


def train(  # noqa: PLR0913 - what is learned and how, where it is kept, who looks at it
    task: Task,
    settings: TrainingSettings,
    folder: Path,
    *,
    validate: Validate | None = None,
    progress: Progress = silent,
    facts: Mapping[str, Any] | None = None,
) -> TrainingSummary:
    """Train the model of the task, or go on where a training in the folder was stopped.

    At the end the model has the best weights by validation, without it the last ones, and is on the
    device and in the mode where it was before. In a group of processes each calls this; the first
    one validates, writes and tells its progress.

    Args:
        task: What is learned.
        settings: How.
        folder: For checkpoints and figures; one training per folder.
        validate: Measures the model after epochs. The highest value of the figure that
            ``settings.figure`` names decides; all figures are logged and shown.
        progress: Told the steps done, and figures.
        facts: What else a stored state must have been made with to be continued.

    Raises:
        TrainingError: A loss or gradient is not finite, or the data cannot be learned from.
        CheckpointError: The folder holds another training, or a damaged checkpoint.
        KeyboardInterrupt: After Ctrl-C or SIGTERM, once the step is done and its state is stored;
            after the last step too, so that whatever comes next is not begun.
    """
    with _restored(task.model), Interruption() as interruption:
        training = _Training(task, settings, folder, interruption)
        training.facts |= facts or {}
        with own_randomness(training.hardware.device):
            training.resume()
            if not training.standing.finished:
                training.run(validate, progress)
        training.take_best()
        training.end_if_wished()
        return training.summary()


class _Training:
    """A training under way: where it stands, and everything that a step changes."""

    def __init__(
        self, task: Task, settings: TrainingSettings, folder: Path, interruption: Interruption
    ) -> None:
        self.settings, self.folder, self.interruption = settings, folder, interruption
        self.process = distributed.current()
        self.hardware = Hardware.of(settings)
        self.plan = Plan.of(settings, len(task), task.items_name)
        self.task = task.on(self.hardware)
        self.facts = {**_setting_facts(settings, self.hardware), **task.facts()}
        self.weights = _learning_weights(task)
        self.optimizer = adamw(task.model, settings.optimizer)
        self.watch = Watch(self.hardware.device)
        self.standing = Standing()
        self.best: Tensors = {}
        self.stored_at = 0.0

    def resume(self) -> None:
        """Take up the last state that the folder holds, if there is one."""
        stored = checkpoints_in(self.folder / CHECKPOINTS)
        if stored:
            self._take_up(stored[-1])
        distributed.share_weights(self.task.model, self.process)
        distributed.wait_for_all(self.process)

    def run(self, validate: Validate | None, progress: Progress) -> None:
        """Take the steps that are left."""
        first = self.process.is_first
        reporter = Reporter(self.settings, self.plan, progress if first else silent, self.standing)
        if first:
            reporter.note_in(self.folder)
        self.task.model.train()
        steps = range(self.standing.step, self.plan.total_steps)
        with closing(reporter), closing(one_ahead(self._prepare, steps)) as batches:
            for step, batch in zip(steps, batches, strict=True):
                reached = self._take_step(step, batch)
                if self._is_read(step):
                    self._look(reached, validate, reporter)
                if self.standing.finished:
                    return

    def take_best(self) -> None:
        """Give the model the weights of the best validation, if there was one."""
        if self.best:
            self.task.model.load_state_dict(dict(self.best))

    def end_if_wished(self) -> None:
        """Heed a wish that came too late for a step: whoever trains on would lose it."""
        own = torch.tensor([float(self.interruption.wished)], device=self.hardware.device)
        if distributed.add_up((), own, self.process).any():
            raise self._interrupted()

    def summary(self) -> TrainingSummary:
        standing = self.standing
        return TrainingSummary(
            steps=standing.step,
            epochs=standing.step / self.plan.steps_per_epoch,
            seconds=standing.seconds,
            loss=standing.loss,
            best_step=standing.best_step,
            best=standing.best,
            stopped_early=standing.step < self.plan.total_steps,
        )

    def _prepare(self, step: int) -> object:
        items = self.plan.items(step)
        try:
            return self.task.prepare(items)
        except NotFiniteError as error:
            raise self._stopped(step, self.task.fault(items) or str(error)) from error

    def _take_step(self, step: int, batch: object) -> Tensor:
        """Loss, norm of the gradient, and how many processes were asked to end."""
        self.task.model.zero_grad()
        loss = self.task.backward(batch, step).float()
        told = torch.stack((loss, torch.full_like(loss, self.interruption.wished)))
        loss, wished = distributed.add_up(self.weights, told, self.process)
        norm = gradient_norm(self.weights)
        self.watch.note(step, loss, norm)
        if self._is_read(step):
            self._require_finite()
        self._update(step, norm)
        self.standing = replace(self.standing, step=step + 1)
        return torch.stack((loss, norm, wished))

    def _update(self, step: int, norm: Tensor) -> None:
        settings = self.settings.optimizer
        if settings.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(self.weights, settings.clip_norm, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(settings, step, self.plan.total_steps)
        self.optimizer.step()

    def _is_read(self, step: int) -> bool:
        """Whether the numbers of a step are read: on a GPU not always, since that is to wait.

        All processes answer alike. A failure or a Ctrl-C that is seen some steps late is still seen
        before a state is stored.
        """
        done, every = step + 1, self.settings.checkpoint_steps
        return (
            not self.hardware.is_asynchronous
            or done % self.settings.log_steps == 0
            or (every is not None and done % every == 0)
            or self.plan.ends_epoch(done)
        )

    def _look(self, reached: Tensor, validate: Validate | None, reporter: Reporter) -> None:
        """Tell how it goes, validate, store and end, each if it is time to."""
        loss, norm, wished = reached.tolist()
        reporter.tell_step(self.standing.step, loss, norm)
        self.standing = replace(self.standing, loss=loss)
        judged = validate is not None and self._is_validated()
        stored = judged or wished or self._is_over() or self._is_stored(reporter.seconds)
        if stored:
            self._require_finite_weights()
        if validate is not None and judged:
            figures = self._measure(validate)
            reporter.tell_validation(self.standing.step, figures)
            self._judge(figures)
        reporter.note(self.standing.step)
        finished = self._is_over()
        self.standing = replace(self.standing, seconds=reporter.seconds, finished=finished)
        if stored:
            self._store()
        if wished and not finished:
            raise self._interrupted()

    def _is_validated(self) -> bool:
        done, epochs = self.standing.step, self.settings.validate_epochs
        in_turn = done % (epochs * self.plan.steps_per_epoch) == 0
        return in_turn or done == self.plan.total_steps

    def _measure(self, validate: Validate) -> dict[str, float]:
        """The figures; processes other than the first are told only the one that counts."""
        figure = self.settings.figure
        figures = {figure: math.nan}
        if self.process.is_first:
            seed = mixed(self.settings.seed, self.standing.step)
            seed_generators(seed, self.hardware.device)
            measured = self._validated(validate)
            figures = {name: float(value) for name, value in measured.items()}
            _require_figure(figures, figure, self.standing.step)
        value, *_ = distributed.from_first([figures[figure]], self.hardware.device, self.process)
        return {**figures, figure: value}

    def _validated(self, validate: Validate) -> Mapping[str, float]:
        """What the validation says; finite weights may still be too large for it."""
        model = self.task.model.eval()
        try:
            with torch.no_grad():
                measured = validate(model)
        except (NotFiniteError, NotNormalizedError) as error:
            cause = cause_in_size(model) or f"{error}"
            why = f"the validation failed, because {cause}"
            raise self._stopped(self.standing.step - 1, why) from error
        model.train()
        return measured

    def _judge(self, figures: Mapping[str, float]) -> None:
        self.standing = self.standing.judged(figures, self.settings.figure)
        if self.standing.misses == 0:
            self.best = _copied(self.task.model.state_dict())

    def _is_over(self) -> bool:
        patience = self.settings.patience
        hopeless = patience is not None and self.standing.misses >= patience
        return hopeless or self.standing.step == self.plan.total_steps

    def _is_stored(self, seconds: float) -> bool:
        """Whether a checkpoint is due by steps or by time."""
        every = self.settings.checkpoint_steps
        in_turn = every is not None and self.standing.step % every == 0
        return in_turn or seconds - self.stored_at >= self.settings.checkpoint_seconds

    def _store(self) -> None:
        self.stored_at = self.standing.seconds
        if self.process.is_first:
            model, optimizer = self.task.model, self.optimizer
            state = optimizer_state(model, optimizer)
            checkpoint = Checkpoint(self.standing, self.facts, model.state_dict(), state, self.best)
            write_checkpoint(checkpoint, self.folder / CHECKPOINTS)

    def _take_up(self, path: Path) -> None:
        checkpoint = read_checkpoint(path)
        require_same_facts(checkpoint.facts, self.facts, path)
        _require_same_weights(checkpoint.model, self.task.model.state_dict(), path)
        self.task.model.load_state_dict(dict(checkpoint.model))
        load_optimizer_state(self.task.model, self.optimizer, checkpoint.optimizer)
        self.standing, self.best = checkpoint.standing, checkpoint.best
        self.stored_at = self.standing.seconds

    def _require_finite(self) -> None:
        failure = self.watch.failure()
        if failure is not None:
            items = self.plan.items(failure.step)
            cause = likely_cause(self.task, self.hardware, failure, items)
            raise self._stopped(failure.step, f"{failure}; {cause}")

    def _require_finite_weights(self) -> None:
        """A step whose gradient was finite may still have been too long."""
        cause = cause_in_weights(self.task.model)
        if cause is not None:
            raise self._stopped(self.standing.step - 1, cause)

    def _interrupted(self) -> KeyboardInterrupt:
        return KeyboardInterrupt(
            f"{self.task.name} ended after step {self.standing.step}; its state is in "
            f"{self.folder / CHECKPOINTS}, and the same call goes on from there"
        )

    def _stopped(self, step: int, why: str) -> TrainingError:
        stored = checkpoints_in(self.folder / CHECKPOINTS)
        kept = f"the last good state is {stored[-1]}" if stored else "no state was stored before"
        place = f"step {step + 1} of {self.plan.total_steps}"
        return TrainingError(f"{self.task.name} stopped at {place}: {why} ({kept})")


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    """Afterwards the model is on the device and in the mode where it was before."""
    device, training = next(model.parameters()).device, model.training
    try:
        yield
    finally:
        model.to(device).train(training)


def _learning_weights(task: Task) -> list[nn.Parameter]:
    weights = [weight for weight in task.model.parameters() if weight.requires_grad]
    if not weights:
        raise TrainingError(
            f"no weight of the model of {task.name} learns; call .requires_grad_() on those that "
            f"should"
        )
    return weights


def _setting_facts(settings: TrainingSettings, hardware: Hardware) -> dict[str, Any]:
    """What is computed, by the dotted names of the settings."""
    own = {name: value for name, value in asdict(settings).items() if name not in UNBINDING}
    optimizer = own.pop("optimizer")
    nested = {f"optimizer.{name}": value for name, value in optimizer.items()}
    return {**own, **nested, "autocast to bfloat16": hardware.bf16}


def _copied(weights: Tensors) -> dict[str, Tensor]:
    return {name: each.detach().to("cpu", copy=True) for name, each in weights.items()}


def _require_figure(figures: Mapping[str, float], name: str, step: int) -> None:
    if name not in figures:
        raise TrainingError(
            f"validation gave the figures {', '.join(figures) or 'none'} and not {name}; set "
            f"figure to one of them"
        )
    if not math.isfinite(figures[name]):
        raise TrainingError(
            f"{name} of the validation after step {step} is {figures[name]}; it decides which "
            f"weights are best and must be a number"
        )


def _require_same_weights(stored: Tensors, given: Tensors, path: Path) -> None:
    for name in {**stored, **given}:
        there, here = (
            tuple(each[name].shape) if name in each else "missing" for each in (stored, given)
        )
        if there != here:
            raise CheckpointError(
                f"{path} belongs to another model: its weight {name} is {there}, and {here} in "
                f"the model given; continue with the model it was made with, or choose another "
                f"folder"
            )

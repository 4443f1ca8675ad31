"""How a training tells how it goes."""

import time
from collections.abc import Mapping
from pathlib import Path

from adaptiveembed.structure.progress import Progress
from adaptiveembed.training.checkpoints import Standing
from adaptiveembed.training.order import Plan
from adaptiveembed.training.scalars import Scalars
from adaptiveembed.training.settings import TrainingSettings, learning_rate

SHOWN_SECONDS = 0.5
"""Time from one progress to the next, unless a step takes longer or is logged."""


class Reporter:
    """Shows figures to whoever listens, and notes those of every logged step in a folder."""

    def __init__(
        self, settings: TrainingSettings, plan: Plan, progress: Progress, standing: Standing
    ) -> None:
        self._settings, self._plan, self._progress = settings, plan, progress
        self._first, self._before = standing.step, standing.seconds
        self._scalars: Scalars | None = None
        self._to_note: dict[str, float] = {}
        self._start = time.monotonic()
        self._shown, self._shown_step = self._start, standing.step

    def note_in(self, folder: Path) -> "Reporter":
        """Note the figures in this folder too, until the reporter is closed."""
        self._scalars = Scalars(folder, self._first)
        return self

    def close(self) -> None:
        if self._scalars is not None:
            self._scalars.close()

    @property
    def seconds(self) -> float:
        """Time spent on the training, over all starts."""
        return self._before + time.monotonic() - self._start

    def tell_step(self, done: int, loss: float, gradient_norm: float) -> None:
        """Show how it is after so many steps."""
        is_logged = done % self._settings.log_steps == 0 or done == self._plan.total_steps
        if not is_logged and time.monotonic() - self._shown < SHOWN_SECONDS:
            return
        rate = learning_rate(self._settings.optimizer, done - 1, self._plan.total_steps)
        figures = {
            "loss": loss,
            "learning_rate": rate,
            "gradient_norm": gradient_norm,
            "epoch": done / self._plan.steps_per_epoch,
            "items_per_second": self._items_per_second(done),
        }
        if is_logged:
            self._to_note |= figures
        left = self._seconds_left(done)
        self._progress(done, self._plan.total_steps, {**figures, "seconds_left": left})

    def tell_validation(self, done: int, figures: Mapping[str, float]) -> None:
        """Show the figures of a validation."""
        self._to_note |= {f"validation/{name}": value for name, value in figures.items()}
        self._progress(done, self._plan.total_steps, figures)

    def note(self, done: int) -> None:
        """Write down what was told of this step, if it is a logged step or was validated."""
        if self._to_note and self._scalars is not None:
            self._scalars.write(done, self._to_note)
        self._to_note = {}

    def _items_per_second(self, done: int) -> float:
        """The speed since it was asked for last."""
        now = time.monotonic()
        items = self._plan.items_until(done) - self._plan.items_until(self._shown_step)
        speed = items / max(now - self._shown, 1e-9)
        self._shown, self._shown_step = now, done
        return speed

    def _seconds_left(self, done: int) -> float:
        each = (time.monotonic() - self._start) / (done - self._first)
        return each * (self._plan.total_steps - done)

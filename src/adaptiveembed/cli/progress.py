"""Progress as bars on a terminal, and as a line now and then where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from adaptiveembed.structure import progress as told

SECONDS_BETWEEN_LINES = 20.0
Facts = Mapping[str, float | str]


class ShownProgress:
    """Shows parts of the work one under another, while it is open."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[facts]}", table_column=None),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> ShownProgress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def __call__(self, title: str) -> told.Progress:
        """A new part of the work, by its name."""
        if self._console.is_terminal:
            return _Bar(self._bars, self._bars.add_task(title, total=None, facts=""))
        return _Lines(self._console, title)


class _Bar:
    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def __call__(self, done: int, total: int, facts: Facts | None = None) -> None:
        shown = {} if facts is None else {"facts": in_words(facts)}
        self._bars.update(self._task, completed=done, total=total, **shown)  # type: ignore[arg-type]


class _Lines:
    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._last = time.monotonic()
        self._ended = False
        console.print(f"{title} ...", highlight=False)

    def __call__(self, done: int, total: int, facts: Facts | None = None) -> None:
        now = time.monotonic()
        ends = done >= total and not self._ended
        if ends or now - self._last > SECONDS_BETWEEN_LINES:
            self._last, self._ended = now, self._ended or ends
            words = f"{self._title}: {done:,} of {total:,} {in_words(facts or {})}".rstrip()
            self._console.print(words, highlight=False, soft_wrap=True)


def in_words(facts: Facts) -> str:
    """Figures beside a bar, few and short."""
    return "  ".join(f"{_name(name)} {_value(name, value)}" for name, value in facts.items())


def _name(name: str) -> str:
    return {"items_per_second": "items/s", "seconds_left": "left", "learning_rate": "rate"}.get(
        name, name.replace("_", " ")
    )


def _value(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    if name == "seconds_left":
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes}:{seconds:02}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"

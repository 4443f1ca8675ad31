"""Progress as bars on a terminal, and as a line now and then where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from adaptiveembed.structure import progress as told

SECONDS_BETWEEN_LINES = 20.0
INDENT = "  "
Facts = Mapping[str, float | str]


class ShownProgress:
    """Shows parts of the work one under another, while it is open."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bars = _Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._lines: _Lines | None = None

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
        self._end_lines()

    def __call__(self, title: str) -> told.Progress:
        """A new part of the work, by its name."""
        if self._console.is_terminal:
            return _Bar(self._bars, self._bars.begin(title))
        self._end_lines()
        self._lines = _Lines(self._console, title)
        return self._lines

    def _end_lines(self) -> None:
        if self._lines is not None:
            self._lines.end()
            self._lines = None


class _Bars(Progress):
    """A bar for every part, and below them the figures of the one that is under way.

    Beside the bars there is no room for them in eighty columns.
    """

    def begin(self, title: str) -> TaskID:
        """A new part; those before it are over, whether they came to their end or stopped early."""
        for task in self.task_ids:
            self.stop_task(task)
        return self.add_task(title, total=None, figures=())

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks[-1:]:
            if not task.finished:
                lines = folded(task.fields["figures"], self.console.width)
                yield from (Text(line, style="dim", no_wrap=True) for line in lines)


class _Bar:
    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars, self._task = bars, task
        self._facts: dict[str, float | str] = {}

    def __call__(self, done: int, total: int, facts: Facts | None = None) -> None:
        self._facts |= facts or {}
        figures = tuple(in_words(self._facts))
        self._bars.update(self._task, completed=done, total=total, figures=figures)


class _Lines:
    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._last = time.monotonic()
        self._ended = False
        self._latest = ""
        console.print(f"{title} ...", highlight=False)

    def __call__(self, done: int, total: int, facts: Facts | None = None) -> None:
        now = time.monotonic()
        ends = done >= total and not self._ended
        figures = ", ".join(in_words(facts or {}))
        self._latest = f"{done:,} of {total:,}{figures and f' ({figures})'}"
        if ends or now - self._last > SECONDS_BETWEEN_LINES:
            self._last, self._ended = now, self._ended or ends
            self._print(self._latest)

    def end(self) -> None:
        """Say where the part stopped, if that was before its end."""
        if self._latest and not self._ended:
            self._print(f"ended at {self._latest}")

    def _print(self, words: str) -> None:
        self._console.print(f"{self._title}: {words}", highlight=False, soft_wrap=True)


def in_words(facts: Facts) -> Iterator[str]:
    """Every figure with its name, short."""
    return (f"{_name(name)} {_value(name, value)}" for name, value in facts.items())


def folded(figures: Iterable[str], width: int) -> Iterator[str]:
    """The figures in lines of this width, none of them broken in two."""
    line = ""
    for figure in figures:
        if line and len(line) + len(INDENT) + len(figure) > width:
            yield line
            line = ""
        line += f"{INDENT}{figure}"
    if line:
        yield line


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

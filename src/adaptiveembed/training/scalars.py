"""The figures of a training, step by step: as JSON Lines, and as TensorBoard reads them."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

LINES = "scalars.jsonl"
EVENTS = "tensorboard"


class Scalars:
    """Writes the figures of steps into a folder; opened again, it goes on behind a given step.

    What was written for later steps, by a process that ended before its next checkpoint, is taken
    out: no step stands there twice.
    """

    def __init__(self, folder: Path, done: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _keep_until(folder / LINES, done)
        self._lines = (folder / LINES).open("a", encoding="utf-8")
        self._events = SummaryWriter(str(folder / EVENTS), purge_step=done + 1)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Note the figures after so many steps; JSON has no NaN, so it stands there as null."""
        known = {name: value if math.isfinite(value) else None for name, value in figures.items()}
        self._lines.write(json.dumps({"step": step, **known}) + "\n")
        self._lines.flush()
        for name, value in figures.items():
            self._events.add_scalar(name, value, step)

    def close(self) -> None:
        self._lines.close()
        self._events.close()


def read_scalars(folder: Path) -> list[dict[str, Any]]:
    """The figures that were noted in the folder, a step each; a half-written line is left out."""
    path = folder / LINES
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _keep_until(path: Path, done: int) -> None:
    kept = [line for line in read_scalars(path.parent) if line["step"] <= done]
    partial = path.with_name(f".{path.name}")
    partial.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    partial.replace(path)

"""The state of a training as a folder: safetensors and JSON, written whole or not at all.

    checkpoints/
      step-000000120/         the step that was done last
        state.json            how far it is, what it belongs to, a checksum of every file
        model.safetensors
        optimizer.safetensors
        best.safetensors      if there was a validation

The two last checkpoints are kept. Nothing of chance is in them, since every random number of a
training is a function of its seed and its step.
"""

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from adaptiveembed.errors import CheckpointError

FORMAT, VERSION = "adaptiveembed.checkpoint", 1
STATE = "state.json"
KEPT = 2
"""How many checkpoints stay in a folder."""

Tensors = Mapping[str, Tensor]
Facts = Mapping[str, Any]
"""What must be equal for a training to be continued: names with values that JSON has."""


@dataclass(frozen=True)
class Standing:
    """How far a training has come."""

    step: int = 0
    """Steps done."""
    seconds: float = 0.0
    """Time spent, over all starts."""
    loss: float = math.nan
    """The loss of the last step that was looked at; none before the first."""
    best_step: int | None = None
    """Steps done at the best validation."""
    best: Mapping[str, float] = field(default_factory=dict)
    """Its figures."""
    misses: int = 0
    """Validations since the best one."""
    finished: bool = False

    def judged(self, figures: Mapping[str, float], figure: str) -> "Standing":
        """The standing after a validation, which is the best one if ``figure`` is higher than ever.

        An equal figure is no improvement: of equal weights the earlier ones are kept.
        """
        if self.best_step is not None and figures[figure] <= self.best[figure]:
            return replace(self, misses=self.misses + 1)
        return replace(self, best_step=self.step, best=dict(figures), misses=0)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that is needed to go on as if nothing had happened."""

    standing: Standing
    facts: Facts
    model: Tensors
    optimizer: Tensors
    best: Tensors = field(default_factory=dict)
    """The weights of the best validation; none before the first one."""


def write_checkpoint(checkpoint: Checkpoint, folder: Path) -> Path:
    """Add a checkpoint to the folder, and remove all but the last ones."""
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(folder)
    partial = Path(tempfile.mkdtemp(prefix=".step-", dir=folder))
    try:
        _write_files(checkpoint, partial)
        place = _place(folder, checkpoint.standing.step)
        _put(partial, place)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    for outdated in checkpoints_in(folder)[:-KEPT]:
        shutil.rmtree(outdated)
    return place


def checkpoints_in(folder: Path) -> list[Path]:
    """All checkpoints of the folder, the last one last."""
    return sorted(folder.glob("step-*"))


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint, every byte of it compared with its checksum."""
    state = _read_state(path)
    try:
        tensors = {
            name: _read_tensors(path / f"{name}.safetensors", checksum)
            for name, checksum in state["checksums"].items()
        }
        return Checkpoint(Standing(**state["standing"]), state["facts"], **tensors)
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(path / STATE, f"its content is not that of a checkpoint: {error}") from error


def require_same_facts(stored: Facts, given: Facts, path: Path) -> None:
    """Refuse a checkpoint of a training with other settings, data or model."""
    given = json.loads(json.dumps(dict(given)))  # as it would have been stored
    names = [name for name in {**stored, **given} if stored.get(name) != given.get(name)]
    if not names:
        return
    shown = [f"{n} was {_shown(stored, n)} and is {_shown(given, n)}" for n in names[:3]]
    more = f", and {len(names) - 3} more" if len(names) > 3 else ""
    raise CheckpointError(
        f"{path} belongs to another training: {'; '.join(shown)}{more}. Continue with what it was "
        f"made with, or choose another folder"
    )


def _write_files(checkpoint: Checkpoint, folder: Path) -> None:
    checksums = {}
    for name, tensors in _tensors(checkpoint):
        path = folder / f"{name}.safetensors"
        _save({key: each.detach().cpu().contiguous() for key, each in tensors.items()}, path)
        checksums[name] = _checksum(path.read_bytes())
        _settle(path)
    state = {
        "format": FORMAT,
        "version": VERSION,
        "standing": asdict(checkpoint.standing),
        "facts": dict(checkpoint.facts),
        "checksums": checksums,
    }
    (folder / STATE).write_text(_sealed(state), encoding="utf-8")
    _settle(folder / STATE)
    folder.chmod(0o755)
    _settle(folder)


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # a full disk, or a folder that somebody took away
        raise CheckpointError(
            f"{path} cannot be written ({error}); make room, see that no other training writes to "
            f"{path.parent.parent}, and go on from the last checkpoint"
        ) from error


def _tensors(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensors]]:
    yield "model", checkpoint.model
    yield "optimizer", checkpoint.optimizer
    if checkpoint.best:
        yield "best", checkpoint.best


def _put(partial: Path, place: Path) -> None:
    """Put the folder at its place, on disk too when this returns."""
    if place.exists():
        # of the same step, and so of the same content
        shutil.rmtree(partial)
        return
    partial.rename(place)
    _settle(place.parent)


def _remove_unfinished(folder: Path) -> None:
    for partial in folder.glob(".step-*"):
        shutil.rmtree(partial, ignore_errors=True)


def _settle(path: Path) -> None:
    """Have the system write to disk what it still holds of a file or folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_state(path: Path) -> dict[str, Any]:
    file = path / STATE
    try:
        text = file.read_text(encoding="utf-8")
        state = json.loads(text)["state"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(file, f"it cannot be read: {error}") from error
    if not isinstance(state, dict) or text != _sealed(state):
        raise _damaged(file, "its checksum is another")
    if (state.get("format"), state.get("version")) != (FORMAT, VERSION):
        raise CheckpointError(
            f"{path} is a checkpoint of version {state.get('version')} and this library reads "
            f"version {VERSION}; continue with the library that made it, or choose another folder"
        )
    return state


def _read_tensors(path: Path, checksum: str) -> dict[str, Tensor]:
    try:
        if _checksum(path.read_bytes()) != checksum:
            raise _damaged(path, "its checksum is another")
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise _damaged(path, f"it cannot be read: {error}") from error


def _damaged(path: Path, what: str) -> CheckpointError:
    broken = path.parent
    others = [each.name for each in checkpoints_in(broken.parent) if each != broken]
    remedy = f"to continue from {others[-1]}" if others else "to begin again"
    return CheckpointError(f"{path} is damaged ({what}); remove {broken} {remedy}")


def _checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _sealed(state: Mapping[str, Any]) -> str:
    """The text of the state with its own checksum."""
    checksum = _checksum(json.dumps(state).encode())
    return json.dumps({"state": state, "checksum": checksum}, indent=2) + "\n"


def _shown(facts: Facts, name: str) -> str:
    return repr(facts[name]) if name in facts else "not set"


def _place(folder: Path, step: int) -> Path:
    return folder / f"step-{step:09d}"

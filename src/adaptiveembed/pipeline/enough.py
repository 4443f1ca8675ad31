"""Whether the pairs are enough for a recipe, asked before anything is written or trained."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from adaptiveembed.allocation.bank import BankSampling
from adaptiveembed.allocation.policy import PolicySharing
from adaptiveembed.errors import TrainingError
from adaptiveembed.pipeline.paired import TRAIN
from adaptiveembed.pipeline.recipe import Method, Recipe
from adaptiveembed.pipeline.rows import TrainingRows
from adaptiveembed.training.settings import LastBatch, TrainingSettings


@dataclass(frozen=True)
class Shortage:
    """A setting that asks for more than there is."""

    what: str
    setting: str
    most: int
    """The largest value that there are pairs enough for."""


def require_enough(rows: TrainingRows, recipe: Recipe) -> None:
    """Refuse a recipe that asks for more pairs than there are, with all that is to be changed."""
    found = list(shortages(rows, recipe))
    if found:
        changes = " ".join(f"--set {one.setting}={one.most}" for one in found)
        raise TrainingError(
            f"the recipe {recipe.name} asks for more pairs than there are: "
            f"{', and '.join(one.what for one in found)}; give more pairs of split {TRAIN!r}, or "
            f"smaller settings: {changes}"
        )


def shortages(rows: TrainingRows, recipe: Recipe) -> Iterator[Shortage]:
    """Every setting that asks for more than the rows give."""
    yield from _batches(recipe.representation.training, "representation", _learned(rows, recipe))
    if recipe.method is Method.ADAPTIVE:
        directions = 2 if recipe.allocation.policy.sharing is PolicySharing.SHARED else 1
        yield from _batches(recipe.allocation.training, "allocation", directions * len(rows.policy))
        yield from _feedback(rows, recipe)


def _batches(settings: TrainingSettings, stage: str, items: int) -> Iterator[Shortage]:
    if settings.last_batch is LastBatch.DROP and items < settings.batch_size:
        name = f"{stage}.training.batch_size"
        yield Shortage(f"{name} is {settings.batch_size}, of {items}", name, items)


def _feedback(rows: TrainingRows, recipe: Recipe) -> Iterator[Shortage]:
    settings, held = recipe.allocation, _learned(rows, recipe)
    if settings.bank.sampling is not BankSampling.ALL:
        held = min(held, settings.bank.size)
    partners = not _folds(recipe) and np.isin(rows.policy, rows.representation).any()
    usable = held - int(settings.feedback.leave_partner_out and partners)
    if settings.feedback.depth > usable:
        name = "allocation.feedback.depth"
        what = f"{name} is {settings.feedback.depth}, of {usable} items of the bank"
        yield Shortage(what, name, max(1, usable))


def _learned(rows: TrainingRows, recipe: Recipe) -> int:
    """From how many pairs the smallest training of Stage I learns."""
    pairs, folds = len(rows.representation), _folds(recipe)
    return pairs - ceil(pairs / folds) if folds else pairs


def _folds(recipe: Recipe) -> int:
    """How many trainings leave a fold out."""
    folds = recipe.splits.folds
    return folds if folds > 1 and recipe.method is Method.ADAPTIVE else 0

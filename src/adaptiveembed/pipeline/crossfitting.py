"""Cross-fitting: every pair teaches the policy by an embedder that never saw it (R13).

What Stage I saw, it may know by heart, and then no expansion gains anything. So there is an
embedder for every fold, made of the other folds, in whose space the fold's pairs are ranked; what
is learned of all of them is used with the embedder of everything. The policy has to bear that
change of space: an ``InvariantPolicy`` does.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from adaptiveembed.pipeline.allocating import EmbeddedPairs, Lessons, direction_lessons, made_bank
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.recipe import Recipe
from adaptiveembed.pipeline.rows import TrainingRows, fold_rows
from adaptiveembed.structure.direction import Direction

Represent = Callable[[TrainingRows, Path, str], EmbeddedPairs]
"""Stage I on some rows, in a folder, announced as this; all pairs as it embeds them."""


def crossfitted_lessons(
    data: JointPairs, rows: TrainingRows, recipe: Recipe, folder: Path, represent: Represent
) -> Mapping[Direction, Lessons]:
    """What all rows of Stage I teach, each fold by an embedder of the others."""
    folds = fold_rows(data.pairs, rows, recipe.splits)
    parts = []
    for number, one in enumerate(folds, start=1):
        what = f"Stage I: without fold {number} of {len(folds)}"
        parts.append(_lessons(represent(one, folder / f"fold-{number}", what), one, recipe))
    return {
        direction: Lessons.concatenate([part[direction] for part in parts])
        for direction in parts[0]
    }


def _lessons(
    embedded: EmbeddedPairs, rows: TrainingRows, recipe: Recipe
) -> dict[Direction, Lessons]:
    found = {}
    for direction in embedded.directions:
        bank = made_bank(embedded, direction, rows, recipe.allocation)
        found[direction] = direction_lessons(embedded, direction, rows, recipe, bank)
    return found

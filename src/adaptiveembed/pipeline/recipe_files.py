"""Recipes by name or path: TOML that may build on another recipe by ``base = "name"``."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from adaptiveembed.errors import SettingError
from adaptiveembed.pipeline.recipe import Recipe
from adaptiveembed.pipeline.settings import (
    Table,
    merged,
    read_settings,
    read_toml,
    with_assignments,
)

BASE = "base"
ENDING = ".toml"


def read_recipe(name: str, assignments: Sequence[str] = ()) -> Recipe:
    """The recipe of this name or in this file, changed by texts such as ``embedder.dim=128``."""
    return read_settings(Recipe, with_assignments(recipe_table(name), assignments))


def recipe_table(name: str, above: tuple[str, ...] = ()) -> Table:
    """The table of a recipe, with that of its base under it."""
    if name in above:
        raise SettingError(f"the recipes {' → '.join((*above, name))} build on each other in turn")
    path = recipe_path(name, above)
    table = read_toml(path)
    base = table.pop(BASE, None)
    if base is None:
        return table
    if not isinstance(base, str):
        raise SettingError(f"base is {base!r} in {path}; give the name of a recipe in quotes")
    return merged(recipe_table(base, (*above, name)), table)


def recipe_path(name: str, above: tuple[str, ...] = ()) -> Path:
    """The file of a recipe: a path ends in .toml, a name is one of the built-in ones."""
    if name.endswith(ENDING):
        # the base of a file is looked for beside it
        folder = Path(above[-1]).parent if above and above[-1].endswith(ENDING) else Path()
        beside = folder / name
        return beside if beside.exists() else Path(name)
    known = built_in_recipes()
    if name not in known:
        guess = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {guess[0]}? " if guess else ""
        raise SettingError(
            f"there is no recipe {name!r}; {meant}built in are {', '.join(known)}, and a file ends "
            f"in {ENDING}"
        )
    return _folder() / f"{name}{ENDING}"


def built_in_recipes() -> tuple[str, ...]:
    """The names of the recipes that come with the library."""
    return tuple(sorted(path.stem for path in _folder().glob(f"*{ENDING}")))


def _folder() -> Path:
    return Path(str(resources.files("adaptiveembed.pipeline"))) / "recipes"

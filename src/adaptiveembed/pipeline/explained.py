"""A recipe written out with what every setting means, from the docstrings under the fields."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

from adaptiveembed.pipeline.recipe import Recipe
from adaptiveembed.pipeline.settings import to_table, to_toml


def explained_recipe(recipe: Recipe) -> str:
    """The recipe as TOML, an explanation above every setting."""
    return to_toml(to_table(recipe), explanations(recipe))


def explanations(settings: Any, path: str = "") -> dict[str, str]:  # noqa: ANN401 - any dataclass
    """What is said of every setting, by its dotted path."""
    said = field_notes(type(settings))
    found: dict[str, str] = {}
    for field in fields(settings):
        name = f"{path}.{field.name}" if path else field.name
        value = getattr(settings, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            found |= explanations(value, name)
        elif field.name in said:
            found[name] = said[field.name]
    return found


def field_notes(kind: type) -> dict[str, str]:
    """The texts under the fields of a dataclass and of those that it is made from."""
    notes: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
        body = tree.body[0].body  # type: ignore[attr-defined]
        for field, note in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(note, ast.Expr)
                and isinstance(note.value, ast.Constant)
            ):
                words = " ".join(str(note.value.value).split())
                notes[field.target.id] = "\n".join(textwrap.wrap(words, 76))
    return notes

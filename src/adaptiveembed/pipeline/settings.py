"""Settings as text: dataclasses read from the tables of TOML, checked key by key, and written back.

A settings class is a frozen dataclass whose fields are numbers, texts, switches, enums, tuples of
these, or further settings. Nothing has to be registered: names, kinds and defaults are those of
the fields.
"""

import difflib
import json
import tomllib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from adaptiveembed.errors import AdaptiveEmbedError, SettingError

Settings = TypeVar("Settings")
Table = dict[str, Any]
"""What TOML calls a table: keys with values, some of which are tables."""

NOTHING = "none"
"""How a setting that is left open is written, since TOML has no word for it."""


def read_settings(kind: type[Settings], table: Mapping[str, object], path: str = "") -> Settings:
    """The settings of a table; keys that are not given keep their defaults."""
    known = {field.name: field for field in _fields(kind)}
    for key in table:
        if key not in known:
            raise SettingError(_unknown_key(_join(path, key), key, list(known)))
    hints = typing.get_type_hints(kind)
    values = {key: _read(hints[key], value, _join(path, key)) for key, value in table.items()}
    _require_all_given(values, known.values(), path)
    try:
        return kind(**values)
    except AdaptiveEmbedError as error:
        raise SettingError(f"{path or 'the recipe'}: {error}") from error


def to_table(settings: object) -> Table:
    """The settings as a table that ``read_settings`` reads as equal settings."""
    return {field.name: _plain(getattr(settings, field.name)) for field in _fields(type(settings))}


def read_toml(path: Path) -> Table:
    """The table of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingError(f"there is no file {path}; correct the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is not TOML: {error}") from error


def to_toml(table: Mapping[str, Any], notes: Mapping[str, str] | None = None) -> str:
    """The table as TOML, with a comment above every key that ``notes`` explains by its path."""
    return "\n".join(_toml_lines(table, "", notes or {})).strip() + "\n"


def with_assignments(table: Mapping[str, object], assignments: Sequence[str]) -> Table:
    """A copy of the table changed by texts such as ``"embedder.dim=128"``."""
    changed = merged(table, {})
    for assignment in assignments:
        changed = merged(changed, _parsed_assignment(assignment))
    return changed


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> Table:
    """The table with the values of ``changes``, tables within them merged likewise."""
    result = dict(table)
    for key, value in changes.items():
        below = result.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merged(below, value) if both else value  # type: ignore[arg-type]
    return result


def leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no table, with its dotted path."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, _join(path, key))
        else:
            yield _join(path, key), value


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The paths at which two tables differ."""
    mine, theirs = dict(leaves(one)), dict(leaves(other))
    absent = object()
    paths = dict.fromkeys((*mine, *theirs))
    return [path for path in paths if mine.get(path, absent) != theirs.get(path, absent)]


def _read(kind: Any, value: object, path: str) -> object:  # noqa: ANN401 - types of any kind
    """The value as the kind of its field asks for it."""
    origin = typing.get_origin(kind)
    if origin in {types.UnionType, typing.Union}:
        return _read_optional(typing.get_args(kind), value, path)
    if origin is tuple:
        return _read_tuple(typing.get_args(kind)[0], value, path)
    if isinstance(kind, type) and is_dataclass(kind):
        return _read_table(kind, value, path)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _read_choice(kind, value, path)
    return _read_plain(kind, value, path)


def _read_optional(kinds: tuple[Any, ...], value: object, path: str) -> object:
    if value == NOTHING or value is None:
        return None
    return _read(next(kind for kind in kinds if kind is not type(None)), value, path)


def _read_tuple(kind: Any, value: object, path: str) -> tuple[object, ...]:  # noqa: ANN401
    if not isinstance(value, list | tuple):
        raise SettingError(f"{path} is {_shown(value)}; give a list in brackets")
    return tuple(_read(kind, one, f"{path}[{place}]") for place, one in enumerate(value))


def _read_table(kind: type, value: object, path: str) -> object:
    if is_dataclass(value) and isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        names = ", ".join(field.name for field in _fields(kind))
        raise SettingError(f"{path} is {_shown(value)}; it is a table [{path}] with keys {names}")
    return read_settings(kind, value, path)


def _read_choice(kind: type[Enum], value: object, path: str) -> Enum:
    for choice in kind:
        if value in (choice, choice.value):
            return choice
    allowed = [f"{choice.value}" for choice in kind]
    guess = difflib.get_close_matches(f"{value}", allowed, n=1)
    meant = f"did you mean {guess[0]}? " if guess else ""
    raise SettingError(f"{path} is {_shown(value)}; {meant}choose one of {', '.join(allowed)}")


_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}


def _read_plain(kind: Any, value: object, path: str) -> object:  # noqa: ANN401
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # a bool is an int to Python, and not to anyone who writes a recipe
    if kind in _NAMES and type(value) is kind:
        return value
    if kind not in _NAMES:
        raise SettingError(f"{path} cannot be set in a recipe")
    raise SettingError(f"{path} is {_shown(value)}; give {_NAMES[kind]}")


def _require_all_given(
    values: Mapping[str, object], known: Iterable[Field[Any]], path: str
) -> None:
    for field in known:
        open_ = field.default is MISSING and field.default_factory is MISSING
        if open_ and field.name not in values:
            raise SettingError(f"{_join(path, field.name)} is missing; add it to the recipe")


def _unknown_key(path: str, key: str, known: list[str]) -> str:
    guess = difflib.get_close_matches(key, known, n=1)
    meant = f"did you mean {guess[0]}? " if guess else ""
    return f"there is no setting {path}; {meant}the keys there are {', '.join(known)}"


def _parsed_assignment(assignment: str) -> Table:
    key, equals, text = assignment.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise SettingError(
            f"{assignment!r} sets nothing; write key=value, for example embedder.dim=128"
        )
    value: Any = _parsed_value(text.strip())
    for part in reversed(parts):
        value = {part: value}
    return typing.cast("Table", value)


def _parsed_value(text: str) -> object:
    """The value as TOML reads it; what TOML cannot read is a text without its quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


def _plain(value: object) -> object:
    if value is None:
        return NOTHING
    if is_dataclass(value):
        return to_table(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value


def _toml_lines(table: Mapping[str, Any], path: str, notes: Mapping[str, str]) -> Iterator[str]:
    below = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    for key, value in table.items():
        if key not in below:
            yield from (f"# {line}" for line in notes.get(_join(path, key), "").splitlines())
            yield f"{key} = {_toml_value(value)}"
    for key, value in below.items():
        yield from ("", f"[{_join(path, key)}]")
        yield from _toml_lines(value, _join(path, key), notes)


def _toml_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, Mapping):  # a table within a list
        return f"{{ {', '.join(f'{key} = {_toml_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, float):
        return repr(value)
    # strings of JSON are strings of TOML, and so are switches and whole numbers
    return json.dumps(value, ensure_ascii=False)


def _fields(kind: type) -> tuple[Field[Any], ...]:
    return tuple(field for field in fields(kind) if field.init)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _shown(value: object) -> str:
    return repr(value) if not isinstance(value, Mapping) else "a table"

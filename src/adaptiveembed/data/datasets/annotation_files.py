"""Annotation files found, read, and complained about: all that is wrong with one in one error."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adaptiveembed.data.manifest_rows import Problem
from adaptiveembed.errors import ManifestError

SHOWN = 20
"""Problems of a file that are listed; of the others, only their number is told."""

Values = Mapping[str, Any]


@dataclass
class Complaints:
    """What is wrong with one file: the first problems, and the number of all."""

    path: Path
    word: str = "line"
    """What its parts are called."""
    remedy: str = "take the publisher's file again"
    shown: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, number: int, what: str) -> None:
        """Note what is wrong with a part of the file, or with all of it if the number is 0."""
        self.count += 1
        if len(self.shown) < SHOWN:
            self.shown.append(Problem(number, what))

    @contextmanager
    def about(self, number: int) -> Iterator[None]:
        """Take a ``ManifestError`` of the block for what is wrong with a part, and go on."""
        try:
            yield
        except ManifestError as error:
            self.add(number, str(error))

    def raise_any(self) -> None:
        """Refuse the file if anything was wrong with it."""
        if self.count:
            raise self.error()

    def error(self) -> ManifestError:
        """All that is wrong, in words."""
        lines = [
            f"{f'{self.word} {number:,}: ' if number else ''}{what}"
            for number, what in sorted(self.shown)
        ]
        if self.count > len(lines):
            lines.append(f"… and {self.count - len(lines):,} more")
        told = "a problem" if self.count == 1 else f"{self.count:,} problems"
        return ManifestError("\n  ".join((f"{self.path} has {told}; {self.remedy}:", *lines)))


def found_files(folder: Path, alternatives: Sequence[Sequence[str]]) -> tuple[Path, ...]:
    """The files of the first alternative that is there as a whole."""
    for names in alternatives:
        paths = tuple(folder / name for name in names)
        if all(path.is_file() for path in paths):
            return paths
    missing = (_missing(folder, names) for names in alternatives)
    raise ManifestError(
        f"{folder} lacks annotation files; put there {', or else '.join(missing)}, under the "
        f"names that their publisher gave them"
    )


def _missing(folder: Path, names: Sequence[str]) -> str:
    return ", ".join(name for name in names if not (folder / name).is_file())


def read_json(path: Path) -> object:
    """The value that a file of JSON holds."""
    try:
        return json.loads(
            path.read_bytes(), parse_constant=_refuse_constant, object_pairs_hook=_distinct
        )
    except UnicodeDecodeError as error:
        raise _refused(path, f"byte {error.start + 1:,} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"it is not JSON: {error}") from None


def _refused(path: Path, what: str) -> ManifestError:
    complaints = Complaints(path)
    complaints.add(0, what)
    return complaints.error()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"JSON has no {name}")


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, times in counted.items() if times > 1)
        raise ValueError(f"key {twice!r} stands more than once in one object")
    return values


def checked_values(values: object, kinds: Mapping[str, "Kind"]) -> Values:
    """The values, each of its kind, or a ``ManifestError`` that names the first that is not."""
    if not isinstance(values, dict):
        raise ManifestError(
            f"it is {_short(values)}, and an object with {', '.join(kinds)} is needed"
        )
    for name, kind in kinds.items():
        if name not in values:
            raise ManifestError(f"{name} is missing")
        if not kind.holds(values[name]):
            raise ManifestError(f"{name} is {_short(values[name])}, and {kind.words} is needed")
    return values


def require_first(known: dict[str, int], name: str, number: int) -> None:
    """Note where a name stands; a ``ManifestError`` if it stood somewhere already."""
    first = known.setdefault(name, number)
    if first != number:
        raise ManifestError(f"{name!r} stands in line {first:,} already")


@dataclass(frozen=True)
class Kind:
    """What a value must be."""

    words: str
    holds: Callable[[Any], bool]


def is_file_name(value: object) -> bool:
    """Whether it can name a file in a folder, and nothing outside it."""
    if not isinstance(value, str) or not _is_unicode(value):
        return False
    return bool(value.strip(". ")) and not set(value) & {"/", "\0"}


def is_number(value: object) -> bool:
    """Whether it is a number; what is true or false is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and _is_unicode(value)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can spell
        return False
    return True


def _is_span(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


TEXT = Kind("a text in Unicode", _is_text)
FILE_NAME = Kind("the name of a file", is_file_name)
NUMBER = Kind("a number", is_number)
TEXTS = Kind("a list of texts in Unicode", _is_list_of(_is_text))
SPANS = Kind("a list of pairs of numbers", _is_list_of(_is_span))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"

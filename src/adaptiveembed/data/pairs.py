"""Pairs of a text and a medium, and the manifests that list them.

A manifest is a file of JSON Lines, CSV or Parquet with the columns ``id``, ``text``, ``media`` (a
path, relative to the folder of the manifest) and, if wanted, ``split``; every other column is
metadata.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np

from adaptiveembed.data.manifest_rows import Problem, Rows, Values, read_rows
from adaptiveembed.errors import ManifestError
from adaptiveembed.structure.ids import distinct_ids

SHOWN = 20
"""Problems of a file that are listed; of the others, only their number is told."""

COLUMNS = ("id", "text", "media", "split")
"""What is not metadata."""


class Side(StrEnum):
    """The two sides of a pair."""

    TEXT = "text"
    MEDIA = "media"


@dataclass(frozen=True, slots=True)
class Pair:
    """One item: a text, the medium it belongs to, or both."""

    id: str
    text: str | None = None
    media: Path | None = None
    split: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """Pairs with an id each, in order."""

    pairs: tuple[Pair, ...]
    path: Path | None = None
    """The file they were read from."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))
        distinct_ids((pair.id for pair in self.pairs), meaning="pairs")

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __getitem__(self, place: int) -> Pair:
        return self.pairs[place]

    def __repr__(self) -> str:
        source = f" of {self.path}" if self.path else ""
        return f"Manifest({len(self)} pairs{source})"

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(pair.id for pair in self.pairs)

    @property
    def texts(self) -> tuple[str | None, ...]:
        return tuple(pair.text for pair in self.pairs)

    @property
    def media(self) -> tuple[Path | None, ...]:
        return tuple(pair.media for pair in self.pairs)

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in the order in which they appear."""
        return tuple(dict.fromkeys(pair.split for pair in self.pairs if pair.split is not None))

    def split(self, name: str) -> "Manifest":
        """The pairs of one split."""
        chosen = tuple(pair for pair in self.pairs if pair.split == name)
        if not chosen:
            named = (
                f"its splits are {', '.join(self.splits)}" if self.splits else "it has no splits"
            )
            raise ManifestError(f"{self!r} has no split {name!r}; {named}")
        return Manifest(chosen, self.path)

    def take(self, places: Sequence[int] | np.ndarray) -> "Manifest":
        """The pairs at these places, in this order."""
        return Manifest(tuple(self.pairs[place] for place in places), self.path)

    def has_identical_texts(self) -> bool:
        """Whether all of several pairs have one and the same text; nothing can be learnt then."""
        return len(self) > 1 and len(set(self.texts)) == 1


def read_manifest(path: str | Path, needed: frozenset[Side] | None = frozenset(Side)) -> Manifest:
    """The pairs of a file, each with the needed sides; or every problem of the file in one error.

    Whether the media are there is not looked at: ``missing_media`` does.

    Args:
        path: The file.
        needed: What every pair must have. Of an empty set each has one side or both; of None an id
            is enough, for pairs whose features were made elsewhere.
    """
    path = Path(path)
    rows = read_rows(path)
    sides = needed or frozenset()
    absent = _absent_columns(rows, sides)
    rows.problems += (Problem(0, what) for what in absent.values())
    _note_repeated_ids(rows)
    for number, values in rows.rows:
        rows.problems += (Problem(number, what) for what in _problems(values, sides, absent))
        if needed is not None and not sides and not absent and not _has_a_side(values):
            rows.complain(number, "text and media are missing; give at least one of them")
    if not rows.rows and not rows.problems:
        rows.complain(0, "it holds no pairs; add at least one")
    if rows.problems:
        raise ManifestError(_listed(path, rows))
    return Manifest(tuple(_pair(values, path.parent) for _, values in rows.rows), path)


def missing_media(manifest: Manifest) -> tuple[Pair, ...]:
    """The pairs whose medium is not a file; ``media`` of each says where it was looked for."""
    return tuple(pair for pair in manifest if pair.media is not None and not pair.media.is_file())


def _pair(values: Values, folder: Path) -> Pair:
    text, media, split = (_optional(values, name) for name in ("text", "media", "split"))
    return Pair(
        id=str(values["id"]),
        text=text,
        media=None if media is None else folder / media,
        split=split,
        metadata={name: value for name, value in values.items() if name not in COLUMNS},
    )


def _optional(values: Values, name: str) -> str | None:
    return None if values.get(name) is None else str(values[name])


def _problems(values: Values, needed: frozenset[Side], absent: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with one row; a column that no row has is told once for the file."""
    for name in COLUMNS:
        if name in values:
            yield from _value_problems(name, values[name])
        elif name not in absent and (name == "id" or name in needed):
            yield f"{name} is missing{_meant(name, values)}"


def _has_a_side(values: Values) -> bool:
    return any(side in values for side in Side)


def _value_problems(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{name} is {value!r:.60}, which is not a text; write it in quotes"
    elif not value.strip():
        yield f"{name} is empty"
    elif not _is_unicode(value):
        yield f"{name} is {value!r:.60}, which is not valid Unicode"
    elif name == "media" and ("://" in value or "\0" in value):
        yield f"media is {value!r:.60}, which is not a path; download it and give its path"


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _note_repeated_ids(rows: Rows) -> None:
    first: dict[object, int] = {}
    for number, values in rows.rows:
        item_id = values.get("id")
        if isinstance(item_id, str) and item_id in first:
            rows.complain(number, f"id {item_id!r} stands in {rows.word} {first[item_id]} already")
        elif isinstance(item_id, str):
            first[item_id] = number


def _absent_columns(rows: Rows, needed: frozenset[Side]) -> dict[str, str]:
    """What to say of each needed column that no row has."""
    columns = rows.columns
    wanted = [name for name in COLUMNS if name == "id" or name in needed]
    return {
        name: f"there is no column {name}{_meant(name, columns)}; its columns are "
        f"{', '.join(columns)}"
        for name in wanted
        if columns and name not in columns
    }


_OTHER_NAMES = {
    "id": ("key", "uid", "name", "index", "number"),
    "text": ("caption", "title", "description", "sentence", "narrative", "query"),
    "media": ("image", "video", "audio", "picture", "path", "file", "file_name", "filename", "url"),
    "split": ("subset", "set", "fold"),
}


def _meant(name: str, columns: Sequence[str] | Values) -> str:
    """A question after the column that may hold what ``name`` should, if there is one."""
    others = {column.lower(): column for column in columns if column not in COLUMNS}
    likely = [other for other in _OTHER_NAMES[name] if other in others]
    likely += difflib.get_close_matches(name, others, n=1)
    return f"; did you mean {others[likely[0]]}? rename it to {name}" if likely else ""


def _listed(path: Path, rows: Rows) -> str:
    """All problems of a file as one message."""
    problems = sorted(rows.problems)
    lines = [
        f"{f'{rows.word} {number:,}: ' if number else ''}{what}"
        for number, what in problems[:SHOWN]
    ]
    if len(problems) > SHOWN:
        lines.append(f"… and {len(problems) - SHOWN:,} more")
    one = len(problems) == 1
    told = "a problem; correct it" if one else f"{len(problems):,} problems; correct them"
    return "\n  ".join((f"{path} has {told} and try again:", *lines))

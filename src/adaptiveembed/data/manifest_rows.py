"""Rows of a manifest as its file has them, with the number of each and what is wrong with the file.

Nothing is raised for a wrong line: it becomes a problem, and reading goes on to the next.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from adaptiveembed.errors import ManifestError

Values = Mapping[str, object]


class Problem(NamedTuple):
    """Something wrong in one line of a file, or in all of it if the number is 0."""

    number: int
    what: str


@dataclass
class Rows:
    """What a file holds, row by row; a value that is null or an empty cell is left out."""

    word: str
    """What a row is called: a line of a text, or a row of a table."""
    rows: list[tuple[int, Values]] = field(default_factory=list)
    """The values of each row by column, behind its number."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """Every column that any row has, in the order in which they appear."""
        return list(dict.fromkeys(name for _, values in self.rows for name in values))

    def add(self, number: int, values: Values) -> None:
        """Take the row's values that say something."""
        self.rows.append((number, {name: one for name, one in values.items() if one is not None}))

    def complain(self, number: int, what: str) -> None:
        """Note what is wrong with a row."""
        self.problems.append(Problem(number, what))


def read_rows(path: Path) -> Rows:
    """The rows of a file in one of the formats of ``READERS``, told by how its name ends."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ManifestError(
            f"{path} ends in {path.suffix or 'nothing'}; a manifest is JSON Lines (.jsonl), .csv "
            f"or .parquet"
        )
    try:
        return reader(path)
    except FileNotFoundError:
        raise ManifestError(f"there is no file {path}; correct the path") from None
    except OSError as error:
        raise ManifestError(f"{path} cannot be read ({error.strerror or error})") from error


def _read_json_lines(path: Path) -> Rows:
    found = Rows("line")
    for number, whole_line in _text_lines(path, found):
        line = whole_line.strip()
        if not line:
            found.complain(number, "it is blank; remove it")
            continue
        try:
            values = _JSON.decode(line)
        except (ValueError, RecursionError) as error:
            found.complain(number, f"it is not JSON: {error}")
            continue
        if isinstance(values, dict):
            found.add(number, values)
        else:
            found.complain(
                number,
                f'it holds no object; write {{"id": …, "text": …}}, not {line!r:.40}',
            )
    return found


def _read_csv(path: Path) -> Rows:
    found = Rows("line")
    records = _records([line for _, line in _text_lines(path, found)], found)
    header = _read_header(records, found)
    if not header:
        return found
    for number, fields in records:
        if not fields:
            found.complain(number, "it is blank; remove it")
        elif len(fields) != len(header):
            found.complain(
                number,
                f"it has {len(fields)} fields and the header has {len(header)}; put fields that "
                f"hold commas in quotes",
            )
        else:
            found.add(number, {n: one or None for n, one in zip(header, fields, strict=True)})
    return found


def _read_parquet(path: Path) -> Rows:
    found = Rows("row")
    try:
        with pq.ParquetFile(path) as file:
            values = (row for batch in file.iter_batches() for row in batch.to_pylist())
            for number, row in enumerate(values, 1):
                found.add(number, row)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        found.complain(0, f"it is not a Parquet file that can be read: {error}")
    return found


READERS: Mapping[str, Callable[[Path], Rows]] = {
    ".jsonl": _read_json_lines,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}


def _text_lines(path: Path, found: Rows) -> Iterator[tuple[int, str]]:
    """Each line with its number and its end; bytes that are no text are replaced, and told."""
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")  # what some programs write first
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            found.complain(number, f"byte {error.start + 1} is not UTF-8; save the file as UTF-8")
            yield number, line.decode(errors="replace")


def _read_header(records: Iterator[tuple[int, list[str]]], found: Rows) -> list[str]:
    """The names of the columns; none where there is no saying what they are."""
    number, header = next(records, (1, []))
    if number > 1 or (not header and found.problems):  # the first line could not be read
        return []
    if not header:
        found.complain(1, "there is no header; name the columns in the first line")
    elif len(header) == 1 and ";" in header[0]:
        found.complain(1, "its columns are separated by semicolons; separate them by commas")
        return []
    for name in dict.fromkeys(header):
        if not name.strip():
            found.complain(1, "a column has no name; name it or remove it")
        elif header.count(name) > 1:
            found.complain(1, f"column {name!r} stands there {header.count(name)} times")
    return header


def _records(lines: list[str], found: Rows) -> Iterator[tuple[int, list[str]]]:
    """Each record with the number of its first line; records may span lines."""
    reader = csv.reader(lines, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            yield number, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            found.complain(number, f"it is not CSV: {error}; look for a quote that is not closed")


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} stands in it more than once")
    return values


def _refuse_constant(name: str) -> object:
    raise ValueError(f"JSON has no {name}")


_JSON = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_refuse_constant)

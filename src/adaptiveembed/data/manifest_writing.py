"""Writing manifests, so that ``read_manifest`` gives the same pairs."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adaptiveembed.data.new_file import new_file
from adaptiveembed.data.pairs import COLUMNS, Manifest, Pair
from adaptiveembed.errors import ManifestError

Row = dict[str, object]


def write_manifest(manifest: Manifest, path: str | Path) -> None:
    """Write the pairs to a new file, which appears whole or not at all.

    How its name ends tells the format. Media below its folder are written relative to it, so that
    the folder can be moved. CSV has texts only: other metadata are written there as JSON. A file
    that holds just this already is left as it is; any other is never written over.
    """
    path = Path(path)
    content = _content(manifest, path)
    if path.is_file() and path.read_bytes() == content:
        return
    if path.exists():
        raise ManifestError(f"{path} exists; remove it or choose another name")
    _write(content, path)


def replace_manifest(manifest: Manifest, path: str | Path) -> None:
    """Write the pairs as ``write_manifest`` does, in the place of a manifest that may be there."""
    path = Path(path)
    _write(_content(manifest, path), path)


def _content(manifest: Manifest, path: Path) -> bytes:
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ManifestError(
            f"{path} ends in {path.suffix or 'nothing'}; write {', '.join(_WRITERS)}"
        )
    return writer([_row(pair, path.parent) for pair in manifest])


def _write(content: bytes, path: Path) -> None:
    with new_file(path) as file:
        file.write(content)


def _row(pair: Pair, folder: Path) -> Row:
    taken = [name for name in pair.metadata if name in COLUMNS]
    if taken:
        raise ManifestError(f"pair {pair.id!r} has metadata named {taken[0]}; rename it")
    media = None if pair.media is None else _written_path(pair.media, folder)
    values: Row = {"id": pair.id, "text": pair.text, "media": media, "split": pair.split}
    values.update(pair.metadata)
    return {name: one for name, one in values.items() if one is not None}


def _written_path(media: Path, folder: Path) -> str:
    media, folder = media.absolute(), folder.absolute()
    inside = media.is_relative_to(folder)
    return (media.relative_to(folder) if inside else media).as_posix()


def _json_lines(rows: Sequence[Row]) -> bytes:
    return b"".join(_json(row, row).encode() + b"\n" for row in rows)


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO(newline="")
    # ends lines as the standard has it, because only then a lone carriage return is quoted
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value, row) for name, value in row.items()})
    return text.getvalue().encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    arrays = {name: _array(name, [row.get(name) for row in rows]) for name in _columns(rows)}
    file = io.BytesIO()
    pq.write_table(pa.table(arrays), file)
    return file.getvalue()


_WRITERS: Mapping[str, Callable[[Sequence[Row]], bytes]] = {
    ".jsonl": _json_lines,
    ".csv": _csv,
    ".parquet": _parquet,
}


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _cell(value: object, row: Row) -> str:
    return value if isinstance(value, str) else _json(value, row)


def _json(value: object, row: Row) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ManifestError(
            f"pair {row['id']!r} cannot be written as text ({error}); change its metadata"
        ) from error


def _array(name: str, values: list[object]) -> pa.Array:
    try:
        return pa.array(values, type=pa.string() if name in COLUMNS else None)
    except pa.ArrowException as error:
        raise ManifestError(
            f"the values of {name} are not of one kind ({error}); write .jsonl instead"
        ) from error

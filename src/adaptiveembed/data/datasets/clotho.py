"""Clotho: five captions for each sound, in a table; keywords in another one."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from adaptiveembed.data.datasets.annotation_files import (
    FILE_NAME,
    TEXT,
    Complaints,
    Values,
    checked_values,
    require_first,
)
from adaptiveembed.data.datasets.items import Annotations, Item, Origin, Split, joined
from adaptiveembed.data.manifest_rows import read_rows
from adaptiveembed.errors import ManifestError

CAPTIONS = tuple(f"caption_{number}" for number in range(1, 6))
METADATA = {
    Split.TRAIN: "clotho_metadata_development.csv",
    Split.QUERY: "clotho_metadata_evaluation.csv",
}
"""Files beside those of the captions; without them there are no keywords."""
ENCODING = "iso-8859-1"
"""Of the metadata; the captions are UTF-8."""

_KINDS = {"file_name": FILE_NAME} | dict.fromkeys(CAPTIONS, TEXT)


def read_clotho(
    files: Mapping[Split, Path], media: Mapping[Split, str], keywords: Mapping[Split, Path]
) -> Annotations:
    """One item for each sound; its id begins with its folder, for both have names of their own."""
    sounds = {split: _read_captions(path) for split, path in files.items()}
    said = {split: _read_keywords(path) for split, path in keywords.items()}
    return Annotations(
        items=tuple(
            _item(media[split].format(id=values["file_name"]), values, split, said.get(split))
            for split in Split
            for values in sounds[split]
        ),
        origin=Origin(
            files=(*files.values(), *keywords.values()),
            counts={
                "captions": {
                    split: sum(bool(text) for each in sounds[split] for text in _captions(each))
                    for split in Split
                },
            },
            rules={"caption_order": "columns"},
        ),
    )


def _item(
    path: str, values: Values, split: Split, keywords: Mapping[str, list[str]] | None
) -> Item:
    words = (keywords or {}).get(values["file_name"])
    metadata = {} if words is None else {"keywords": words}
    return Item(path, joined(*_captions(values)), split, (path,), metadata=metadata)


def _captions(values: Values) -> Iterator[str]:
    return (values[name].strip() for name in CAPTIONS)


def _read_captions(path: Path) -> list[Values]:
    rows, complaints = read_rows(path), Complaints(path)
    for number, what in rows.problems:
        complaints.add(number, what)
    known: dict[str, int] = {}
    sounds: list[Values] = []
    columns = rows.columns
    for number, given in rows.rows:
        # a cell without anything is left out of a row, a column that is not there of all rows
        values = {name: given.get(name, "") for name in columns}
        with complaints.about(number):
            sounds.append(checked_values(values, _KINDS))
            require_first(known, sounds[-1]["file_name"], number)
    if not rows.rows:
        complaints.add(0, "it names no sounds")
    complaints.raise_any()
    return sounds


def _read_keywords(path: Path) -> dict[str, list[str]]:
    try:
        with path.open(encoding=ENCODING, newline="") as file:
            rows = csv.DictReader(file, restval="")
            return {row["file_name"]: _words(row["keywords"]) for row in rows}
    except (KeyError, csv.Error) as error:
        raise ManifestError(
            f"{path} is not the publisher's table with the columns file_name and keywords "
            f"({error!r}); take the publisher's file again, or remove it"
        ) from None


def _words(cell: str) -> list[str]:
    return [word.strip() for word in cell.split(";") if word.strip()]

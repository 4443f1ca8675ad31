"""DiDeMo: descriptions of moments of videos, each a row of its own.

The same video stands under file names with several endings, so its id is the name without it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adaptiveembed.data.datasets.annotation_files import (
    FILE_NAME,
    TEXT,
    Complaints,
    checked_values,
    read_json,
)
from adaptiveembed.data.datasets.items import Annotations, Item, Origin, Split, joined
from adaptiveembed.data.datasets.media_files import stem_of
from adaptiveembed.errors import ManifestError

_KINDS = {"video": FILE_NAME, "description": TEXT}


@dataclass(slots=True)
class _Video:
    descriptions: list[str] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    """Its file names, in the order in which they appear."""


def read_didemo(files: Mapping[Split, Path]) -> Annotations:
    """One item for each video; its text is all descriptions in the order of the file."""
    videos: dict[Split, dict[str, _Video]] = {}
    for split in Split:
        others = {stem for each in videos.values() for stem in each}
        videos[split] = _read_file(files[split], others)
    found = videos.items()
    return Annotations(
        items=tuple(item for split, each in found for item in _items(each, split)),
        origin=Origin(
            files=tuple(files.values()),
            counts={
                "descriptions": {
                    split: sum(len(one.descriptions) for one in each.values())
                    for split, each in found
                },
                "file names": {
                    split: sum(len(one.names) for one in each.values()) for split, each in found
                },
            },
            rules={"video": "name without ending", "description_order": "file"},
        ),
    )


def _read_file(path: Path, others: set[str]) -> dict[str, _Video]:
    rows, complaints = read_json(path), Complaints(path, "entry")
    videos: dict[str, _Video] = {}
    if not isinstance(rows, list):
        complaints.add(0, f"it holds a {type(rows).__name__}, and a list of moments is needed")
        rows = []
    for number, row in enumerate(rows, 1):
        with complaints.about(number):
            _add_row(videos, row, others)
    complaints.raise_any()
    return videos


def _add_row(videos: dict[str, _Video], row: object, others: set[str]) -> None:
    values = checked_values(row, _KINDS)
    stem = stem_of(values["video"])
    if stem in others:
        raise ManifestError(f"video {stem!r} stands in the file of another split already")
    video = videos.setdefault(stem, _Video())
    video.descriptions.append(values["description"])
    video.names[values["video"]] = None


def _items(videos: Mapping[str, _Video], split: Split) -> Iterator[Item]:
    for stem, video in videos.items():
        metadata = {"descriptions": len(video.descriptions)}
        text = joined(*video.descriptions)
        yield Item(stem, text, split, tuple(video.names), stem, metadata)

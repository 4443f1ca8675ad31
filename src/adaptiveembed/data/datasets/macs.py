"""MACS: two to five captions for each recording of a city, in a file of YAML.

It has no official split. Either a seeded shuffle makes one, or a list does.
"""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from adaptiveembed.data.datasets.annotation_files import (
    FILE_NAME,
    TEXT,
    Complaints,
    Kind,
    Values,
    checked_values,
    require_first,
)
from adaptiveembed.data.datasets.items import Annotations, Item, Origin, PerSplit, Split, joined
from adaptiveembed.data.datasets.rules import BuildRules
from adaptiveembed.errors import ManifestError

QUERY_SHARE = 0.1
"""Of the recordings; of 3,930 these are the paper's 393."""

# It makes texts of everything, as annotators wrote "yes" and "12:30" and meant texts.
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

_RECORDING = {
    "filename": FILE_NAME,
    "annotations": Kind("a list of annotations", lambda value: isinstance(value, list)),
}
_ANNOTATION = {"sentence": TEXT}


def read_macs(path: Path, media: str, rules: BuildRules) -> Annotations:
    """One item for each recording; its text is all captions in the order of the file."""
    recordings = _read_recordings(path)
    queries = _queries([values["filename"] for values in recordings], rules)
    items = [_item(values, media, queries) for values in recordings]
    listed = () if rules.query_list is None else (rules.query_list,)
    return Annotations(
        items=tuple(item for split in Split for item in items if item.split == split),
        origin=Origin(
            files=(path, *listed),
            counts={"captions": _captions(recordings, queries)},
            rules=_written_rules(rules),
        ),
    )


def _queries(names: list[str], rules: BuildRules) -> frozenset[str]:
    if rules.query_list is None:
        return _shuffled(names, rules.seed)
    return _listed(names, rules.query_list)


def _captions(recordings: list[Values], queries: frozenset[str]) -> PerSplit:
    found = dict.fromkeys(Split, 0)
    for values in recordings:
        found[_split(values, queries)] += len(values["annotations"])
    return found


def _written_rules(rules: BuildRules) -> Mapping[str, str | int]:
    if rules.query_list is None:
        return {"split": "shuffle of the sorted names", "seed": rules.seed}
    return {"split": "list", "query_list": rules.query_list.name}


def _item(values: Values, media: str, queries: frozenset[str]) -> Item:
    name, annotations = values["filename"], values["annotations"]
    text = joined(*(one["sentence"] for one in annotations))
    metadata = {"captions": len(annotations)}
    return Item(name, text, _split(values, queries), (media.format(id=name),), metadata=metadata)


def _split(values: Values, queries: frozenset[str]) -> Split:
    return Split.QUERY if values["filename"] in queries else Split.TRAIN


def _shuffled(names: list[str], seed: int) -> frozenset[str]:
    """The first tenth of the sorted names, shuffled."""
    order = sorted(names)
    random.Random(seed).shuffle(order)
    return frozenset(order[: round(QUERY_SHARE * len(order))])


def _listed(names: list[str], path: Path) -> frozenset[str]:
    """The recordings that a file names."""
    complaints = Complaints(path, remedy="correct it")
    known, queries = frozenset(names), dict[str, int]()
    for number, name in _lines(path):
        with complaints.about(number):
            require_first(queries, name, number)
            _require_known(name, known)
    if not queries:
        complaints.add(0, "it names no recording; write one name in each line")
    complaints.raise_any()
    return frozenset(queries)


def _require_known(name: str, known: frozenset[str]) -> None:
    if name not in known:
        raise ManifestError(f"{name!r:.80} is no recording of MACS")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise ManifestError(f"there is no file {path}; correct the path") from None
    except UnicodeDecodeError:
        raise ManifestError(f"{path} is not UTF-8; save it as UTF-8") from None
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _read_recordings(path: Path) -> list[Values]:
    complaints, known = Complaints(path), dict[str, int]()
    recordings: list[Values] = []
    for number, values in _entries(path, complaints):
        with complaints.about(number):
            recordings.append(_checked_recording(values))
            require_first(known, recordings[-1]["filename"], number)
    complaints.raise_any()
    return recordings


def _checked_recording(values: object) -> Values:
    recording = checked_values(values, _RECORDING)
    for number, annotation in enumerate(recording["annotations"], 1):
        try:
            checked_values(annotation, _ANNOTATION)
        except ManifestError as error:
            name = recording["filename"]
            raise ManifestError(f"{name}, annotation {number}: {error}") from None
    return recording


def _entries(path: Path, complaints: Complaints) -> Iterator[tuple[int, object]]:
    """Every entry of the list ``files`` with its line."""
    with path.open("rb") as file:
        loader = _Loader(file)
        try:
            nodes = _nodes(loader.get_single_node())
            if not nodes:
                complaints.add(0, "it has no list named files with recordings in it")
            for node in nodes:
                yield node.start_mark.line + 1, loader.construct_document(node)
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            complaints.add(0, f"it is not YAML: {' '.join(str(error).split())}")
        finally:
            loader.dispose()


def _nodes(root: yaml.Node | None) -> list[yaml.Node]:
    """The entries of the list ``files``, as YAML's parser hands them over."""
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if key.value == "files" and isinstance(value, yaml.SequenceNode):
                return list(value.value)
    return []

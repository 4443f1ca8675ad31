"""What every reader of annotations hands over: items, counts, and the rules that made them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Split(StrEnum):
    """The parts of a benchmark; the gallery is both, the training split first."""

    TRAIN = "train"
    QUERY = "query"


PerSplit = Mapping[Split, int]


class Item(NamedTuple):
    """One pair, before its medium was looked for."""

    id: str
    text: str
    """All that is said of it; empty if nobody said anything."""
    split: Split
    names: tuple[str, ...]
    """Where its medium may be kept, relative to the folder of media; the first one there counts."""
    stem: str | None = None
    """How the file's name begins, where its ending is not known; it may stand in any subfolder."""
    metadata: Mapping[str, object] = {}


@dataclass(frozen=True)
class Origin:
    """Where items come from."""

    files: tuple[Path, ...]
    """What was read."""
    counts: Mapping[str, PerSplit]
    """What was met in the files, and how often: narratives, sentences out of order, and so on."""
    rules: Mapping[str, str | int]
    """Every choice that was made and that could have been made differently."""


@dataclass(frozen=True)
class Annotations:
    """What the annotation files of a benchmark say, in their order, the training split first."""

    items: tuple[Item, ...]
    origin: Origin


def joined(*texts: str) -> str:
    """The texts without blanks around them, a space between; what says nothing is left out."""
    return " ".join(filter(None, (text.strip() for text in texts)))

"""The choices that the paper leaves open; each is written down in the record beside a manifest."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from adaptiveembed.errors import SettingError


class NarrativeChoice(StrEnum):
    """Which narrative is an image's text, where several annotators told one."""

    FIRST = "first"
    """The first one in the order of the files."""
    LONGEST = "longest"
    """The one with the most characters, the first of equally long ones."""
    CONCAT = "concat"
    """All of them in the order of the files."""
    ANNOTATOR = "annotator"
    """That of the annotator with the smallest number, whatever the order of the files."""


class EventOrder(StrEnum):
    """In which order the sentences about the events of a video are joined."""

    START = "start"
    """By the start of the event, those that start together as the file has them: "temporally
    ordered", as the paper's table says."""
    FILE = "file"
    """As the file has them: "in their original order", as the paper's text says."""


@dataclass(frozen=True)
class BuildRules:
    """The choices for all benchmarks; each concerns those that are named beside it."""

    narrative: NarrativeChoice = NarrativeChoice.FIRST
    """COCO, Flickr30K, ADE20K, OpenImages: which narrative of an image that has several."""
    event_order: EventOrder = EventOrder.START
    """ActivityNet: in which order sentences are joined."""
    seed: int = 1234
    """MACS: of the shuffle whose first tenth is the query split."""
    query_list: Path | None = None
    """MACS: a file that names the recordings of the query split, one in each line, in place of
    the shuffle."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingError(f"seed is {self.seed}; give a whole number from 0")

"""Localized Narratives: what annotators told about images while they pointed at them.

One line of JSON for each narrative, several for some images. Of a line only what stands before
``timed_caption`` is read: the traces behind it are most of a file, and nothing of them is needed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from adaptiveembed.data.datasets.annotation_files import (
    FILE_NAME,
    TEXT,
    Complaints,
    Kind,
    Values,
    checked_values,
)
from adaptiveembed.data.datasets.items import Annotations, Item, Origin, PerSplit, Split, joined
from adaptiveembed.data.datasets.rules import BuildRules, NarrativeChoice
from adaptiveembed.errors import ManifestError
from adaptiveembed.structure.progress import Progress, silent

BEFORE_TRACES = b', "timed_caption": '
"""Ends what is read of a line, where keys are in the publisher's order.

Within a text it would stand as ``\\"timed_caption\\"``, so it is found outside of texts only.
"""
WHOLE_LINE = (b'"}\n', b'"}', b'"}\r\n')
"""How a line ends that was not cut off: behind the address of the recorded voice, the last key.
Whatever stands in traces and times ends in numbers."""
READ_AT_ONCE = 1 << 20
"""Bytes; most lines with traces are longer than what Python reads at once by itself."""


@dataclass(frozen=True)
class NarrativeFiles:
    """How one image dataset is spelled."""

    dataset: str
    """How ``dataset_id`` begins in small letters; the files spell it in several ways."""
    media: Mapping[Split, str]
    """Where the picture of an image is kept, with its id in the place of ``{id}``."""
    image_id: Callable[[str], str] = str
    """The one spelling of an image's id; a ``ManifestError`` says why it cannot be one."""


@dataclass(slots=True)
class _Image:
    """What is known of an image so far."""

    text: str
    annotator: int
    split: Split
    narratives: int = 1


def read_narratives(
    files: Mapping[Split, tuple[Path, ...]],
    spelling: NarrativeFiles,
    rules: BuildRules,
    progress: Progress = silent,
) -> Annotations:
    """One item for each image, in the order in which the files first name it."""
    images = _Images(spelling, rules.narrative)
    narratives = dict.fromkeys(Split, 0)
    paths = [(split, path) for split in Split for path in files[split]]
    for done, (split, path) in enumerate(paths, 1):
        narratives[split] += images.add_file(path, split)
        progress(done, len(paths))
    return Annotations(
        items=tuple(images.items()),
        origin=Origin(
            files=tuple(path for _, path in paths),
            counts={"narratives": narratives, "images with several narratives": images.several()},
            rules={"narrative": rules.narrative.value},
        ),
    )


class _Images:
    """What is known of all images; only one text is held of each."""

    def __init__(self, spelling: NarrativeFiles, choice: NarrativeChoice) -> None:
        self._spelling, self._choice = spelling, choice
        self._images: dict[str, _Image] = {}

    def add_file(self, path: Path, split: Split) -> int:
        """Take every narrative of a file; their number."""
        complaints, number = Complaints(path), 0
        with path.open("rb", READ_AT_ONCE) as file:
            for number, line in enumerate(file, 1):
                with complaints.about(number):
                    self._add(_checked_line(line, self._spelling), split)
        if not number:
            complaints.add(0, "it is empty")
        complaints.raise_any()
        return number

    def _add(self, values: Values, split: Split) -> None:
        image_id = self._spelling.image_id(str(values["image_id"]))
        told = _Image(values["caption"].strip(), int(values["annotator_id"]), split)
        known = self._images.get(image_id)
        if known is not None and known.split != split:
            raise ManifestError(
                f"image {image_id!r} stands in a file of the split {known.split} already"
            )
        self._images[image_id] = told if known is None else _chosen(known, told, self._choice)

    def items(self) -> Iterator[Item]:
        """One for each image; who told its text is not said where several did."""
        for image_id, image in self._images.items():
            names = (self._spelling.media[image.split].format(id=image_id),)
            of_one = image.narratives == 1 or self._choice is not NarrativeChoice.CONCAT
            metadata = {"annotator_id": image.annotator} if of_one else {}
            metadata["narratives"] = image.narratives
            yield Item(image_id, image.text, image.split, names, metadata=metadata)

    def several(self) -> PerSplit:
        """How many images have several narratives."""
        counts = dict.fromkeys(Split, 0)
        for image in self._images.values():
            counts[image.split] += image.narratives > 1
        return counts


def _checked_line(line: bytes, spelling: NarrativeFiles) -> Values:
    try:
        read = narrative_values(line)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"it is {_reason(error) if line.strip() else 'blank'}") from None
    values = checked_values(read, _KINDS)
    dataset = values["dataset_id"]
    if not dataset.lower().startswith(spelling.dataset):
        raise ManifestError(
            f"dataset_id is {dataset!r:.60}, and one that begins with {spelling.dataset!r} is "
            f"needed"
        )
    return values


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} (character {error.pos + 1:,})"
    return f"not JSON: {error}"


def narrative_values(line: bytes) -> object:
    """What a line says, without traces where they stand behind everything that is needed."""
    end = line.find(BEFORE_TRACES)
    if end >= 0 and line.endswith(WHOLE_LINE):
        try:
            values = json.loads(line[:end] + b"}")
        except ValueError:
            return json.loads(line)
        if values.keys() >= _KINDS.keys():
            return values
    return json.loads(line)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(value: object) -> bool:
    return FILE_NAME.holds(value) or _is_whole(value)


def _is_annotator(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdecimal() and len(value) < 20
    return _is_whole(value)


_KINDS = {
    "dataset_id": TEXT,
    "image_id": Kind("a text that can name a file", _is_id),
    "annotator_id": Kind("a whole number", _is_annotator),
    "caption": TEXT,
}


def _chosen(known: _Image, told: _Image, choice: NarrativeChoice) -> _Image:
    """What is known of an image after another narrative of it; blank ones are never chosen."""
    narratives = known.narratives + 1
    if choice is NarrativeChoice.CONCAT:
        text, annotator = joined(known.text, told.text), known.annotator
    elif told.text and (not known.text or _replaces(known, told, choice)):
        text, annotator = told.text, told.annotator
    else:
        text, annotator = known.text, known.annotator
    return _Image(text, annotator, known.split, narratives)


def _replaces(known: _Image, told: _Image, choice: NarrativeChoice) -> bool:
    if choice is NarrativeChoice.LONGEST:
        return len(told.text) > len(known.text)
    return choice is NarrativeChoice.ANNOTATOR and told.annotator < known.annotator

"""ActivityNet Captions: sentences about the events of a video, each with its start and its end."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from adaptiveembed.data.datasets.annotation_files import (
    NUMBER,
    SPANS,
    TEXTS,
    Complaints,
    Values,
    checked_values,
    is_file_name,
    read_json,
)
from adaptiveembed.data.datasets.items import Annotations, Item, Origin, Split, joined
from adaptiveembed.data.datasets.rules import BuildRules, EventOrder
from adaptiveembed.errors import ManifestError

_KINDS = {"duration": NUMBER, "timestamps": SPANS, "sentences": TEXTS}


def read_activitynet(files: Mapping[Split, Path], rules: BuildRules) -> Annotations:
    """One item for each video; its text is all sentences in the order of the rules."""
    videos = {split: _read_file(path) for split, path in files.items()}
    _require_apart(files, videos)
    oddities = {split: _oddities(videos[split]) for split in Split}
    return Annotations(
        items=tuple(item for split in Split for item in _items(videos[split], split, rules)),
        origin=Origin(
            files=tuple(files.values()),
            counts={
                name: {split: oddities[split][name] for split in Split}
                for name in oddities[Split.TRAIN]
            },
            rules={"event_order": rules.event_order.value},
        ),
    )


def _read_file(path: Path) -> Mapping[str, Values]:
    read, complaints = read_json(path), Complaints(path, "video")
    videos: dict[str, Values] = {}
    if not isinstance(read, dict):
        complaints.add(0, f"it holds a {type(read).__name__}, and an object of videos is needed")
        read = {}
    for number, (video_id, values) in enumerate(read.items(), 1):
        with complaints.about(number):
            videos[video_id] = _checked_video(video_id, values)
    complaints.raise_any()
    return videos


def _checked_video(video_id: str, values: object) -> Values:
    if not is_file_name(video_id):
        raise ManifestError(f"{video_id!r} cannot name a file")
    try:
        checked = checked_values(values, _KINDS)
    except ManifestError as error:
        raise ManifestError(f"{video_id}: {error}") from None
    spans, sentences = len(checked["timestamps"]), len(checked["sentences"])
    if spans != sentences:
        raise ManifestError(f"{video_id}: it has {spans} timestamps and {sentences} sentences")
    return checked


def _require_apart(
    files: Mapping[Split, Path], videos: Mapping[Split, Mapping[str, Values]]
) -> None:
    complaints = Complaints(files[Split.QUERY], "video")
    for number, video_id in enumerate(videos[Split.QUERY], 1):
        if video_id in videos[Split.TRAIN]:
            complaints.add(number, f"{video_id} stands in {files[Split.TRAIN]} already")
    complaints.raise_any()


def _items(videos: Mapping[str, Values], split: Split, rules: BuildRules) -> Iterator[Item]:
    for video_id, values in videos.items():
        text = joined(*_ordered(values, rules.event_order))
        metadata = {"duration": values["duration"], "sentences": len(values["sentences"])}
        yield Item(video_id, text, split, (), video_id, metadata)


def _ordered(values: Values, order: EventOrder) -> list[str]:
    sentences: list[str] = values["sentences"]
    if order is EventOrder.FILE:
        return sentences
    starts = [start for start, _ in values["timestamps"]]
    return [sentences[place] for place in sorted(range(len(starts)), key=starts.__getitem__)]


def _oddities(videos: Mapping[str, Values]) -> Counter[str]:
    """What was met in one file; nothing of it is left out or mended."""
    found = Counter(
        {
            "sentences": 0,
            "videos with sentences out of order": 0,
            "events that end before they start": 0,
            "events that end behind their video": 0,
        }
    )
    for values in videos.values():
        spans = values["timestamps"]
        starts = [start for start, _ in spans]
        found["sentences"] += len(spans)
        found["videos with sentences out of order"] += starts != sorted(starts)
        found["events that end before they start"] += sum(end < start for start, end in spans)
        found["events that end behind their video"] += sum(
            end > values["duration"] for _, end in spans
        )
    return found

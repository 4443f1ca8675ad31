"""From the annotation files and the media of a benchmark to a manifest, with a record beside it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from adaptiveembed.data.datasets.activitynet import read_activitynet
from adaptiveembed.data.datasets.annotation_files import found_files
from adaptiveembed.data.datasets.benchmarks import FACTS, Benchmark
from adaptiveembed.data.datasets.clotho import METADATA, read_clotho
from adaptiveembed.data.datasets.didemo import read_didemo
from adaptiveembed.data.datasets.items import Annotations, Item, Origin, Split
from adaptiveembed.data.datasets.localized_narratives import NarrativeFiles, read_narratives
from adaptiveembed.data.datasets.macs import read_macs
from adaptiveembed.data.datasets.media_files import MediaFolder
from adaptiveembed.data.datasets.rules import BuildRules
from adaptiveembed.data.manifest_writing import write_manifest
from adaptiveembed.data.new_file import new_file
from adaptiveembed.data.pairs import Manifest, Pair
from adaptiveembed.errors import ManifestError
from adaptiveembed.structure.progress import Progress, silent

VERSION = 1
"""Of the record and of the rules that it names."""
SHOWN = 20
"""Items left out that are named; of the others, only their number is told."""


@dataclass(frozen=True)
class Absent:
    """An item that is left out of the manifest."""

    id: str
    split: Split
    why: str
    """Where its medium was looked for, or that nobody said anything of it."""


@dataclass(frozen=True)
class Built:
    """A manifest, and what there is to know about how it came about."""

    benchmark: Benchmark
    manifest: Manifest
    origin: Origin
    without_media: tuple[Absent, ...]
    without_text: tuple[Absent, ...]

    def annotated(self, split: Split) -> int:
        """Items of a split in the annotation files."""
        return self.written(split) + self.left_out(split)

    def left_out(self, split: Split) -> int:
        """Items of a split without medium or text."""
        absent = (*self.without_media, *self.without_text)
        return sum(each.split == split for each in absent)

    def written(self, split: Split) -> int:
        """Pairs of a split in the manifest."""
        return sum(pair.split == split for pair in self.manifest)


def build(  # noqa: PLR0913 - what, from where, by which rules, how strictly, and who listens
    benchmark: Benchmark,
    annotations: str | Path,
    media: str | Path,
    rules: BuildRules | None = None,
    *,
    strict: bool = False,
    progress: Progress = silent,
) -> Built:
    """The pairs of a benchmark, the training split first, each in the order of its files.

    Args:
        benchmark: Which one.
        annotations: The folder of its annotation files.
        media: The folder of its media.
        rules: The choices that the paper leaves open.
        strict: Whether to refuse what otherwise is left out: items without medium or text.
        progress: Who listens.
    """
    there = MediaFolder(Path(media))
    found = read_annotations(benchmark, Path(annotations), rules or BuildRules(), progress)
    built = _built(benchmark, found, there)
    if not built.manifest.pairs or (strict and (built.without_media or built.without_text)):
        raise ManifestError("\n".join(told_absent(built)))
    return built


def write(built: Built, path: str | Path) -> Path:
    """Write manifest and record, each whole or not at all; the path of the record.

    A manifest that is there and holds anything else is kept, and an error raised.
    """
    path = Path(path)
    write_manifest(built.manifest, path)
    with new_file(record_path(path)) as file:
        text = json.dumps(record(built), indent=2, ensure_ascii=False)
        file.write(text.encode() + b"\n")
    return record_path(path)


def record_path(manifest: Path) -> Path:
    """The path of the record of a manifest: beside it, ending in ``.build.json``."""
    return manifest.with_name(f"{manifest.stem}.build.json")


def record(built: Built) -> dict[str, object]:
    """How a manifest came about: rules, files, and counts beside the paper's."""
    origin, facts = built.origin, FACTS[built.benchmark]
    return {
        "version": VERSION,
        "benchmark": built.benchmark.value,
        "rules": dict(origin.rules),
        "files": [{"name": each.name, "bytes": each.stat().st_size} for each in origin.files],
        "counts": {
            split.value: {
                "annotated": built.annotated(split),
                "without media": _of_split(built.without_media, split),
                "without text": _of_split(built.without_text, split),
                "written": built.written(split),
                "paper": facts.paper[split],
            }
            for split in Split
        },
        "met": {name: dict(counts) for name, counts in origin.counts.items()},
    }


def told_absent(built: Built) -> list[str]:
    """In words, who is left out and why: the first ones, and the number of the others."""
    return [
        *_told(built.without_media, "media are not where they were looked for"),
        *_told(built.without_text, "items have no text"),
    ]


def _told(absent: tuple[Absent, ...], what: str) -> list[str]:
    if not absent:
        return []
    shown = [f"  {each.id}: {each.why}" for each in absent[:SHOWN]]
    more = [f"  and {len(absent) - SHOWN:,} more"] if len(absent) > SHOWN else []
    return [f"{len(absent):,} {what}:", *shown, *more]


def _of_split(absent: tuple[Absent, ...], split: Split) -> int:
    return sum(each.split == split for each in absent)


def _built(benchmark: Benchmark, found: Annotations, media: MediaFolder) -> Built:
    pairs, without_media, without_text = [], [], []
    for item in found.items:
        path = media.find(item)
        if not item.text:
            without_text.append(Absent(item.id, item.split, "nobody said anything of it"))
        elif path is None:
            without_media.append(Absent(item.id, item.split, media.looked_for(item)))
        else:
            pairs.append(_pair(item, path))
    return Built(
        benchmark, Manifest(tuple(pairs)), found.origin, tuple(without_media), tuple(without_text)
    )


def _pair(item: Item, path: Path) -> Pair:
    return Pair(item.id, item.text, path, item.split.value, item.metadata)


def read_annotations(
    benchmark: Benchmark, folder: Path, rules: BuildRules, progress: Progress = silent
) -> Annotations:
    """What the annotation files of a benchmark say, below this folder."""
    if not folder.is_dir():
        raise ManifestError(
            f"there is no folder {folder}; give the one that holds the annotation files"
        )
    facts = FACTS[benchmark]
    files = {split: found_files(folder, facts.files[split]) for split in Split}
    if benchmark in _NARRATIVES:
        return read_narratives(files, _NARRATIVES[benchmark], rules, progress)
    ones = {split: paths[0] for split, paths in files.items()}
    read = _READERS[benchmark](ones, folder, rules)
    progress(1, 1)
    return read


def _activitynet(files: Mapping[Split, Path], folder: Path, rules: BuildRules) -> Annotations:
    return read_activitynet(files, rules)


def _didemo(files: Mapping[Split, Path], folder: Path, rules: BuildRules) -> Annotations:
    return read_didemo(files)


def _clotho(files: Mapping[Split, Path], folder: Path, rules: BuildRules) -> Annotations:
    keywords = {split: folder / name for split, name in METADATA.items()}
    there = {split: path for split, path in keywords.items() if path.is_file()}
    return read_clotho(files, FACTS[Benchmark.CLOTHO].media, there)


def _macs(files: Mapping[Split, Path], folder: Path, rules: BuildRules) -> Annotations:
    return read_macs(files[Split.TRAIN], FACTS[Benchmark.MACS].media[Split.TRAIN], rules)


_READERS: Mapping[Benchmark, Callable[[Mapping[Split, Path], Path, BuildRules], Annotations]] = {
    Benchmark.ACTIVITYNET: _activitynet,
    Benchmark.DIDEMO: _didemo,
    Benchmark.CLOTHO: _clotho,
    Benchmark.MACS: _macs,
}


def _without_zeros(image_id: str) -> str:
    """COCO's numbers, which stand without zeros before them in the annotations."""
    if not (image_id.isascii() and image_id.isdecimal()):
        raise ManifestError(f"image_id is {image_id!r:.60}, and a number is needed")
    return image_id.lstrip("0") or "0"


_NARRATIVES: Mapping[Benchmark, NarrativeFiles] = {
    benchmark: NarrativeFiles(begins, FACTS[benchmark].media, spelled)
    for benchmark, begins, spelled in (
        (Benchmark.COCO, "mscoco", _without_zeros),
        (Benchmark.FLICKR30K, "flic", str),
        (Benchmark.ADE20K, "ade", str),
        (Benchmark.OPENIMAGES, "open", str),
    )
}

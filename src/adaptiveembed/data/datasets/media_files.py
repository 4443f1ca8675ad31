"""Where the media of a benchmark are, told by listing folders once instead of asking for each."""

import os
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from adaptiveembed.data.datasets.items import Item
from adaptiveembed.data.reading import ENDINGS
from adaptiveembed.errors import ManifestError
from adaptiveembed.structure.direction import Modality

VIDEO_ENDINGS = ENDINGS[Modality.VIDEO]


class MediaFolder:
    """A folder of media; what is added to it later may not be seen."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ManifestError(f"there is no folder {folder}; give the one that holds the media")
        self._folder = folder
        self._listed: dict[str, frozenset[str]] = {}

    def find(self, item: Item) -> Path | None:
        """The medium of an item, if it is there."""
        name = self._by_name(item) if item.stem is None else self._by_stem(item, item.stem)
        return None if name is None else self._folder / name

    def looked_for(self, item: Item) -> str:
        """Where ``find`` looks, in words."""
        if item.stem is None:
            return " or ".join(str(self._folder / name) for name in item.names)
        sought = str(self._folder / "**" / f"{item.stem}.*")
        others = self._stems.get(item.stem)
        if not others:
            return sought
        return f"{sought}; {others[0]} is there: if it is a video, let its name say so"

    def _by_name(self, item: Item) -> str | None:
        return next((name for name in item.names if self._holds(name)), None)

    def _holds(self, name: str) -> bool:
        below, _, last = name.rpartition("/")
        if below not in self._listed:
            self._listed[below] = frozenset(_names_of_files(self._folder / below))
        return last in self._listed[below]

    def _by_stem(self, item: Item, stem: str) -> str | None:
        """Of the files that end as videos do, one named as annotated, else the first.

        What ends otherwise, be it named so in the annotations, could not be encoded as a video.
        """
        there = map(PurePosixPath, self._stems.get(stem, []))
        videos = [path for path in there if path.suffix.lower() in VIDEO_ENDINGS]
        named = [path for path in videos if path.name in item.names]
        return next((str(path) for path in named + videos), None)

    @cached_property
    def _stems(self) -> dict[str, list[str]]:
        """The files of every stem, anywhere below the folder, in alphabetical order."""
        found = defaultdict(list)
        for path in sorted(_paths_below(self._folder)):
            found[stem_of(path.rpartition("/")[2])].append(path)
        return found


def stem_of(name: str) -> str:
    """The name of a file without its ending, be that a bare full stop.

    >>> [stem_of(name) for name in ("a.b.mov", "a.b.", "a")]
    ['a.b', 'a.b', 'a']
    """
    return name.rpartition(".")[0] or name


def _names_of_files(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries if entry.is_file())


def _paths_below(folder: Path) -> Iterator[str]:
    for here, _, names in os.walk(folder):
        files = (Path(here, name) for name in names)
        yield from (file.relative_to(folder).as_posix() for file in files if file.is_file())

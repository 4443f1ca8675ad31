"""Which files a benchmark is built from, in words: what ``--help`` and the documents teach."""

from collections.abc import Iterator

from adaptiveembed.data.datasets.benchmarks import FACTS, Benchmark, Names
from adaptiveembed.data.datasets.clotho import METADATA
from adaptiveembed.data.datasets.items import Split


def needed_annotations(benchmark: Benchmark) -> Iterator[str]:
    """The names of the annotation files, alternatives below each other."""
    for alternatives in dict.fromkeys(FACTS[benchmark].files.values()):
        for place, names in enumerate(alternatives):
            yield f"{'or ' if place else ''}{_shortened(names)}"
    if benchmark is Benchmark.CLOTHO:
        yield from (f"{name}, if keywords are wanted" for name in METADATA.values())


def needed_media(benchmark: Benchmark) -> Iterator[str]:
    """Where the media stand, by the split."""
    places = FACTS[benchmark].media
    shown = [_shown(places[split]) for split in Split]
    if len(set(shown)) == 1:
        yield shown[0]
    else:
        yield from (f"{place}  ({split})" for place, split in zip(shown, Split, strict=True))


def _shortened(names: Names) -> str:
    return names[0] if len(names) == 1 else f"{names[0]}, {len(names)} files"


def _shown(template: str) -> str:
    shown = template.replace("{id:0>12}", "ID").replace("{id}", "ID")
    below = shown.removeprefix("**/")
    return shown if below == shown else f"{below}, in any folder, with any ending of a video"

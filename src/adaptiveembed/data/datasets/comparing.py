"""The counts of a manifest beside the paper's, and why they differ."""

from collections.abc import Iterator, Mapping

from adaptiveembed.data.datasets.benchmarks import FACTS
from adaptiveembed.data.datasets.building import Built
from adaptiveembed.data.datasets.items import PerSplit, Split

COLUMNS = ("", "annotated", "left out", "written", "paper", "difference")


def compared(built: Built) -> Iterator[str]:
    """A table of counts, what was met in the files beside what others counted, and reasons."""
    yield from _table(_counts(built))
    facts = FACTS[built.benchmark]
    for name, counts in built.origin.counts.items():
        yield f"  {name}: {_per_split(counts)}{_counted(facts.known.get(name, {}))}"
    yield from (f"  {reason}" for split in Split for reason in _reasons(built, split))
    yield from (f"  {remark}" for remark in facts.remarks)


def _counts(built: Built) -> dict[str, tuple[int, int, int]]:
    """How many are annotated, written and in the paper, of each split and of both."""
    paper = FACTS[built.benchmark].paper
    rows = {
        split.value: (built.annotated(split), built.written(split), paper[split]) for split in Split
    }
    annotated, written, printed = (sum(column) for column in zip(*rows.values(), strict=True))
    return rows | {"gallery": (annotated, written, printed)}


def _table(rows: Mapping[str, tuple[int, int, int]]) -> Iterator[str]:
    yield _line(*COLUMNS)
    for name, (annotated, written, paper) in rows.items():
        numbers = (f"{number:,}" for number in (annotated, annotated - written, written, paper))
        yield _line(name, *numbers, f"{written - paper:+,}" if written != paper else "0")


def _line(name: str, *cells: str) -> str:
    return f"  {name:<8}" + "".join(f"{cell:>12}" for cell in cells)


def _per_split(counts: Mapping[Split, int]) -> str:
    return ", ".join(f"{number:,} {split.value}" for split, number in counts.items())


def _counted(known: PerSplit) -> str:
    return f" (counted by others: {_per_split(known)})" if known else ""


def _reasons(built: Built, split: Split) -> Iterator[str]:
    """Why a split has another number of pairs than the paper says."""
    media, text = (
        sum(each.split == split for each in absent)
        for absent in (built.without_media, built.without_text)
    )
    if media:
        yield f"{split}: {media:,} left out, for their media are missing"
    if text:
        yield f"{split}: {text:,} left out, for nobody said anything of them"
    more = built.annotated(split) - FACTS[built.benchmark].paper[split]
    if more:
        told = "more" if more > 0 else "fewer"
        yield (
            f"{split}: the annotation files name {abs(more):,} {told} than the paper; it is not "
            f"known why, unless a reason stands below: look whether the files are complete"
        )

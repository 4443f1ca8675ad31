"""The action ``data build``: manifests of the paper's benchmarks from their original files."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from adaptiveembed.cli.arguments import LARGEST_SEED, path, whole_number

if TYPE_CHECKING:
    from adaptiveembed.data.datasets import Benchmark, BuildRules, Facts

NARRATED = ("coco", "flickr30k", "ade20k", "openimages")
SUMMARIES = dict.fromkeys(NARRATED, "images and what annotators told of them") | {
    "activitynet": "videos and sentences about their events",
    "didemo": "videos and descriptions of their moments",
    "clotho": "sounds with five captions each",
    "macs": "recordings of cities with two to five captions each",
}
NARRATIVES = ("first", "longest", "concat", "annotator")
EVENT_ORDERS = ("start", "file")

ABOUT = """\
Makes a manifest of a benchmark from the publisher's annotation files and media.
Nothing is downloaded: "adaptiveembed data build coco --help" names the files
that are needed, who publishes them, and where they have to stand.

Counts are printed beside the paper's. Every choice is written down beside the
manifest: for coco.jsonl in coco.build.json.
"""

EXAMPLE = """\
  adaptiveembed data build {name} --annotations downloaded --media media \\
      --output {name}.jsonl
"""


def add_build(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the action, those of each benchmark by itself."""
    parser = actions.add_parser(
        "build",
        help="a manifest of a benchmark from its original files",
        description=ABOUT,
        epilog=f"example:\n{EXAMPLE.format(name='coco')}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    benchmarks = parser.add_subparsers(
        dest="benchmark", metavar="BENCHMARK", required=True, parser_class=_Teaching
    )
    for name in SUMMARIES:
        _add_benchmark(benchmarks, name)


class _Teaching(argparse.ArgumentParser):
    """Its help is written when it is asked for, as the facts take long to import."""

    def format_help(self) -> str:
        from adaptiveembed.data.datasets import FACTS, Benchmark

        benchmark = Benchmark(self.prog.split()[-1])
        self.description = "\n".join(_taught(FACTS[benchmark], benchmark))
        return super().format_help()


def _add_benchmark(benchmarks: argparse._SubParsersAction[_Teaching], name: str) -> None:
    parser = benchmarks.add_parser(
        name,
        help=SUMMARIES[name],
        epilog=f"example:\n{EXAMPLE.format(name=name)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--annotations", type=path, required=True, metavar="FOLDER")
    parser.add_argument("--media", type=path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--output", type=path, required=True, metavar="MANIFEST", help=".jsonl, .csv or .parquet"
    )
    parser.add_argument(
        "--strict", action="store_true", help="refuse what otherwise is left out: missing media"
    )
    if name in NARRATED:
        parser.add_argument(
            "--narrative",
            choices=NARRATIVES,
            default="first",
            metavar="RULE",
            help="of an image that has several: the first in the files (default), the longest, "
            "concat for all, or that of the annotator with the smallest number",
        )
    elif name == "activitynet":
        parser.add_argument(
            "--event-order",
            choices=EVENT_ORDERS,
            default="start",
            metavar="RULE",
            help="join sentences by the start of their events (default), or as in the file",
        )
    elif name == "macs":
        _add_macs(parser)


def _add_macs(parser: argparse.ArgumentParser) -> None:
    split = parser.add_mutually_exclusive_group()
    split.add_argument(
        "--seed",
        type=whole_number(0, LARGEST_SEED),
        default=1234,
        metavar="NUMBER",
        help="of the shuffle whose first tenth is the query split (default 1234)",
    )
    split.add_argument(
        "--query-list",
        type=path,
        metavar="FILE",
        help="the recordings of the query split, one name in each line, in place of a shuffle",
    )


def _taught(facts: Facts, benchmark: Benchmark) -> list[str]:
    """What is needed, under which names, and where it comes from."""
    from adaptiveembed.data.datasets.needed import needed_annotations, needed_media

    return [
        f"Makes a manifest of {facts.title} from its original files.",
        "",
        "The folder of annotations holds",
        *(f"  {line}" for line in needed_annotations(benchmark)),
        f"as published by: {facts.annotations_from}.",
        "",
        "The folder of media holds",
        *(f"  {line}" for line in needed_media(benchmark)),
        f"where ID is {facts.called},",
        f"as published by: {facts.media_from}.",
        "",
        "Worth knowing:",
        *(line for remark in facts.remarks for line in _folded(remark)),
    ]


def _folded(remark: str) -> list[str]:
    return textwrap.wrap(remark, 76, initial_indent="  - ", subsequent_indent="    ")


def build(arguments: argparse.Namespace) -> None:
    """Write the manifest and its record, and say how its counts compare."""
    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.data.datasets import Benchmark, compared, write
    from adaptiveembed.data.datasets import build as built_from
    from adaptiveembed.data.datasets.building import told_absent

    with ShownProgress() as announce:
        built = built_from(
            Benchmark(arguments.benchmark),
            arguments.annotations,
            arguments.media,
            _rules(arguments),
            strict=arguments.strict,
            progress=announce("reading annotations"),
        )
    record = write(built, arguments.output)
    for line in (*told_absent(built), *compared(built)):
        print(line)
    output = arguments.output
    print(f"The manifest is {output}, how it was made is in {record}.")
    print(f"Next: adaptiveembed encode {output} --output features")


def _rules(arguments: argparse.Namespace) -> BuildRules:
    """The rules that concern this benchmark, the others as they are by default."""
    from adaptiveembed.data.datasets import BuildRules, EventOrder, NarrativeChoice

    if arguments.benchmark in NARRATED:
        return BuildRules(narrative=NarrativeChoice(arguments.narrative))
    if arguments.benchmark == "activitynet":
        return BuildRules(event_order=EventOrder(arguments.event_order))
    if arguments.benchmark == "macs":
        return BuildRules(seed=arguments.seed, query_list=arguments.query_list)
    return BuildRules()

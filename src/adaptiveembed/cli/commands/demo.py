"""The command ``demo``: everything from made-up scenes to a report, and a few searches."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from adaptiveembed.cli.arguments import LARGEST_SEED, add_command, assignment, path, whole_number

if TYPE_CHECKING:
    from rich.console import Console

    from adaptiveembed.pipeline.demo import Demo
    from adaptiveembed.pipeline.searching import Searcher

NAME = "demo"
DEFAULT_OUTPUT = Path("demo-output")
DEFAULT_ITEMS = 6000
SHOWN = 3
TYPED_QUERY = (
    "A lake with mountains in the distance on a cloudy evening. There are two small red boats, and "
    "a big yellow balloon high up on the left."
)

ABOUT = """\
Shows the whole way on made-up scenes, each a picture and what somebody says of
it: encodes them, trains candidates and a policy, trains MetaEmbed as a
baseline, evaluates both directions, writes a report, and searches by a text and
a picture.

Nothing is downloaded. It takes about five minutes on two cores and 3 GB. What
is done is kept: the same command goes on after Ctrl-C, and when all is done it
only searches again.
"""

EXAMPLES = """\
  adaptiveembed demo
  adaptiveembed demo --items 2000 --output small
      fewer scenes: quicker, and less is learned
  adaptiveembed demo --fresh
      remove what an earlier demo wrote, and begin anew
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="train, evaluate and search on made-up scenes",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument(
        "--items",
        type=whole_number(200, 100_000),
        default=DEFAULT_ITEMS,
        metavar="NUMBER",
        help="scenes in all, of which a sixth are queries (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(0, LARGEST_SEED),
        default=0,
        metavar="NUMBER",
        help="another number is other scenes and other weights (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=path,
        default=DEFAULT_OUTPUT,
        metavar="FOLDER",
        help="where everything is written (default: %(default)s)",
    )
    parser.add_argument("--fresh", action="store_true", help="remove an earlier demo there first")
    parser.add_argument(
        "--set",
        type=assignment,
        action="append",
        default=[],
        dest="assignments",
        metavar="KEY=VALUE",
        help="change one setting of both recipes; may be given often",
    )


def run(arguments: argparse.Namespace) -> None:
    """Make the demo or go on with it, show its result, and search."""
    from rich.console import Console

    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.pipeline.demo import DemoSettings, make_demo, remove_demo
    from adaptiveembed.pipeline.model import AdaptiveEmbed
    from adaptiveembed.pipeline.searching import Searcher

    settings = DemoSettings(
        arguments.output, arguments.items, arguments.seed, tuple(arguments.assignments)
    )
    if arguments.fresh:
        remove_demo(settings.output)
    try:
        with ShownProgress() as announce:
            demo = make_demo(settings, announce)
            model = AdaptiveEmbed.from_pretrained(demo.run / "model")
            searcher = Searcher.over(model, demo.dataset, announce("embedding the gallery"))
    except KeyboardInterrupt as interruption:
        again = str(interruption) or "the same command goes on from there"
        raise KeyboardInterrupt(again) from None
    _show(Console(), demo, searcher)


def _show(console: Console, demo: Demo, searcher: Searcher) -> None:
    """The table, two searches with the reasons for their capacity, and what to do next."""
    from rich.text import Text

    from adaptiveembed.cli.finding import print_findings
    from adaptiveembed.pipeline.searching import ask

    console.print(demo.report.headline())
    for query in (TYPED_QUERY, demo.picture):
        print_findings(console, searcher.answer(ask(searcher.model, query), SHOWN), explain=True)
    for line in _next(demo):
        console.print(Text(line), soft_wrap=True)  # a path that is cut cannot be copied


def _next(demo: Demo) -> Iterator[str]:
    yield f"\nThe report, with figures and pictures: {demo.page}"
    yield "Search yourself:"
    yield f'  adaptiveembed search {demo.run} "two red boats on a lake" --explain'
    yield f"  adaptiveembed search {demo.run} --file {demo.picture}"

"""The arguments of every command, and what its exit status says."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from adaptiveembed import __version__
from adaptiveembed.errors import AdaptiveEmbedError

INTERRUPTED = 130
"""Exit status after Ctrl-C, by the convention of shells."""
SMALLEST_DEMO = 30
LARGEST_DEMO = 1_000_000
LARGEST_SEED = 2**63 - 1

ABOUT = """\
Search text, images, video and audio with as many vectors as each query needs.

An item is an ordered set of vectors in groups, a coarse one first and finer
ones behind it. A query activates the first few of each group: its selection,
written 1+0 or 2+2. It is compared with the same positions of every gallery item
by SetSim, the mean cosine of the best one-to-one match: symmetric, and between
-1 and 1.
"""

EXAMPLES = """\
examples:
  adaptiveembed demo
      evaluate and search built-in synthetic items, without any download
  adaptiveembed demo --items 6000 --seed 7 --output results
      other items, and more of them; also write the report and the runs
  adaptiveembed demo --help
      what the demo shows and how to read it

exit status:
  0 done, 1 an error that the message explains, 2 a wrong command line,
  130 interrupted by Ctrl-C
"""

ABOUT_DEMO = """\
Evaluates and searches synthetic candidate sets of two modalities, in both
directions.

Half of the items are clear from their first vector; the others stand in crowds
of near-twins that only finer vectors tell apart, in one group or the other. So
the best selection differs from query to query. The report compares

  * every selection that the paper's policy can reach, fixed for all queries,
  * the best of all fixed selections,
  * the oracle, which knows the answers and gives every query its own best one.

Then it says how much of the oracle's lead is luck, and shows a few searches.
Nothing here is learned, and the items are made up: this shows the machinery,
not what to expect of real media.
"""

EXAMPLES_DEMO = """\
example:
  adaptiveembed demo --items 6000 --seed 7 --output results
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _print_what_the_terminal_can_show()
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    try:
        _demo(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # whoever read our output has gone, so there is nobody to tell, at exit neither
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (AdaptiveEmbedError, OSError) as error:
        return _fail(f"error: {error}", 1)
    except (MemoryError, RuntimeError) as error:
        if not _is_lack_of_memory(error):
            raise
        return _fail("error: not enough memory for so many items; give fewer --items", 1)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="adaptiveembed",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"adaptiveembed {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_demo(commands)
    return parser


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    demo = commands.add_parser(
        "demo",
        help="evaluate and search built-in synthetic items, in under a minute",
        description=ABOUT_DEMO,
        epilog=EXAMPLES_DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument(
        "--items",
        type=_whole_number(SMALLEST_DEMO, LARGEST_DEMO),
        default=3000,
        metavar="NUMBER",
        help="how many pairs there are, a third of them queries (default: %(default)s)",
    )
    demo.add_argument(
        "--seed",
        type=_whole_number(0, LARGEST_SEED),
        default=0,
        metavar="NUMBER",
        help="which items are made; equal seeds give equal reports (default: %(default)s)",
    )
    demo.add_argument(
        "--output",
        type=_folder,
        metavar="FOLDER",
        help="also write report.json, report.md, and runs and judgements in TREC format here; "
        "the folder is new or empty",
    )


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    """A type of argument: whole numbers within bounds."""

    def read(text: str) -> int:
        # more digits than the bound has are not read, for Python refuses thousands of them
        if text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")

    return read


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("'' is no folder; write . for the current one")
    return Path(text)


def _demo(arguments: argparse.Namespace) -> None:
    from adaptiveembed.cli.demo import DemoSettings, show_demo

    show_demo(DemoSettings(arguments.items, arguments.seed, arguments.output))


def _is_lack_of_memory(error: Exception) -> bool:
    # torch says so in the words of its allocator only
    return isinstance(error, MemoryError) or "can't allocate memory" in f"{error}"


def _fail(message: str, status: int) -> int:
    print(f"adaptiveembed: {message}", file=sys.stderr)
    return status


def _print_what_the_terminal_can_show() -> None:
    """Replace what the terminal's encoding lacks, for example arrows, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

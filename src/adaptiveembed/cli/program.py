"""The arguments of every command, and what its exit status says."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from adaptiveembed import __version__
from adaptiveembed.cli.commands import (
    data,
    demo,
    encode,
    evaluate,
    inspect,
    search,
    study,
    table,
    train,
)
from adaptiveembed.errors import AdaptiveEmbedError

INTERRUPTED = 130
"""Exit status after Ctrl-C, by the convention of shells."""

COMMANDS: tuple[ModuleType, ...] = (
    demo,
    data,
    encode,
    train,
    evaluate,
    search,
    inspect,
    study,
    table,
)
"""Every command, in the order in which a newcomer meets them."""

ABOUT = """\
Search text, images, video and audio with as many vectors as each query needs.

An item is an ordered set of vectors in groups, a coarse one first and finer
ones behind it. A query activates the first few of each group: its selection,
written 1+0 or 2+2. It is compared with the same positions of every gallery item
by SetSim, the mean cosine of the best one-to-one match: symmetric, and between
-1 and 1. A policy, learned from what each expansion gains in retrieval, decides
on the selection of every query.
"""

EXAMPLES = """\
examples:
  adaptiveembed demo
      train on made-up scenes, evaluate, search, and write a report
  adaptiveembed data check pairs.csv
  adaptiveembed encode pairs.csv --output features
  adaptiveembed train features --output runs/mine
  adaptiveembed evaluate runs/mine
  adaptiveembed search runs/mine "two red kites over a beach"
  adaptiveembed inspect runs/mine
  adaptiveembed study scenes --output study
  adaptiveembed table image-text --manifests manifests --output table

exit status:
  0 done, 1 an error that the message explains, 2 a wrong command line,
  130 interrupted by Ctrl-C
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _print_what_the_terminal_can_show()
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    return _status(arguments)


def _status(arguments: argparse.Namespace) -> int:
    """What running the command came to; with ``--debug``, errors are raised as they are."""
    try:
        arguments.work(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt as interruption:
        return _fail(f"interrupted{_farewell(interruption)}", INTERRUPTED)
    except BrokenPipeError:
        # whoever read our output has gone, so there is nobody to tell, at exit neither
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (AdaptiveEmbedError, OSError) as error:
        if arguments.debug:
            raise
        return _fail(f"error: {error}", 1)
    except (MemoryError, RuntimeError) as error:
        if arguments.debug or not _is_lack_of_memory(error):
            raise
        return _fail("error: not enough memory; use fewer items or smaller batches", 1)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="adaptiveembed",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"adaptiveembed {__version__}")
    parser.add_argument("--debug", action="store_true", help="show where an error was raised")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in COMMANDS:
        command.add(commands)
        commands.choices[command.NAME].set_defaults(work=command.run)
    return parser


def _farewell(interruption: KeyboardInterrupt) -> str:
    """What was said about going on, if anything was."""
    return f"; {interruption}" if str(interruption) else ""


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

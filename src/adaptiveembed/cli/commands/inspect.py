"""The command ``inspect``: what a file or folder of this library holds."""

from __future__ import annotations

import argparse

from adaptiveembed.cli.arguments import add_command, path

NAME = "inspect"

ABOUT = """\
Says what a file or folder holds: a manifest, a recipe, a dataset, a store of
features, a run, or a model. With --check, stored features are compared with
their checksums, and a model computes its self-test again.
"""

EXAMPLES = """\
  adaptiveembed inspect runs/mine
  adaptiveembed inspect features --check
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="say what a file or folder of this library holds",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument("path", type=path, metavar="PATH")
    parser.add_argument("--check", action="store_true", help="compare everything with checksums")


def run(arguments: argparse.Namespace) -> None:
    """Print what is there."""
    from rich.console import Console

    from adaptiveembed.cli.inspecting import described

    console = Console(soft_wrap=True)
    for line in described(arguments.path, check=arguments.check):
        console.print(line, highlight=False, markup=False)

"""The command ``inspect``: what a file or folder of this library holds, or what an encoder is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from adaptiveembed.cli.arguments import add_command, path

NAME = "inspect"

ABOUT = """\
Says what a file or folder holds: a manifest, a recipe, a dataset, a store of
features, a run, or a model. With --check, stored features are compared with
their checksums, and a model computes its self-test again.

inspect encoder NAME loads an encoder and says what it is: its class, width,
pooling, modalities, limits and fingerprint. NAME is what encode takes, or the
folder of a checkpoint.
"""

EXAMPLES = """\
  adaptiveembed inspect runs/mine
  adaptiveembed inspect features --check
  adaptiveembed inspect encoder clip:openai/clip-vit-base-patch32
"""
ENCODER = "encoder"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="say what a file or folder of this library holds",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument(
        "path", type=path, metavar="PATH", help=f"a file or folder, or the word {ENCODER}"
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help=f"behind {ENCODER}: which one, or its folder"
    )
    parser.add_argument("--check", action="store_true", help="compare everything with checksums")


def run(arguments: argparse.Namespace) -> None:
    """Print what is there."""
    from rich.console import Console

    console = Console(soft_wrap=True)
    for line in _lines(arguments):
        console.print(line, highlight=False, markup=False)


def _lines(arguments: argparse.Namespace) -> Iterator[str]:
    from adaptiveembed.cli.inspecting import described, described_encoder
    from adaptiveembed.errors import SettingError

    asks_for_encoder = str(arguments.path) == ENCODER
    if arguments.name is not None and not asks_for_encoder:
        raise SettingError(
            f"{arguments.path} and {arguments.name} are two things; give one PATH, or write "
            f"{ENCODER} before the name of an encoder"
        )
    if asks_for_encoder and arguments.name is None and not arguments.path.exists():
        raise SettingError(
            f"{ENCODER} lacks the name of one; write it behind, for example "
            f"clip:openai/clip-vit-base-patch32"
        )
    if arguments.name is not None:
        return described_encoder(arguments.name)
    return described(arguments.path, check=arguments.check)

"""The command ``inspect``: what a file or folder of this library holds, or what an encoder is."""

from __future__ import annotations

import argparse

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

    from adaptiveembed.cli.inspecting import described, described_encoder
    from adaptiveembed.errors import SettingError

    console = Console(soft_wrap=True)
    lines = described(arguments.path, check=arguments.check)
    if arguments.name is not None:
        if str(arguments.path) != ENCODER:
            raise SettingError(
                f"{arguments.path} and {arguments.name} are two things; give one PATH, or write "
                f"{ENCODER} before the name of an encoder"
            )
        lines = described_encoder(arguments.name)
    for line in lines:
        console.print(line, highlight=False, markup=False)

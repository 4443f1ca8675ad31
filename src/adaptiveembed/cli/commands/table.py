"""The command ``table``: a table of the paper, our figures above the printed ones."""

from __future__ import annotations

import argparse

from adaptiveembed.cli.arguments import add_command, assignment, folder, path

NAME = "table"

ABOUT = """\
Makes a table of the paper from manifests to figures: encodes every dataset by
every encoder of the table, trains ours and MetaEmbed on the sources, evaluates
every row in full galleries, and prints our figures above the paper's.

The tables are image-text (trained on COCO, the others zero-shot), video-text
and audio-text (one model of both datasets each). The folder of manifests holds
a file for each dataset, coco.jsonl and so on: see  adaptiveembed data build.

What is done is kept: the same command goes on after Ctrl-C or a kill. A row
whose encoder cannot be had is left open and told at the end.
"""

EXAMPLES = """\
  adaptiveembed table image-text --manifests manifests --output table
  adaptiveembed table image-text --manifests manifests --output table \\
      --row AdaptiveEmbed --row "MetaEmbed (2/4)" \\
      --encoder qwen-2b=qwen3-vl:models/Qwen3-VL-Embedding-2B
      two rows alone, with an encoder that lies in a folder
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="make a table of the paper",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument(
        "table", metavar="TABLE", help="image-text, video-text, audio-text, or a file of your own"
    )
    parser.add_argument("--manifests", type=path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=folder, required=True, metavar="FOLDER")
    parser.add_argument(
        "--row", action="append", default=[], metavar="METHOD", help="only this row; often"
    )
    parser.add_argument(
        "--encoder",
        type=assignment,
        action="append",
        default=[],
        metavar="NAME=KIND:SOURCE",
        help="where an encoder of the table is found, in place of where the table says",
    )
    parser.add_argument(
        "--recipe", default="paper", metavar="NAME", help="that of AdaptiveEmbed (paper)"
    )
    parser.add_argument(
        "--against",
        default="paper-metaembed",
        metavar="NAME",
        help="that of MetaEmbed (paper-metaembed)",
    )
    parser.add_argument(
        "--set",
        type=assignment,
        action="append",
        default=[],
        dest="assignments",
        metavar="KEY=VALUE",
        help="change one setting of both recipes",
    )


def run(arguments: argparse.Namespace) -> None:
    """Do what is left of the table, and print it."""
    from rich.console import Console

    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.errors import TrainingError
    from adaptiveembed.pipeline.paper_tables import read_table
    from adaptiveembed.pipeline.reproducing import Reproduction

    table = read_table(arguments.table)
    table = table.with_encoders(dict(one.split("=", 1) for one in arguments.encoder))
    if arguments.row:
        table = table.with_rows(arguments.row)
    try:
        with ShownProgress() as announce:
            outcome = Reproduction(
                table,
                arguments.manifests,
                arguments.output,
                arguments.recipe,
                arguments.against,
                tuple(arguments.assignments),
                announce,
            ).run()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("what is done is kept, and the same command goes on") from None
    console = Console()
    console.print(outcome.section().table())
    console.print(f"\nThe table is in {arguments.output}.", soft_wrap=True)
    if outcome.problems:
        told = "\n".join(f"  {method}: {why}" for method, why in outcome.problems.items())
        raise TrainingError(f"{len(outcome.problems)} rows are left open:\n{told}")

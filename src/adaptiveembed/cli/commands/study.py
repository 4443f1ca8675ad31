"""The command ``study``: the comparison of all methods over seeds, resumable."""

from __future__ import annotations

import argparse

from adaptiveembed.cli.arguments import add_command, assignment, folder, whole_number

NAME = "study"
SCENES = "scenes"
MEDIA = ("image", "video", "audio")

ABOUT = """\
Trains AdaptiveEmbed and its rivals over several seeds on one corpus, and
compares the policy with each of the 20 fixed selections, with MetaEmbed's
budgets and with the oracle: mAP, capacity, the share of the oracle's lead that
was gained, and two-sided p from 10,000 bootstrap draws of the queries, whose
precision is averaged over the seeds.

The corpus is the built-in scenes (10,000 training pairs, 2,000 queries, a
gallery of 12,000), or a dataset folder of your own. What is done is kept:
the same command goes on after Ctrl-C or a kill.
"""

EXAMPLES = """\
  adaptiveembed study scenes --output study
      all three media and three seeds; some hours on two cores
  adaptiveembed study scenes --medium image --seeds 1 --output study
  adaptiveembed study features --output study \\
      --recipe recipes/openclipart.toml \\
      --against recipes/openclipart-metaembed.toml
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="compare all methods over seeds",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument("corpus", metavar="CORPUS", help="scenes, or a dataset folder")
    parser.add_argument("--output", type=folder, required=True, metavar="FOLDER")
    parser.add_argument(
        "--medium", choices=MEDIA, action="append", help="of scenes; may be given often"
    )
    parser.add_argument(
        "--seeds", type=whole_number(1, 100), default=3, metavar="NUMBER", help="how many"
    )
    parser.add_argument("--training", type=whole_number(100, 900_000), default=10_000)
    parser.add_argument("--queries", type=whole_number(10, 100_000), default=2_000)
    parser.add_argument(
        "--recipe", default="laptop", metavar="NAME", help="that of AdaptiveEmbed (laptop)"
    )
    parser.add_argument(
        "--against",
        action="append",
        metavar="NAME",
        help="recipes of other methods (default: metaembed-small)",
    )
    parser.add_argument(
        "--set",
        type=assignment,
        action="append",
        default=[],
        dest="assignments",
        metavar="KEY=VALUE",
        help="change one setting of all recipes",
    )


def run(arguments: argparse.Namespace) -> None:
    """Do what is left of the study, and print its tables."""
    from pathlib import Path

    from rich.console import Console

    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.pipeline.study import Study, scenes_corpora

    folder = arguments.output
    rivals = tuple(arguments.against or ["metaembed-small"])
    study = Study(folder, arguments.recipe, rivals, tuple(arguments.assignments))
    console = Console()
    try:
        with ShownProgress() as announce:
            corpora = {Path(arguments.corpus).name: Path(arguments.corpus)}
            if arguments.corpus == SCENES:
                counts = arguments.training, arguments.queries
                corpora = scenes_corpora(folder, arguments.medium or MEDIA, *counts, announce)
            for name, corpus in corpora.items():
                report = study.of(name, corpus, range(arguments.seeds), announce)
                console.print(report.table())
    except KeyboardInterrupt:
        raise KeyboardInterrupt("what is done is kept, and the same command goes on") from None
    console.print(f"\nTables and ranks are in {folder}.", soft_wrap=True)

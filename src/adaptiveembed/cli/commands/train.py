"""The command ``train``: dataset folders to a run folder with a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from adaptiveembed.cli.arguments import add_command, assignment, path

if TYPE_CHECKING:
    from adaptiveembed.pipeline.recipe import Recipe
    from adaptiveembed.training.distributed import Process

NAME = "train"

ABOUT = """\
Trains a recipe on dataset folders into a run folder: first the candidates
(Stage I), then the policy that allocates them (Stage II).

Built-in recipes: laptop (the default), paper, tst (the paper's policy at a
laptop's size), the baselines metaembed and metaembed-small, and the ablations
without-mgcl, without-feedback (of tst) and single-group. A file ending in .toml
is a recipe too, and may build on another one by  base = "laptop".

Ctrl-C finishes the step that is being made and saves; --resume goes on, and so
it does after a kill, bit for bit as if nothing had happened.

Several processes, such as one for each GPU, train one model: they share every
batch, and all of it are negatives.

  torchrun --nproc-per-node 4 -m adaptiveembed.cli train ...
"""

EXAMPLES = """\
  adaptiveembed train features --output runs/mine
  adaptiveembed train features --output runs/mine --resume
  adaptiveembed train features --output runs/small \\
      --set representation.embedder.dim=128 \\
      --set representation.training.epochs=5
  adaptiveembed train features --recipe paper --dry-run
      print every setting, with what it means, and train nothing
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="train candidates and a policy on dataset folders",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument(
        "datasets", type=path, nargs="*", metavar="DATASET", help="dataset folders, trained jointly"
    )
    parser.add_argument("--output", type=path, metavar="RUN", help="the run folder")
    parser.add_argument(
        "--recipe", default="laptop", metavar="NAME", help="a built-in recipe, or a .toml file"
    )
    parser.add_argument(
        "--set",
        type=assignment,
        action="append",
        default=[],
        dest="assignments",
        metavar="KEY=VALUE",
        help="change one setting of the recipe; may be given often",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in the folder")
    parser.add_argument("--dry-run", action="store_true", help="print the settings, train nothing")


def run(arguments: argparse.Namespace) -> None:
    """Train, or print what would be trained."""
    from adaptiveembed.pipeline.explained import explained_recipe
    from adaptiveembed.pipeline.recipe_files import read_recipe
    from adaptiveembed.training.distributed import process_group

    recipe = read_recipe(arguments.recipe, arguments.assignments)
    if arguments.dry_run:
        print(explained_recipe(recipe), end="")
        return
    with process_group() as process:
        _train(arguments, recipe, process)


def _train(arguments: argparse.Namespace, recipe: Recipe, process: Process) -> None:
    from rich.console import Console

    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.errors import SettingError
    from adaptiveembed.pipeline.announcing import unannounced
    from adaptiveembed.pipeline.cautions import cautions
    from adaptiveembed.pipeline.dataset import common_encoders, open_dataset
    from adaptiveembed.pipeline.fitting import RECIPE, fit, has_learned
    from adaptiveembed.pipeline.folder import read_config
    from adaptiveembed.pipeline.paired import JointPairs
    from adaptiveembed.pipeline.saving import read_facts

    if not arguments.datasets or arguments.output is None:
        raise SettingError("name at least one DATASET and an --output folder, or use --dry-run")
    if has_learned(arguments.output) and not arguments.resume:
        raise SettingError(
            f"{arguments.output} holds a run already; add --resume to go on with it, or choose "
            f"another folder"
        )
    if arguments.resume and not (arguments.output / RECIPE).exists():
        raise SettingError(f"{arguments.output} holds no run to go on with; leave out --resume")
    datasets = [open_dataset(folder) for folder in arguments.datasets]
    # one of several processes speaks for all
    console = Console(stderr=True, soft_wrap=True, quiet=not process.is_first)
    for dataset in datasets:
        if dataset.left_out:
            console.print(
                f"{dataset.folder}: {len(dataset.left_out)} pairs are left out, because a side of "
                f"them is not encoded",
                style="yellow",
            )
    try:
        with ShownProgress() as shown:
            model = fit(
                JointPairs(tuple(each.pairs for each in datasets)),
                recipe,
                arguments.output,
                common_encoders(datasets),
                announce=shown if process.is_first else unannounced,
                folders=arguments.datasets,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the same command goes on with --resume") from None
    for caution in cautions(read_facts(read_config(model)).figures):
        console.print(caution, style="yellow")
    if process.is_first:
        print(f"The model is in {model}. Next: adaptiveembed evaluate {arguments.output}")

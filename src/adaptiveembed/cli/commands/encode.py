"""The command ``encode``: a manifest to a dataset folder of features."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from adaptiveembed.cli.arguments import add_command, folder, named_text, path, whole_number

if TYPE_CHECKING:
    from rich.console import Console

    from adaptiveembed.encoders.driving import EncodingSummary
    from adaptiveembed.structure.direction import Modality
    from adaptiveembed.training.distributed import Process

NAME = "encode"

ABOUT = """\
Encodes both sides of a manifest by frozen encoders into a dataset folder, which
train, evaluate and search read.

A manifest is a file of JSON Lines (.jsonl), CSV or Parquet with the columns id,
text, media (the path of a picture, video or sound, relative to the manifest)
and, if wanted, split (train or query). Without splits a tenth becomes queries.

What is encoded already is skipped, so that the same command goes on after
Ctrl-C. An item that cannot be read is listed at the end and left out.

Several processes, such as one for each GPU, share the work:

  torchrun --nproc-per-node 4 -m adaptiveembed.cli encode ...
"""

EXAMPLES = """\
  adaptiveembed encode pairs.csv --output features
      both sides by the built-in encoder, which needs no download
  adaptiveembed encode pairs.csv --output features \\
      --encoder text=my_encoders:Text --encoder image=my_encoders:Picture
      by your own encoders: module:object, importable from here
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="encode a manifest of texts and media into a dataset folder",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument("manifest", type=path, metavar="MANIFEST", help="the list of pairs")
    parser.add_argument(
        "--output", type=folder, required=True, metavar="FOLDER", help="the dataset folder"
    )
    parser.add_argument(
        "--encoder",
        type=named_text,
        action="append",
        default=[],
        metavar="MODALITY=NAME",
        help="text=NAME or image=NAME (video, audio): training-free, which is the default, "
        "KIND:SOURCE of a published checkpoint, or module:object",
    )
    parser.add_argument(
        "--batch-size",
        type=whole_number(1, 1_000_000),
        default=64,
        metavar="NUMBER",
        help="items encoded at a time (default: %(default)s)",
    )
    parser.add_argument(
        "--states",
        choices=("all", "none", "live"),
        default="all",
        help="hidden states, which take most of the room: keep them beside the global features "
        "(all, the default), leave them out, so that the global feature is all that is learned "
        "from (none), or encode them anew whenever they are read (live): slow, and media and "
        "encoder must stay",
    )
    parser.add_argument(
        "--strict", action="store_true", help="end at the first item that cannot be read"
    )


def run(arguments: argparse.Namespace) -> None:
    """Encode, and say what became of every item."""
    from rich.console import Console

    from adaptiveembed.training.distributed import process_group, wait_for_all

    console = Console(soft_wrap=True)
    with process_group() as process:
        try:
            summaries = _encode(arguments, process)
        except KeyboardInterrupt:
            told = "what is encoded is kept, and the same command goes on"
            raise KeyboardInterrupt(told) from None
        who = f"process {process.rank + 1} of {process.size}: " if process.size > 1 else ""
        show_summaries(console, summaries, who)
        wait_for_all(process)
        if process.is_first:
            show_next(console, arguments.output)


def _encode(arguments: argparse.Namespace, process: Process) -> Mapping[Modality, EncodingSummary]:
    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.data.pairs import read_manifest
    from adaptiveembed.encoders.user import TRAINING_FREE, load_encoders
    from adaptiveembed.errors import SettingError
    from adaptiveembed.pipeline.announcing import unannounced
    from adaptiveembed.pipeline.dataset import KeptStates, encode_dataset, medium_of
    from adaptiveembed.structure.direction import Modality

    manifest = read_manifest(arguments.manifest)
    modalities = (Modality.TEXT, medium_of(manifest))
    names = dict.fromkeys(modalities, TRAINING_FREE)
    for modality, name in arguments.encoder:
        if modality not in modalities:
            raise SettingError(
                f"--encoder {modality}={name}, and the manifest is of {' and '.join(modalities)}; "
                f"name one of these"
            )
        names[Modality(modality)] = name
    encoders = load_encoders(names)
    with ShownProgress() as shown:
        return encode_dataset(
            manifest,
            encoders,
            names,
            arguments.output,
            states=KeptStates(arguments.states),
            batch_size=arguments.batch_size,
            strict=arguments.strict,
            announce=shown if process.is_first else unannounced,
        )


def show_summaries(
    console: Console, summaries: Mapping[Modality, EncodingSummary], who: str = ""
) -> None:
    """What became of each side, and a table of everything that failed."""
    for modality, summary in summaries.items():
        console.print(f"{who}{modality}: {summary}")
        listed = [("left out", "why"), *summary.failed] if summary.failed else []
        width = max((len(item) for item, _ in listed), default=0)
        for item, reason in listed:
            # a line each, whatever its length, so that paths can be copied
            console.print(f"  {item + ':':<{width + 1}} {reason}", style="yellow", markup=False)


def show_next(console: Console, folder: Path) -> None:
    """Where the dataset is, and what to do with it."""
    console.print(f"\nThe dataset is in {folder}. Next: adaptiveembed train {folder} --output RUN")

"""The command ``search``: queries of any kind in the gallery of a dataset."""

from __future__ import annotations

import argparse

from adaptiveembed.cli.arguments import add_command, named_path, path, share, whole_number, words

NAME = "search"

ABOUT = """\
Searches all pairs of a dataset with a trained model: a text finds media, and a
file finds texts. Shows what was found, how many vectors the query was given,
and which vectors matched which.
"""

EXAMPLES = """\
  adaptiveembed search runs/mine "two red kites over a beach"
  adaptiveembed search runs/mine --file kites.jpg -k 5
  adaptiveembed search runs/mine "a beach" --explain
      also say how probable each expansion was, and what the bank answered
  adaptiveembed search runs/mine "a beach" --selection 2+2
  adaptiveembed search runs/mine --features text=queries.npz
      for models of features that were made elsewhere
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="search a dataset by texts or files",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument("run", type=path, metavar="RUN", help="a run or model folder")
    parser.add_argument("texts", type=words, nargs="*", metavar="TEXT", help="queries in words")
    parser.add_argument(
        "--file",
        type=path,
        action="append",
        default=[],
        metavar="FILE",
        help="a picture, video or sound as the query; may be given often",
    )
    parser.add_argument(
        "--features",
        type=named_path,
        action="append",
        default=[],
        metavar="MODALITY=FILE",
        help="queries by their features, as data import takes them; may be given often",
    )
    parser.add_argument(
        "-k",
        type=whole_number(1, 100_000),
        default=5,
        metavar="NUMBER",
        help="how many items are listed (default: %(default)s)",
    )
    parser.add_argument(
        "--data", type=path, metavar="DATASET", help="a dataset folder (default: the run's own)"
    )
    parser.add_argument("--explain", action="store_true", help="say how each capacity came about")
    parser.add_argument("--selection", metavar="P+Q", help="one selection for all, such as 2+2")
    parser.add_argument(
        "--capacity", type=whole_number(1, 8), metavar="NUMBER", help="one capacity for all"
    )
    parser.add_argument(
        "--threshold", type=share, metavar="SHARE", help="another threshold than was chosen"
    )


def run(arguments: argparse.Namespace) -> None:
    """Search, and print what was found."""
    from rich.console import Console

    from adaptiveembed.cli.finding import print_findings
    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.errors import SettingError
    from adaptiveembed.pipeline.dataset import open_dataset, require_encoders
    from adaptiveembed.pipeline.fitting import model_folder, run_datasets
    from adaptiveembed.pipeline.inputs import known_modality
    from adaptiveembed.pipeline.model import AdaptiveEmbed
    from adaptiveembed.pipeline.searching import Choice, Searcher, ask, ask_features

    if not (arguments.texts or arguments.file or arguments.features):
        raise SettingError(
            "there is no query; give a text in quotes, --file FILE, or --features MODALITY=FILE"
        )
    model = AdaptiveEmbed.from_pretrained(model_folder(arguments.run))
    dataset = open_dataset(arguments.data or run_datasets(arguments.run)[0])
    require_encoders(dataset, model.facts.encoders)
    choice = Choice(arguments.selection, arguments.capacity, arguments.threshold)
    # what cannot be asked is told before the long work
    asked = [ask(model, query, choice) for query in (*arguments.texts, *arguments.file)]
    for name, file in arguments.features:
        asked += ask_features(model, known_modality(name), file, choice)
    with ShownProgress() as announce:
        searcher = Searcher.over(model, dataset, announce("embedding the gallery"))
    console = Console()
    for one in asked:
        print_findings(console, searcher.answer(one, arguments.k), explain=arguments.explain)

"""The command ``evaluate``: trained runs on the query split of a dataset."""

from __future__ import annotations

import argparse

from adaptiveembed.cli.arguments import add_command, folder, path

NAME = "evaluate"

ABOUT = """\
Evaluates runs on the queries of a dataset, in both directions: every pair of
the dataset is in the gallery, and each query should find its own pair.

For AdaptiveEmbed the table has every selection that its policy can reach, fixed
for all queries; the best of all fixed ones; the policy's own; and the oracle,
which knows the answers. Runs of metaembed add a row for each budget. Below
stand how much of the oracle's lead is more than luck, and how sure it is that
the policy beats each fixed selection.
"""

EXAMPLES = """\
  adaptiveembed evaluate runs/mine
      on the dataset that it was trained on; report.html, report.md, report.json
      and the ranks of every query are written into runs/mine/evaluation
  adaptiveembed evaluate runs/mine runs/metaembed --data features --output both
      side by side
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="evaluate trained runs on the queries of a dataset",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument("runs", type=path, nargs="+", metavar="RUN", help="run or model folders")
    parser.add_argument(
        "--data", type=path, metavar="DATASET", help="a dataset folder (default: the run's own)"
    )
    parser.add_argument(
        "--output",
        type=folder,
        metavar="FOLDER",
        help="where reports and ranks are written (default: RUN/evaluation)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Evaluate, print and write."""
    from rich.console import Console

    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.pipeline.dataset import open_dataset
    from adaptiveembed.pipeline.fitting import run_datasets
    from adaptiveembed.pipeline.page import write_page_of_runs
    from adaptiveembed.pipeline.reporting import evaluate_runs, write_results

    folder = arguments.data or run_datasets(arguments.runs[0])[0]
    dataset = open_dataset(folder)
    output = arguments.output or arguments.runs[0] / "evaluation"
    with ShownProgress() as announce:
        results = evaluate_runs(arguments.runs, dataset, announce)
    console = Console()
    console.print(results.report.table())
    write_results(results, output)
    page = write_page_of_runs(results, dataset, output, arguments.runs)
    console.print(f"\nReport and ranks are in {output}; to look at: {page}", soft_wrap=True)

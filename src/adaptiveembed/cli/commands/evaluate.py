"""The command ``evaluate``: trained runs and baselines on the query split of a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path

from adaptiveembed.cli.arguments import add_command, folder, named_path, path

NAME = "evaluate"

ABOUT = """\
Evaluates runs on the queries of a dataset, in both directions: every pair of
the dataset is in the gallery, and each query should find its own pair.

For AdaptiveEmbed the table has every selection that its policy can reach, fixed
for all queries; the best of all fixed ones; the policy's own; and the oracle,
which knows the answers. Runs of metaembed add a row for each budget. Below
stand how much of the oracle's lead is more than luck, and how sure it is that
the policy beats each fixed selection.

A baseline is an encoder as it is: a dataset folder that it made of the same
manifest. The kinds are
  single   one vector of each item, its global feature, by cosine
  maxsim   all hidden states of each item, as ColQwen2 is meant, by MaxSim
  pooled   the hidden states brought down to 2, 4 and 8 by clustering, by MaxSim
Its rows join the same tables.
"""

EXAMPLES = """\
  adaptiveembed evaluate runs/mine
      on the dataset that it was trained on; report.html, report.md, report.json
      and the ranks of every query are written into runs/mine/evaluation
  adaptiveembed evaluate runs/mine runs/metaembed --data features --output both
      side by side
  adaptiveembed evaluate runs/mine --baseline single=siglip \\
      --baseline maxsim=colqwen --baseline pooled=colqwen
      beside encoders whose features are in the folders siglip and colqwen
  adaptiveembed evaluate --data features --baseline single=siglip --output new
      encoders alone
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="evaluate trained runs and baselines on the queries of a dataset",
        about=ABOUT,
        examples=EXAMPLES,
    )
    parser.add_argument("runs", type=path, nargs="*", metavar="RUN", help="run or model folders")
    parser.add_argument(
        "--data", type=path, metavar="DATASET", help="a dataset folder (default: the run's own)"
    )
    parser.add_argument(
        "--baseline",
        type=named_path,
        action="append",
        default=[],
        metavar="KIND=FOLDER",
        help="the features of an encoder to compare with: single=FOLDER, maxsim=FOLDER or "
        "pooled=FOLDER; may be given often",
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
    from adaptiveembed.pipeline.baselines import evaluate_baseline, open_baselines
    from adaptiveembed.pipeline.dataset import open_dataset
    from adaptiveembed.pipeline.page import write_page_of_runs
    from adaptiveembed.pipeline.reporting import Results, evaluate_runs, write_results

    data, output = _places(arguments)
    dataset = open_dataset(data)
    baselines = open_baselines(arguments.baseline, dataset)
    with ShownProgress() as announce:
        of_runs = evaluate_runs(arguments.runs, dataset, announce)
        rivals = tuple(evaluate_baseline(one, announce) for one in baselines)
    results = Results(of_runs.title, of_runs.methods + rivals)
    console = Console()
    console.print(results.report.table())
    write_results(results, output)
    page = write_page_of_runs(results, dataset, output, arguments.runs)
    console.print(f"\nReport and ranks are in {output}; to look at: {page}", soft_wrap=True)


def _places(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """The dataset, and where the results go: what is not named is the first run's."""
    from adaptiveembed.errors import SettingError
    from adaptiveembed.pipeline.fitting import run_datasets

    runs, data, output = arguments.runs, arguments.data, arguments.output
    if not runs and not arguments.baseline:
        raise SettingError("there is nothing to evaluate; name a RUN, or --baseline KIND=FOLDER")
    if not runs and not (data and output):
        raise SettingError(
            "baselines without a run need --data DATASET, whose queries are asked, and --output "
            "FOLDER; name both, or a run"
        )
    return data or run_datasets(runs[0])[0], output or runs[0] / "evaluation"

"""The command ``demo``: synthetic items evaluated, analysed and searched before one's eyes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adaptiveembed.data.synthetic import synthetic_pairs
from adaptiveembed.errors import SettingError
from adaptiveembed.evaluation.analysis import Transfer, capacity_histogram, transfer_oracle
from adaptiveembed.evaluation.evaluate import (
    SelectionRanks,
    best_fixed,
    evaluate_every_selection,
    fixed_evaluation,
    oracle_evaluation,
    oracle_selections,
)
from adaptiveembed.evaluation.protocol import RetrievalTask, full_gallery
from adaptiveembed.evaluation.report import TIE_RULE, Report
from adaptiveembed.retrieval.ranking import Ranking
from adaptiveembed.retrieval.runs import qrels_to_trec, to_trec
from adaptiveembed.retrieval.search import search
from adaptiveembed.similarity.setsim import setsim_assignment
from adaptiveembed.structure.candidates import CAES, activate
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.groups import PAPER_LAYOUT
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import coarse_to_fine, every_prefix

LAYOUT = PAPER_LAYOUT
DIM = 64
DIRECTION = Direction(Modality.TEXT, Modality.IMAGE)
SEARCHED_QUERIES = 3
SHOWN_HITS = 3
RUN_DEPTH = 100


@dataclass(frozen=True)
class DemoSettings:
    """What the command line says of the demo."""

    items: int
    """Pairs in the gallery; a third of them are queries."""
    seed: int
    """Which items are made."""
    output: Path | None
    """Where report and runs are written, if at all."""


def show_demo(settings: DemoSettings) -> None:
    """Print the report, the analysis and a few searches, and write what was asked for."""
    if settings.output:
        make_empty_folder(settings.output)  # fails before the work, not after it
    console = Console()
    with console.status("making synthetic items"):
        tasks = demo_tasks(settings)
    with console.status("ranking under every selection"):
        tables = [evaluate_every_selection(task, every_prefix(LAYOUT)) for task in tasks]
        report = demo_report(tables)
    console.print(report.table())
    with console.status("separating gain from luck"):
        transfers = [transfer_oracle(one, np.random.default_rng(settings.seed)) for one in tables]
    for part in (*_analysis_parts(tables, transfers), *_search_parts(tables[0])):
        console.print(part)
    if settings.output:
        write_results(settings.output, report, tables)
        written = Text(f"\nReport, runs and judgements are in {settings.output}.")
        console.print(written, soft_wrap=True)  # a path that is cut cannot be copied


def make_empty_folder(folder: Path) -> None:
    """Make the folder unless it is there and empty; nothing is ever written over."""
    if folder.is_file():
        raise SettingError(f"{folder} is a file; give a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SettingError(f"folder {folder} is not empty; give a new or an empty one")


def demo_tasks(settings: DemoSettings) -> tuple[RetrievalTask, RetrievalTask]:
    """Both directions over synthetic pairs, of which the last third are the queries."""
    text, image = synthetic_pairs(settings.items, LAYOUT, DIM, settings.seed)
    ids = [f"item-{number}" for number in range(settings.items)]
    return full_gallery(ids, text, image, ids[-(settings.items // 3) :], DIRECTION)


def demo_report(tables: Sequence[SelectionRanks]) -> Report:
    """The fixed selections of the paper's policy, the best of all fixed ones, and the oracle."""
    fixed = [fixed_evaluation(tables, node) for node in coarse_to_fine(LAYOUT).nodes]
    best = best_fixed(tables)
    space = len(tables[0].space)
    return Report.from_evaluations(
        [
            *fixed,
            fixed_evaluation(tables, best, f"best of {space}: {best}"),
            oracle_evaluation(tables, f"oracle of {space}"),
        ],
        title="Synthetic pairs",
    )


def write_results(folder: Path, report: Report, tables: Sequence[SelectionRanks]) -> None:
    """The report as JSON and Markdown; for every direction judgements and two runs."""
    (folder / "report.json").write_text(report.json(), encoding="utf-8")
    (folder / "report.md").write_text(report.markdown(), encoding="utf-8")
    best = best_fixed(tables)
    for table in tables:
        task = table.task
        stem = f"{task.direction.source}-{task.direction.target}"
        qrels_to_trec(folder / f"{stem}.qrels", task.query_ids, task.relevant)
        for tag, selections in (
            ("best-fixed", (best,) * len(task)),
            ("oracle", oracle_selections(table)),
        ):
            found = search(task.gallery, CAES(task.queries, selections), RUN_DEPTH)
            to_trec(folder / f"{stem}.{tag}.run", found, task.query_ids, tag)


def _analysis_parts(
    tables: Sequence[SelectionRanks], transfers: Sequence[Transfer]
) -> Iterator[Table | Text]:
    """How the oracle spread capacity, and which part of its lead is not luck."""
    chosen = [selection for table in tables for selection in oracle_selections(table)]
    yield Text("Capacity that the oracle gave, share of queries\n", style="bold")
    for capacity, count in capacity_histogram(chosen).items():
        share = count / len(chosen)
        yield Text(f"{capacity} {'█' * round(50 * share) or '▏'} {share:.1%}")
    yield Text("\nThe oracle's lead without luck: mAP (%) on halves of the gallery\n", style="bold")
    yield _transfer_table(tables, transfers)
    yield Text(
        "The transfer oracle chooses each query's selection on one random half of the other "
        "items and is scored on the other half; the best fixed selection is scored on the same "
        "halves. It still knows the answers: it bounds what a policy could learn. "
        f"{TIE_RULE}\n",
        style="dim",
    )


def _transfer_table(tables: Sequence[SelectionRanks], transfers: Sequence[Transfer]) -> Table:
    grid = _plain_table("direction", "best fixed")
    for header in ("its mAP", "transfer oracle", "headroom"):
        grid.add_column(header, justify="right", overflow="fold")
    for table, transfer in zip(tables, transfers, strict=True):
        grid.add_row(
            str(table.task.direction),
            str(transfer.fixed),
            f"{100 * transfer.best_fixed:.2f}",
            f"{100 * transfer.oracle:.2f}",
            f"{100 * transfer.headroom:.2f}",
        )
    return grid


def _search_parts(table: SelectionRanks) -> Iterator[Table | Text]:
    """A few queries of different capacity, what they find, and which vectors matched."""
    task, selections = table.task, oracle_selections(table)
    queries = _queries_of_different_capacity(selections)
    asked = CAES(task.queries, selections)[queries]
    for query, ranking, selection in zip(
        queries, search(task.gallery, asked, SHOWN_HITS), asked.selections, strict=True
    ):
        yield Text(
            f"\nSearch {task.direction}: query {task.query_ids[query]}, "
            f"selection {selection} ({' '.join(selection.labels)})\n"
            f"{_rank_of_answer(table, query)}\n",
            style="bold",
        )
        yield _hits_table(task, query, selection, ranking)


def _queries_of_different_capacity(selections: Sequence[Selection]) -> list[int]:
    """The first query of each of the smallest capacities that were given."""
    first: dict[int, int] = {}
    for query, selection in enumerate(selections):
        first.setdefault(selection.capacity, query)
    return [first[capacity] for capacity in sorted(first)[:SEARCHED_QUERIES]]


def _rank_of_answer(table: SelectionRanks, query: int) -> str:
    root, full = table.space.root, Selection.full(LAYOUT)
    ranks = (table.ranks[table.space.index(one), query, 0] for one in (root, full))
    return "its answer is at rank {} under {root}, {} under {full}".format(
        *ranks, root=root, full=full
    )


def _hits_table(task: RetrievalTask, query: int, selection: Selection, ranking: Ranking) -> Table:
    grid = _plain_table("rank", "id", "score", "matched (query-item)", "")
    answers = task.relevant[query]
    matches = _matches(task, query, selection, ranking)
    for rank, (hit, matched) in enumerate(zip(ranking, matches, strict=True), start=1):
        note = "the answer" if hit.id in answers else ""
        grid.add_row(str(rank), hit.id, f"{hit.score:.4f}", matched, note)
    return grid


def _matches(task: RetrievalTask, query: int, selection: Selection, ranking: Ranking) -> list[str]:
    """For every hit, which position of the query was matched with which of the item."""
    items = activate(task.gallery.candidates(task.gallery.indices_of(ranking.ids)), selection)
    asked = activate(task.queries[query], selection).expand(len(items), -1, -1)
    labels = selection.labels
    return [
        " ".join(f"{labels[row]}-{labels[column]}" for row, column in enumerate(columns))
        for columns in setsim_assignment(asked, items).tolist()
    ]


def _plain_table(*headers: str) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for header in headers:
        grid.add_column(header, overflow="fold")
    return grid

"""The report as one page of HTML that stands alone: tables, figures, and queries with their media.

It holds its styles, figures and pictures in itself, runs no script and asks no network. Whatever
comes from data is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from adaptiveembed import __version__
from adaptiveembed.allocation.adaptive import Decision
from adaptiveembed.data.media import Media, Text
from adaptiveembed.data.pairs import Pair
from adaptiveembed.data.reading import read_media
from adaptiveembed.errors import MediaError
from adaptiveembed.evaluation.analysis import capacity_histogram
from adaptiveembed.evaluation.evaluate import oracle_selections
from adaptiveembed.evaluation.figures import Kind, Point, capacity_curve, capacity_figure
from adaptiveembed.evaluation.report import Section
from adaptiveembed.evaluation.results import Evaluation
from adaptiveembed.pipeline.dataset import Dataset
from adaptiveembed.pipeline.evaluating import ADAPTIVE, ORACLE, AdaptiveResults
from adaptiveembed.pipeline.examples import MISSED, Example, chosen_examples
from adaptiveembed.pipeline.fitting import RECIPE, RECORD, model_folder
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.page_style import STYLE
from adaptiveembed.pipeline.reporting import MethodResults, Results
from adaptiveembed.pipeline.thumbnails import thumbnail
from adaptiveembed.structure.direction import Direction, Modality

PAGE, FIGURES = "report.html", "figures"
SHOWN_BANK_ITEMS = 3

MediaOf = Callable[[str, Modality], Media | None]
"""One side of a pair by the pair's id; none where it is not at hand."""


@dataclass(frozen=True, eq=False)
class PageContent:
    """What stands on a page beside the results themselves."""

    media_of: MediaOf
    examples: Sequence[Example] = ()
    runs: Sequence[Path] = ()
    """The run folders, which say how, where and when they were trained."""
    note: str = ""
    """What a reader must know about the data."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """More that was done, by what it is called."""


def write_page(results: Results, dataset: Dataset, folder: Path, content: PageContent) -> Path:
    """Write the page, and its figures as files of their own; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = figures_of(results)
    (folder / FIGURES).mkdir(exist_ok=True)
    for name, figure in figures.items():
        (folder / FIGURES / f"{name}.svg").write_text(figure, encoding="utf-8")
    page = folder / PAGE
    page.write_text(page_text(results, dataset, content, figures), encoding="utf-8")
    return page


def write_page_of_runs(
    results: Results, dataset: Dataset, folder: Path, runs: Sequence[Path]
) -> Path:
    """The page of runs that were evaluated, with examples of the first adaptive one."""
    content = PageContent(dataset_media(dataset), examples_of_runs(results, runs), runs)
    return write_page(results, dataset, folder, content)


def examples_of_runs(results: Results, runs: Sequence[Path]) -> list[Example]:
    """Examples of the first of the runs that has a policy."""
    # behind the runs stand baselines, which have none
    for method, run in zip(results.methods, runs, strict=False):
        if method.adaptive is not None:
            model = AdaptiveEmbed.from_pretrained(model_folder(run))
            return chosen_examples(method.adaptive, model.allocators)
    return []


def dataset_media(dataset: Dataset) -> MediaOf:
    """The media of a dataset, read again from the files that its manifest names."""
    pairs = {pair.id: pair for pair in dataset.manifest}

    def media_of(item: str, modality: Modality) -> Media | None:
        pair = pairs.get(item)
        return None if pair is None else _media_of_pair(pair, modality)

    return media_of


def _media_of_pair(pair: Pair, modality: Modality) -> Media | None:
    if modality is Modality.TEXT:
        return None if pair.text is None else Text(pair.text)
    if pair.media is None:
        return None
    try:
        return read_media(pair.media, modality)
    except (MediaError, OSError):  # a page without a picture is better than none
        return None


def figures_of(results: Results) -> dict[str, str]:
    """Every figure of the first method that has a policy, by a name for its file."""
    adaptive = next((one.adaptive for one in results.methods if one.adaptive is not None), None)
    if adaptive is None:
        return {}
    figures = {"curve": capacity_curve(curve_points(results, adaptive))}
    for table, selections in zip(adaptive.tables, adaptive.selections, strict=True):
        direction = table.task.direction
        figures[f"capacity-{direction.source}-{direction.target}"] = capacity_figure(
            str(direction),
            capacity_histogram(selections),
            capacity_histogram(oracle_selections(table)),
        )
    return figures


def curve_points(results: Results, adaptive: AdaptiveResults) -> list[Point]:
    """Every fixed selection, the rivals, the policy and the oracle."""
    rivals = [
        Point.of(evaluation, evaluation.method, Kind.BASELINE if method.encoders else Kind.RIVAL)
        for method in results.methods
        if method.adaptive is None
        for evaluation in method.evaluations
    ]
    return [
        *(_own_point(each) for each in adaptive.every_evaluation()[:-2]),
        *rivals,
        *(_own_point(each) for each in adaptive.every_evaluation()[-2:]),
    ]


def _own_point(evaluation: Evaluation) -> Point:
    name = evaluation.method
    kind = {ADAPTIVE: Kind.ADAPTIVE, ORACLE: Kind.ORACLE}.get(name, Kind.FIXED)
    return Point.of(evaluation, name.removeprefix("fixed "), kind)


_FOOTER = (
    f"Made by adaptiveembed {__version__}. This page is one file: it runs no script and loads "
    f"nothing."
)


def page_text(
    results: Results, dataset: Dataset, content: PageContent, figures: Mapping[str, str]
) -> str:
    """The whole page."""
    title = f"AdaptiveEmbed on {results.title}"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{escape(title)}</h1>",
            *_lead(results),
            *([f'<p class="note">{escape(content.note)}</p>'] if content.note else []),
            *_tables(results),
            *_figures(figures),
            *_examples(content),
            *_done(results, dataset, content),
            f"<footer>{escape(_FOOTER)}</footer>\n</main>\n</body>\n</html>\n",
        ]
    )


def _lead(results: Results) -> Iterator[str]:
    """The result in a few figures."""
    for method in results.methods:
        if method.adaptive is not None:
            yield '<div class="cards">'
            yield from (_card(*each) for each in _figures_in_short(method))
            yield "</div>"
            yield (
                "<p>Every item has eight vectors in two ordered groups. A learned policy decides "
                "how many of them each query needs; the query is compared with the same positions "
                "of every item of the gallery. <b>mAP</b> is the mean over both directions, and "
                "capacity is how many vectors a query has on average.</p>"
            )


def _figures_in_short(method: MethodResults) -> Iterator[tuple[str, Evaluation]]:
    by_name = {one.method: one for one in method.evaluations}
    for name, one in by_name.items():
        if name == ADAPTIVE:
            yield "the policy", one
        elif name.startswith("best of"):
            yield f"best fixed selection, chosen on these queries: {name.split(': ')[-1]}", one
        elif name.startswith(ORACLE):
            yield "oracle, which knows the answers", one
        elif one is method.evaluations[0]:
            yield "one vector for every query", one


def _card(name: str, evaluation: Evaluation) -> str:
    ours = " ours" if evaluation.method == ADAPTIVE else ""
    return (
        f'<div class="card{ours}"><strong>{100 * evaluation.means["mAP"]:.1f}</strong> mAP (%)<br>'
        f"{evaluation.query_vectors:.2f} vectors<br><small>{escape(name)}</small></div>"
    )


def _tables(results: Results) -> Iterator[str]:
    """The headline first; the measures in full are folded away, what tests them is not."""
    headline, *others = results.report.sections()
    more = results.report.more
    yield "<h2>Results</h2>"
    yield _table(headline)
    yield from (_table(section) for section in others if section in more)
    yield from (_folded(section) for section in others if section not in more)


def _table(section: Section, *, heading: bool = True) -> str:
    words, *figures = section.header
    head = f"<th>{escape(words)}</th>" + "".join(f"<th>{escape(name)}</th>" for name in figures)
    rows = "\n".join(map(_row, section.lines))
    title = f"<h3>{escape(section.title)}</h3>" if heading else ""
    return (
        f'{title}\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n'
        f'</tbody></table></div>\n<p class="caption">{escape(section.caption)}</p>'
    )


def _row(line: Sequence[str]) -> str:
    words, *figures = line
    ours = ' class="ours"' if words.endswith(ADAPTIVE) else ""
    cells = "".join(f"<td>{escape(figure)}</td>" for figure in figures)
    return f'<tr{ours}><th scope="row">{escape(words)}</th>{cells}</tr>'


def _folded(section: Section) -> str:
    return (
        f"<details><summary>{escape(section.title)}</summary>\n{_table(section, heading=False)}\n"
        f"</details>"
    )


def _figures(figures: Mapping[str, str]) -> Iterator[str]:
    if figures:
        yield "<h2>Figures</h2>"
        yield from (f'<figure class="wide">{figure}</figure>' for figure in figures.values())
        yield (
            '<p class="caption">The name of a fixed selection says how many vectors of each group '
            "are compared: 2+1 is two of the first and one of the second. The dashed line joins "
            "the best fixed selections of each capacity. The oracle takes the best of all 20 for "
            "each query, and so counts luck as skill.</p>"
        )


def _examples(content: PageContent) -> Iterator[str]:
    if not content.examples:
        return
    yield "<h2>Queries</h2>"
    yield (
        f"<p>For each direction and each capacity that the policy gave: the first query whose "
        f"answer it found at rank 1, and the first whose answer stands behind rank {MISSED}. They "
        f"were not picked by hand, and the failures belong to the picture.</p>"
    )
    direction: Direction | None = None
    for example in content.examples:
        if example.direction != direction:
            direction = example.direction
            yield f"<h3>{escape(str(direction))}</h3>"
        yield _example(example, content.media_of)


def _example(example: Example, media_of: MediaOf) -> str:
    asked, sought = example.direction.source, example.direction.target
    good = example.rank == 1
    verdict = "found at rank 1" if good else f"its answer is at rank {example.rank:,}"
    selection, capacity = example.selection, example.selection.capacity
    hits = "\n".join(
        _hit(_Found(place, hit.id, f"{hit.score:.3f}", hit.id == example.query), media_of, sought)
        for place, hit in enumerate(example.hits, start=1)
    )
    answer = ""
    if all(hit.id != example.query for hit in example.hits):
        answer = _hit(_Found(example.rank, example.query, "", is_answer=True), media_of, sought)
    return (
        f'<article class="example {"found" if good else "missed"}">\n'
        f"<header><b>{capacity} {'vector' if capacity == 1 else 'vectors'}</b> "
        f'<span class="tag">{selection}: {escape(" ".join(selection.labels))}</span> '
        f'<span class="verdict">{verdict}</span></header>\n'
        f'<div class="asked">{thumbnail(media_of(example.query, asked), f"query {example.query}")}'
        f"</div>\n"
        f'<div class="hits {sought}">{hits}{answer}</div>\n'
        f"<details><summary>Why {capacity}?</summary>{_why(example, media_of)}</details>\n"
        f"</article>"
    )


@dataclass(frozen=True)
class _Found:
    """One item of a ranking."""

    place: int
    id: str
    score: str
    is_answer: bool = False


def _hit(found: _Found, media_of: MediaOf, modality: Modality) -> str:
    """An item with its place and its score under it."""
    mark, said = (" answer", " the answer") if found.is_answer else ("", "")
    words = f"{found.place:,}. {found.score}{said}"
    return (
        f'<div class="hit{mark}">{thumbnail(media_of(found.id, modality), found.id)}'
        f'<small title="{escape(found.id)}">{escape(words)}</small></div>'
    )


def _why(example: Example, media_of: MediaOf) -> str:
    """Every decision with its odds and what the bank answered, and what else would have come."""
    decisions = "\n".join(
        _decision(decision, example, media_of) for decision in example.explanation.decisions
    )
    ranks = ", ".join(f"{rank:,} under {node}" for node, rank in example.ranks.items())
    return (
        f"<p>An expansion is taken where its probability is above the threshold of this direction, "
        f"{example.threshold:.0%}.</p>\n{decisions}\n<p>The answer's rank would have been {ranks}. "
        f"The oracle would have chosen {example.oracle}.</p>"
    )


def _decision(decision: Decision, example: Example, media_of: MediaOf) -> str:
    chosen = decision.chosen
    odds = [("stop", decision.stop, chosen == decision.state)]
    odds += [(str(to), odd, chosen == to) for to, odd in decision.expansions.items()]
    target = example.direction.target
    nearest = "".join(
        _hit(_Found(place, item, f"{score:.3f}"), media_of, target)
        for place, (item, score) in enumerate(
            zip(
                decision.bank_ids[:SHOWN_BANK_ITEMS],
                decision.bank_scores[:SHOWN_BANK_ITEMS],
                strict=True,
            ),
            start=1,
        )
    )
    return (
        f'<div class="decision"><b>At {decision.state}</b> {"".join(map(_odd, odds))}</div>\n'
        f'<p class="caption">What the bank of training items answered at {decision.state}, nearest '
        f'first:</p>\n<div class="hits {target}">{nearest}</div>'
    )


def _odd(odd: tuple[str, float, bool]) -> str:
    name, share, chosen = odd
    return (
        f'<span class="odd{" chosen" if chosen else ""}">'
        f'<i style="width:{100 * share:.0f}%"></i><span>{escape(name)} {share:.0%}</span></span>'
    )


def _done(results: Results, dataset: Dataset, content: PageContent) -> Iterator[str]:
    """What was done, where and when; recipes in full."""
    yield "<h2>What was done</h2>"
    facts = {**_dataset_facts(dataset), **content.facts}
    yield _facts(facts)
    for run in content.runs:
        yield from _run(run)


def _dataset_facts(dataset: Dataset) -> dict[str, str]:
    pairs = dataset.pairs
    encoders = ", ".join(f"{each} by {one.name}" for each, one in dataset.encoders.items())
    return {
        "data": f"{len(pairs.training):,} pairs to train on, {len(pairs.queries):,} queries in "
        f"each direction, searched among all {len(pairs):,} pairs",
        "encoders": encoders,
    }


def _run(run: Path) -> Iterator[str]:
    record, recipe = _json(run / RECORD), _text_of(run / RECIPE)
    yield f"<h3>Run {escape(run.name)}</h3>"
    if record:
        yield _facts(_record_facts(record))
    if recipe:
        yield (
            f"<details><summary>Its recipe, every setting</summary><pre>{escape(recipe)}</pre>"
            f"</details>"
        )


def _record_facts(record: Mapping[str, Any]) -> dict[str, str]:
    """What a run wrote down when it began; what an older one left out is left out."""
    machine = record.get("machine", {})
    graphics = machine.get("cuda") or "no GPU"
    return {
        "begun": str(record.get("begun", "")),
        "machine": f"{machine.get('system')} {machine.get('processor')}, {machine.get('cores')} "
        f"cores, {machine.get('threads')} threads, {graphics}",
        "versions": f"adaptiveembed {record.get('library')}, Python {record.get('python')}, "
        + ", ".join(f"{name} {number}" for name, number in record.get("versions", {}).items()),
    }


def _facts(facts: Mapping[str, str]) -> str:
    lines = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()
    )
    return f"<dl>\n{lines}\n</dl>"


def _json(path: Path) -> dict[str, Any]:
    text = _text_of(path)
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""

"""Tables as the paper prints them: methods by capacity and measures, per direction and their mean.

A report has three forms of equal content: ``table()`` for a terminal of 80 columns,
``markdown()`` and ``json()``. Query vectors, gallery vectors compared and gallery vectors stored
are three columns, because a query's selection decides the first two and not the third. The tie rule
stands under every table, so that no figure is read without it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from adaptiveembed.errors import EmptyBatchError, SettingError
from adaptiveembed.evaluation.results import Evaluation

TIE_RULE = (
    "Ties count against the query: an item that scores the same as a positive is ranked above it."
)
HEADLINE = "mAP"
RANK_MEASURES = frozenset({"MeanR"})
"""Measures that are ranks, not shares: printed as they are, where shares are printed in percent."""
MEAN = "mean"
CAPACITY_COLUMNS = ("query vectors", "gallery compared", "gallery stored")


@dataclass(frozen=True)
class DirectionFacts:
    """What one direction of a report asks."""

    direction: str
    queries: int
    gallery: int


@dataclass(frozen=True)
class Row:
    """One method: its capacities, and each measure per direction.

    ``measures`` maps a direction, or "mean", to the name and value of every measure; shares lie in
    [0, 1].
    """

    method: str
    dim: int
    query_vectors: float
    gallery_vectors_compared: float
    gallery_vectors_stored: int | float
    measures: dict[str, dict[str, float]]

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation) -> "Row":
        """The means of one evaluation."""
        measures = {str(one.direction): one.means for one in evaluation.directions}
        return cls(
            method=evaluation.method,
            dim=evaluation.dim,
            query_vectors=evaluation.query_vectors,
            gallery_vectors_compared=evaluation.gallery_vectors_compared,
            gallery_vectors_stored=evaluation.gallery_vectors_stored,
            measures=measures | {MEAN: evaluation.means},
        )


@dataclass(frozen=True)
class Report:
    """Methods side by side on the same directions."""

    title: str
    directions: tuple[DirectionFacts, ...]
    rows: tuple[Row, ...]
    more: tuple["Section", ...] = ()
    """Tables beside those of the measures, shown after them."""

    @classmethod
    def from_evaluations(
        cls,
        evaluations: Sequence[Evaluation],
        title: str = "Retrieval",
        more: Sequence["Section"] = (),
    ) -> "Report":
        """The report of evaluations of the same queries and galleries, one row each, in order."""
        if not evaluations:
            raise EmptyBatchError("no evaluation was given to report; give at least one")
        facts = [_direction_facts(one) for one in evaluations]
        for evaluation, own in zip(evaluations, facts, strict=True):
            _require_same_facts(evaluation.method, own, facts[0])
        return cls(title, facts[0], tuple(map(Row.from_evaluation, evaluations)), tuple(more))

    def table(self) -> Group:
        """The report for a terminal: print it with ``rich.print``."""
        return Group(*(_rich_table(section) for section in self.sections()))

    def headline(self) -> Table:
        """The first table alone, for a terminal."""
        return _rich_table(self.sections()[0])

    def markdown(self) -> str:
        """The report as Markdown."""
        return f"# {self.title}\n\n" + "\n".join(map(_markdown_table, self.sections()))

    def json(self) -> str:
        """The report as JSON: shares as fractions of 1, in full precision."""
        content = asdict(self) | {"tie_rule": TIE_RULE}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def sections(self) -> list["Section"]:
        """The headline measure with the capacities, every measure of every direction, and more."""
        names = [one.direction for one in self.directions]
        headline = _headline_section(self, [*names, MEAN])
        measures = (_measures_section(self, name) for name in [*names, MEAN])
        return [headline, *measures, *self.more]


@dataclass(frozen=True)
class Section:
    """One table in plain text: the first column is words, all others are figures."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    caption: str

    def table(self) -> Table:
        """The section for a terminal: print it with ``rich.print``."""
        return _rich_table(self)

    def markdown(self) -> str:
        """The section as Markdown."""
        return _markdown_table(self)


def _headline_section(report: Report, columns: Sequence[str]) -> Section:
    lines = tuple(
        (
            row.method,
            f"{row.query_vectors:.2f}",
            f"{row.gallery_vectors_compared:.2f}",
            f"{round(row.gallery_vectors_stored, 2):g}",
            *(_figure(HEADLINE, row.measures[column][HEADLINE]) for column in columns),
        )
        for row in report.rows
    )
    header = ("method", *CAPACITY_COLUMNS, *columns)
    caption = f"{_facts_sentence(report)} {TIE_RULE}"
    return Section(f"{report.title}: {HEADLINE} (%)", header, lines, caption)


def _measures_section(report: Report, column: str) -> Section:
    names = tuple(report.rows[0].measures[column])
    lines = tuple(
        (row.method, *(_figure(name, row.measures[column][name]) for name in names))
        for row in report.rows
    )
    ranks = ", ".join(name for name in names if name in RANK_MEASURES)
    title = "mean over the directions" if column == MEAN else column
    return Section(f"{title} (%; {ranks}: a rank)", ("method", *names), lines, TIE_RULE)


def _figure(measure: str, value: float) -> str:
    return f"{value:.1f}" if measure in RANK_MEASURES else f"{100 * value:.2f}"


def _facts_sentence(report: Report) -> str:
    """How wide the vectors are and how much was asked."""
    asked = "; ".join(
        f"{one.direction}: {one.queries:,} queries, {one.gallery:,} gallery items"
        for one in report.directions
    )
    return f"{asked}. {_dimensions(report)}"


def _dimensions(report: Report) -> str:
    """That of most rows, and which rows have another."""
    ((dim, rows),) = Counter(row.dim for row in report.rows).most_common(1)
    common = None if 1 == rows < len(report.rows) else dim
    others = ", ".join(f"{row.method} {row.dim}" for row in report.rows if row.dim != common)
    told = f"d: {others}" if common is None else f"d = {dim}; {others}".removesuffix("; ")
    return f"{told}."


def _rich_table(section: Section) -> Table:
    table = Table(
        title=Text(section.title + "\n", style="bold"),
        caption=Text(section.caption + "\n", style="dim"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    words, *figures = section.header
    table.add_column(words, overflow="fold")
    for name in figures:
        heading = name.replace(" ", "\n").replace("→", "→\n")
        # in a narrow terminal a figure that is folded can be read, and one that is cut cannot
        table.add_column(heading, justify="right", overflow="fold")
    for line in section.lines:
        table.add_row(*map(Text, line))
    return table


def _markdown_table(section: Section) -> str:
    words, *figures = section.header
    return "\n".join(
        [
            f"## {section.title}\n",
            _markdown_line([words, *figures]),
            _markdown_line([":---", *("---:" for _ in figures)]),
            *map(_markdown_line, section.lines),
            f"\n{section.caption}\n",
        ]
    )


def _markdown_line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _direction_facts(evaluation: Evaluation) -> tuple[DirectionFacts, ...]:
    return tuple(
        DirectionFacts(str(one.direction), len(one), one.gallery_size)
        for one in evaluation.directions
    )


def _require_same_facts(
    method: str, own: tuple[DirectionFacts, ...], first: tuple[DirectionFacts, ...]
) -> None:
    if own != first:
        raise SettingError(
            f"{method!r} was evaluated on {_short(own)}, the first method on {_short(first)}; "
            "evaluate all methods of a report on the same tasks"
        )


def _short(facts: tuple[DirectionFacts, ...]) -> str:
    return "; ".join(f"{one.direction} {one.queries}/{one.gallery}" for one in facts)

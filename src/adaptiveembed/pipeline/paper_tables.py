"""The paper's tables of results as data: rows, columns, encoders, and the figures in print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import resources
from pathlib import Path

from adaptiveembed.errors import SettingError
from adaptiveembed.evaluation.report import TIE_RULE, Section
from adaptiveembed.pipeline.settings import Table, read_settings, read_toml
from adaptiveembed.structure.direction import Modality

ENDING = ".toml"
NOTHING = "–"


class RowKind(StrEnum):
    """What a row of a table is."""

    SINGLE = "single"
    """An encoder's global feature."""
    MAXSIM = "maxsim"
    """An encoder's token vectors."""
    METAEMBED = "metaembed"
    """The baseline trained beside ours, under one of its budgets."""
    ADAPTIVE = "adaptive"
    """Ours."""
    ORACLE = "oracle"
    """The best selection of every query, which knows the answer."""

    @property
    def is_trained(self) -> bool:
        """Whether a run is needed for it."""
        return self in (RowKind.METAEMBED, RowKind.ADAPTIVE, RowKind.ORACLE)


@dataclass(frozen=True)
class PaperRow:
    """One method of a table."""

    method: str
    """What the paper calls it."""
    kind: RowKind
    """What it is."""
    encoder: str
    """Which of the table's encoders it stands on."""
    paper: tuple[float, ...]
    """mAP in percent as printed: for each column from text, then to text; the last may be open."""
    budget: str = ""
    """Of MetaEmbed, like 2/4."""
    tokens: float | None = None
    """Avg. Tokens as printed, where it is."""


@dataclass(frozen=True)
class PaperTable:
    """Methods on the datasets of one medium."""

    name: str
    title: str
    medium: Modality
    sources: tuple[str, ...]
    """Datasets that are trained on, all of them together (R21)."""
    columns: Mapping[str, str]
    """Datasets that are evaluated, each with a short name; one that is no source is zero-shot."""
    encoders: Mapping[str, str]
    """The name under which ``load_encoder`` finds each encoder, by what rows call it."""
    rows: tuple[PaperRow, ...]
    set: tuple[str, ...] = ()
    """Changes of the recipes, such as ``representation.embedder.dim=3584``."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if row.encoder not in self.encoders:
                raise SettingError(
                    f"row {row.method!r} of {self.name} stands on the encoder {row.encoder!r}; "
                    f"the encoders are {', '.join(self.encoders)}"
                )
            if len(row.paper) > 2 * len(self.columns):
                raise SettingError(
                    f"row {row.method!r} of {self.name} has {len(row.paper)} figures for "
                    f"{len(self.columns)} columns of two"
                )

    def with_encoders(self, encoders: Mapping[str, str]) -> PaperTable:
        """The same table with some encoders replaced."""
        for name in encoders:
            if name not in self.encoders:
                raise SettingError(
                    f"{self.name} has no encoder {name!r}; its encoders are "
                    f"{', '.join(self.encoders)}"
                )
        return replace(self, encoders={**self.encoders, **encoders})

    def with_rows(self, methods: Sequence[str]) -> PaperTable:
        """The table of these methods alone."""
        known = [row.method for row in self.rows]
        for method in methods:
            if method not in known:
                raise SettingError(
                    f"{self.name} has no row {method!r}; its rows are {', '.join(known)}"
                )
        return replace(self, rows=tuple(row for row in self.rows if row.method in methods))


@dataclass(frozen=True)
class Reached:
    """What a row reached on one column."""

    from_text: float
    """mAP of texts as queries."""
    to_text: float
    """mAP of media as queries."""
    tokens: float
    """Mean vectors of both sides (R16)."""


def read_table(name: str) -> PaperTable:
    """The table of this name, or in this file."""
    path = Path(name) if name.endswith(ENDING) else _folder() / f"{name}{ENDING}"
    if not name.endswith(ENDING) and name not in table_names():
        raise SettingError(
            f"there is no table {name!r}; choose one of {', '.join(table_names())}, or a file "
            f"that ends in {ENDING}"
        )
    content = read_toml(path)
    try:
        return _table(path.stem, content)
    except (KeyError, TypeError, ValueError) as error:
        raise SettingError(f"{path} is no table of results: {error}") from error


def table_names() -> tuple[str, ...]:
    """The tables that come with the library."""
    return tuple(sorted(path.stem for path in _folder().glob(f"*{ENDING}")))


def _table(name: str, content: Table) -> PaperTable:
    return PaperTable(
        name,
        str(content["title"]),
        Modality(content["medium"]),
        tuple(content["sources"]),
        dict(content["columns"]),
        dict(content["encoders"]),
        tuple(
            read_settings(PaperRow, row, f"rows.{number}")
            for number, row in enumerate(content["rows"])
        ),
        tuple(content.get("set", ())),
    )


def side_by_side(table: PaperTable, found: Mapping[tuple[str, str], Reached]) -> Section:
    """The paper's layout: under each row of ours what the paper has printed.

    Of ``found``, keys are a row's method and a column.
    """
    lines: list[tuple[str, ...]] = []
    for row in table.rows:
        ours = [found.get((row.method, column)) for column in table.columns]
        lines += [_our_line(row, ours), _paper_line(row, len(table.columns))]
    ways = (f"T2{table.medium[0].upper()}", f"{table.medium[0].upper()}2T")
    header = (
        "method",
        "tokens",
        *(f"{name} {way}" for name in table.columns.values() for way in ways),
    )
    first = next(iter(table.columns.values()))
    caption = (
        f"mAP (%) in full galleries. Tokens are the mean number of vectors of both sides, on "
        f"{first}. {TIE_RULE}"
    )
    return Section(table.title, header, tuple(lines), caption)


def _our_line(row: PaperRow, ours: Sequence[Reached | None]) -> tuple[str, ...]:
    first = ours[0]
    figures = [
        NOTHING if one is None else f"{100 * value:.2f}"
        for one in ours
        for value in ((0.0, 0.0) if one is None else (one.from_text, one.to_text))
    ]
    return row.method, NOTHING if first is None else f"{first.tokens:.1f}", *figures


def _paper_line(row: PaperRow, columns: int) -> tuple[str, ...]:
    printed = [f"{value:.2f}" for value in row.paper]
    missing = [NOTHING] * (2 * columns - len(printed))
    return (
        "  in the paper",
        NOTHING if row.tokens is None else f"{row.tokens:g}",
        *printed,
        *missing,
    )


def _folder() -> Path:
    return Path(str(resources.files("adaptiveembed.pipeline"))) / "tables"

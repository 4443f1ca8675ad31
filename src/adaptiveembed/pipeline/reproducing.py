"""A table of the paper from manifests to figures, resumable.

table/
  features/qwen-2b/coco/         every dataset as an encoder sees it
  runs/qwen-2b-paper/            what was trained on the sources
  results/qwen-2b-adaptive/coco/ what a row's method reached
  table.md, table.json
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from adaptiveembed.data.pairs import read_manifest
from adaptiveembed.encoders.user import load_encoders
from adaptiveembed.errors import AdaptiveEmbedError, SettingError
from adaptiveembed.evaluation.records import FACTS, read_evaluations, write_evaluations
from adaptiveembed.evaluation.report import Section
from adaptiveembed.evaluation.results import Evaluation
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.baselines import BaselineKind, evaluate_baseline, open_baseline
from adaptiveembed.pipeline.dataset import Dataset, common_encoders, encode_dataset, open_dataset
from adaptiveembed.pipeline.evaluating import ADAPTIVE, ORACLE
from adaptiveembed.pipeline.fitting import fit
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.paper_tables import (
    PaperRow,
    PaperTable,
    Reached,
    RowKind,
    side_by_side,
)
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.pipeline.reporting import MEASURE, evaluate_run
from adaptiveembed.structure.direction import Modality

MANIFEST = ".jsonl"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A table, its data, and where everything is kept."""

    table: PaperTable
    manifests: Path
    """Holds a manifest for each column: coco.jsonl and so on."""
    folder: Path
    recipe: str = "paper"
    """The recipe of ours."""
    rival: str = "paper-metaembed"
    """The recipe of MetaEmbed."""
    assignments: tuple[str, ...] = ()
    """Changes of both."""
    announce: Announce = unannounced

    def run(self) -> Outcome:
        """Make what is missing of every row; one that cannot be made is told, and left open."""
        self._require_manifests()
        found: dict[tuple[str, str], Reached] = {}
        problems: dict[str, str] = {}
        for row in self.table.rows:
            try:
                found |= {(row.method, one): self._reached(row, one) for one in self.table.columns}
            except AdaptiveEmbedError as error:
                problems[row.method] = str(error)
        outcome = Outcome(self.table, found, problems)
        outcome.write(self.folder)
        return outcome

    def _reached(self, row: PaperRow, column: str) -> Reached:
        """What a row reaches on a column: kept, or found now."""
        place = self.folder / "results" / self._place(row) / column
        if not (place / FACTS).exists():
            dataset = self._dataset(row.encoder, column)
            write_evaluations(place, list(self._evaluations(row, dataset)))
        return _reached(_row_of(read_evaluations(place), row))

    def _evaluations(self, row: PaperRow, dataset: Dataset) -> Iterator[Evaluation]:
        if row.kind.is_trained:
            yield from evaluate_run(self._trained(row), dataset, self.announce).evaluations
            return
        baseline = open_baseline(BaselineKind(row.kind.value), dataset.folder, dataset)
        yield from evaluate_baseline(baseline, self.announce).evaluations

    def _trained(self, row: PaperRow) -> Path:
        """The run that a row needs, finished."""
        datasets = [self._dataset(row.encoder, source) for source in self.table.sources]
        folder = self.folder / "runs" / self._place(row)
        fit(
            JointPairs(tuple(one.pairs for one in datasets)),
            read_recipe(self._recipe(row), [*self.table.set, *self.assignments]),
            folder,
            common_encoders(datasets),
            announce=self.announce,
            folders=[one.folder for one in datasets],
        )
        return folder

    def _dataset(self, encoder: str, column: str) -> Dataset:
        """A dataset as an encoder sees it, encoded as far as it is not."""
        folder = self.folder / "features" / encoder / column
        if folder not in self._opened:
            names = dict.fromkeys((Modality.TEXT, self.table.medium), self.table.encoders[encoder])
            manifest = read_manifest(self._manifest(column))
            encode_dataset(manifest, load_encoders(names), names, folder, announce=self.announce)
            self._opened[folder] = open_dataset(folder)
        return self._opened[folder]

    @cached_property
    def _opened(self) -> dict[Path, Dataset]:
        return {}

    def _recipe(self, row: PaperRow) -> str:
        return self.rival if row.kind is RowKind.METAEMBED else self.recipe

    def _place(self, row: PaperRow) -> str:
        """What rows have in common that come from one run, or from one look at an encoder."""
        if row.kind.is_trained:
            return f"{row.encoder}-{Path(self._recipe(row)).stem}"
        return f"{row.encoder}-{row.kind}"

    def _manifest(self, column: str) -> Path:
        return self.manifests / f"{column}{MANIFEST}"

    def _require_manifests(self) -> None:
        names = dict.fromkeys([*self.table.sources, *self.table.columns])
        missing = [name for name in names if not self._manifest(name).exists()]
        if missing:
            raise SettingError(
                f"{self.manifests} has no {', '.join(name + MANIFEST for name in missing)}; make "
                f"them by: adaptiveembed data build {missing[0]} ... --output "
                f"{self._manifest(missing[0])}"
            )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a table."""

    table: PaperTable
    found: Mapping[tuple[str, str], Reached]
    """By method and column."""
    problems: Mapping[str, str]
    """Why a method could not be made."""

    def section(self) -> Section:
        """The table in the paper's layout."""
        return side_by_side(self.table, self.found)

    def write(self, folder: Path) -> None:
        """The table as Markdown and JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "table.md").write_text(self.section().markdown(), encoding="utf-8")
        rows = [
            {"method": method, "column": column, **asdict(one)}
            for (method, column), one in self.found.items()
        ]
        content = {"table": self.table.name, "reached": rows, "problems": dict(self.problems)}
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / "table.json").write_text(text, encoding="utf-8")


def _row_of(evaluations: tuple[Evaluation, ...], row: PaperRow) -> Evaluation:
    """Which of the evaluations of a method is this row."""
    if not row.kind.is_trained:
        return evaluations[0]
    begins = {
        RowKind.METAEMBED: f"MetaEmbed {row.budget}",
        RowKind.ADAPTIVE: ADAPTIVE,
        RowKind.ORACLE: ORACLE,
    }[row.kind]
    found = [one for one in evaluations if one.method.startswith(begins)]
    if not found:
        raise SettingError(
            f"{row.method} needs the row {begins!r} and there are "
            f"{', '.join(one.method for one in evaluations)}; train with that budget"
        )
    return found[0]


def _reached(evaluation: Evaluation) -> Reached:
    figures = {
        one.direction.source is Modality.TEXT: one.means[MEASURE] for one in evaluation.directions
    }
    vectors = (evaluation.query_vectors + evaluation.gallery_vectors_compared) / 2
    return Reached(figures[True], figures[False], vectors)

"""Runs evaluated side by side: tables, how sure they are, and files that keep them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from adaptiveembed.evaluation.analysis import Transfer
from adaptiveembed.evaluation.evaluate import best_fixed
from adaptiveembed.evaluation.records import write_evaluations
from adaptiveembed.evaluation.report import Report, Section
from adaptiveembed.evaluation.results import Evaluation
from adaptiveembed.evaluation.significance import Comparison, compare, compare_means
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.dataset import Dataset, require_encoders
from adaptiveembed.pipeline.evaluating import (
    ADAPTIVE,
    AdaptiveResults,
    evaluate_adaptive,
    evaluate_budgets,
)
from adaptiveembed.pipeline.fitting import model_folder
from adaptiveembed.pipeline.folder import read_config
from adaptiveembed.pipeline.inputs import EncoderFacts
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.recipe import Method
from adaptiveembed.pipeline.saving import read_embedder, read_facts
from adaptiveembed.structure.direction import Direction, Modality

DRAW_SEED = 0
MEASURE = "mAP"


@dataclass(frozen=True, eq=False)
class MethodResults:
    """What one run reached: the rows of its method, and more where it is adaptive."""

    name: str
    evaluations: tuple[Evaluation, ...]
    adaptive: AdaptiveResults | None = None
    encoders: Mapping[Modality, EncoderFacts] = field(default_factory=dict)
    """Those of a baseline, which has features of its own."""


@dataclass(frozen=True, eq=False)
class Results:
    """Runs side by side on the queries of one dataset."""

    title: str
    methods: tuple[MethodResults, ...]

    @cached_property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The rows of all methods; what is of several runs is told apart by their names."""
        several = sum(one.adaptive is not None for one in self.methods) > 1
        return tuple(
            Evaluation(f"{one.name}: {each.method}", each.directions)
            if several and one.adaptive is not None
            else each
            for one in self.methods
            for each in one.evaluations
        )

    @cached_property
    def report(self) -> Report:
        """All tables."""
        return Report.from_evaluations(self.evaluations, self.title, list(self._sections()))

    def _sections(self) -> Iterator[Section]:
        for one in self.methods:
            if one.adaptive is not None:
                yield transfer_section(one.name, one.adaptive.transfers())
                yield comparison_section(one, self.evaluations)
        if baselines := [one for one in self.methods if one.encoders]:
            yield baselines_section(baselines)


def evaluate_runs(
    runs: Sequence[Path], dataset: Dataset, announce: Announce = unannounced
) -> Results:
    """Evaluate the models of runs on the query split of a dataset."""
    methods = tuple(evaluate_run(run, dataset, announce) for run in runs)
    return Results(dataset.pairs.name, methods)


def evaluate_run(run: Path, dataset: Dataset, announce: Announce = unannounced) -> MethodResults:
    """Evaluate the model of one run."""
    folder = model_folder(run)
    config = read_config(folder)
    facts = read_facts(config)
    require_encoders(dataset, facts.encoders)
    progress = announce(f"evaluating {facts.recipe.name}")
    if facts.recipe.method is Method.METAEMBED:
        embedder = read_embedder(folder, config, facts)
        found = evaluate_budgets(embedder, dataset.pairs, facts.recipe.budgets, progress)
        return MethodResults(facts.recipe.name, tuple(found))
    model = AdaptiveEmbed.from_pretrained(folder)
    results = evaluate_adaptive(
        model.embedder, model.allocators, dataset.pairs, facts.recipe.space, progress
    )
    return MethodResults(facts.recipe.name, tuple(results.evaluations()), results)


def write_results(results: Results, folder: Path) -> None:
    """The report as Markdown and JSON, and the ranks of every query."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(results.report.markdown(), encoding="utf-8")
    (folder / "report.json").write_text(results.report.json(), encoding="utf-8")
    write_evaluations(folder, results.evaluations)


def transfer_section(name: str, transfers: Mapping[Direction, Transfer]) -> Section:
    """The share of the headroom that was gained, once luck is taken out (R15)."""
    lines = tuple(
        (
            str(direction),
            str(one.fixed),
            f"{100 * one.best_fixed:.2f}",
            f"{100 * (one.adaptive or 0):.2f}",
            f"{100 * one.oracle:.2f}",
            "–" if one.share is None else f"{100 * one.share:.0f}",
        )
        for direction, one in transfers.items()
    )
    header = ("direction", "best fixed", "its mAP", ADAPTIVE, "transfer oracle", "share of lead")
    caption = (
        "mAP (%) on halves of the other items: the transfer oracle chooses each query's selection "
        "on one half and is scored on the other, so that the luck of single items is not counted. "
        "It still knows the answers. The share is what the policy gained of its lead, in percent."
    )
    return Section(f"{name}: how much of the oracle's lead was gained", header, lines, caption)


def comparison_section(method: MethodResults, evaluations: Sequence[Evaluation]) -> Section:
    """By how much the policy is better than every other row, and how sure that is."""
    assert method.adaptive is not None
    ours = next(one for one in method.evaluations if one.method == ADAPTIVE)
    lines = tuple(
        (other.method, f"{other.query_vectors:.2f}", *_cells(compare_methods(ours, other)))
        for other in evaluations
        if not other.method.endswith(ADAPTIVE)
    )
    header = ("against", "its vectors", *map(str, _directions(ours)), "mean", "p (mean)")
    best = best_fixed(method.adaptive.tables)
    caption = (
        f"mAP of the policy ({ours.query_vectors:.2f} vectors) less that of the other, in points; "
        f"p is two-sided, from 10,000 bootstrap draws of the queries. The best fixed selection, "
        f"{best}, is the best one on these very queries, which counts against the policy."
    )
    return Section(f"{method.name}: the policy against the others", header, lines, caption)


def baselines_section(baselines: Sequence[MethodResults]) -> Section:
    """Which encoders the baselines are of."""
    lines = tuple((one.name, *(each.name for each in one.encoders.values())) for one in baselines)
    header = ("baseline", *(f"{modality} by" for modality in baselines[0].encoders))
    caption = (
        "Each baseline has features of its own for the same queries and galleries. Where items "
        "differ in their number of vectors, the tables show means; what must be stored is that of "
        "the larger side."
    )
    return Section("Encoders of the baselines", header, lines, caption)


def compare_methods(ours: Evaluation, other: Evaluation) -> list[Comparison]:
    """One comparison for every direction, and one of their mean."""
    generator = np.random.default_rng(DRAW_SEED)
    mine, theirs = ([one.measures[MEASURE] for one in each.directions] for each in (ours, other))
    each = [compare(one, two, generator) for one, two in zip(mine, theirs, strict=True)]
    return [*each, compare_means(mine, theirs, generator)]


def _cells(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    differences = (f"{100 * one.difference:+.2f}" for one in comparisons)
    return (*differences, f"{comparisons[-1].p_value:.4f}")


def _directions(evaluation: Evaluation) -> list[Direction]:
    return [one.direction for one in evaluation.directions]

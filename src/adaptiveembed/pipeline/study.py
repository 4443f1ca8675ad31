"""A study: methods over seeds on one corpus, compared query by query.

    study/
      data/scenes-image/              the encoded corpus
      scenes-image/laptop-0/          a run, and its evaluation
      scenes-image/report.md, .json   the tables

What is done is kept, so that a study goes on where it was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from adaptiveembed.evaluation.analysis import Transfer
from adaptiveembed.evaluation.records import read_evaluations, write_evaluations
from adaptiveembed.evaluation.report import TIE_RULE, Report, Section
from adaptiveembed.evaluation.results import Evaluation
from adaptiveembed.evaluation.significance import NUM_DRAWS, Comparison, compare, compare_means
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.dataset import Dataset, open_dataset
from adaptiveembed.pipeline.evaluating import ADAPTIVE, ORACLE
from adaptiveembed.pipeline.fitting import fit
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.pipeline.reporting import DRAW_SEED, MEASURE, MethodResults, evaluate_run
from adaptiveembed.pipeline.scenes import SceneCorpus, encode_scenes
from adaptiveembed.shapes import PerQuery
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection

CORPUS_SEED = 2
"""Which scenes a study asks about; queries of seeds 0 and 1 were seen while choosing defaults."""

EVALUATION, TRANSFERS = "evaluation", "transfers.json"
FIXED = "fixed "
"""How the name of a fixed selection's evaluation begins."""


def scenes_corpora(
    folder: Path,
    media: Sequence[str],
    training: int,
    queries: int,
    announce: Announce = unannounced,
) -> dict[str, Path]:
    """The built-in corpus in each of these media, encoded into dataset folders."""
    corpora = {}
    for medium in media:
        corpus = SceneCorpus(Modality(medium), training, queries, CORPUS_SEED)
        place = folder / "data" / f"scenes-{medium}"
        encode_scenes(corpus, place, announce)
        corpora[place.name] = place
    return corpora


@dataclass(frozen=True)
class Study:
    """Which methods are compared, and where everything is kept."""

    folder: Path
    recipe: str
    """The recipe of AdaptiveEmbed, whose policy is compared with everything."""
    rivals: tuple[str, ...] = ("metaembed-small",)
    """Recipes of what it is compared with beside its own fixed selections."""
    assignments: tuple[str, ...] = ()
    """Changes of all recipes, such as ``representation.training.epochs=5``."""

    def of(
        self, name: str, corpus: Path, seeds: Sequence[int], announce: Announce = unannounced
    ) -> Report:
        """Train and evaluate what is left, and compare; the report is written too."""
        dataset = open_dataset(corpus)
        found = {
            recipe: [self._outcome(name, recipe, seed, dataset, announce) for seed in seeds]
            for recipe in (self.recipe, *self.rivals)
        }
        rivals = {one: found[one] for one in self.rivals}
        report = StudyComparison(name, found[self.recipe], rivals).report()
        (self.folder / name / "report.md").write_text(report.markdown(), encoding="utf-8")
        (self.folder / name / "report.json").write_text(report.json(), encoding="utf-8")
        return report

    def _outcome(
        self, name: str, recipe: str, seed: int, dataset: Dataset, announce: Announce
    ) -> Outcome:
        """One method with one seed: what is stored of it, or what comes of it now."""
        settings = read_recipe(recipe, [*self.assignments, *seeded(seed)])
        run = self.folder / name / f"{settings.name}-{seed}"
        fit(  # a finished run is given back at once, if it is of this recipe and of these pairs
            JointPairs((dataset.pairs,)),
            settings,
            run,
            dataset.encoders,
            announce=announce,
            folders=[dataset.folder],
        )
        if not (run / EVALUATION / TRANSFERS).exists():
            _outcome_of(evaluate_run(run, dataset, announce)).write(run / EVALUATION)
        return Outcome.read(run / EVALUATION)


def seeded(seed: int) -> list[str]:
    """The assignments that make a recipe's weights and order start from a seed."""
    return [
        f"seed={seed}",
        f"representation.training.seed={seed}",
        f"allocation.training.seed={seed}",
    ]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method reached with one seed."""

    evaluations: tuple[Evaluation, ...]
    transfers: Mapping[Direction, Transfer]

    def write(self, folder: Path) -> None:
        """Keep it; the file that is looked for is written last."""
        write_evaluations(folder, self.evaluations)
        content = [
            {
                "source": direction.source,
                "target": direction.target,
                "fixed": str(one.fixed),
                "layout": str(one.fixed.layout),
                **{key: value for key, value in asdict(one).items() if key != "fixed"},
            }
            for direction, one in self.transfers.items()
        ]
        (folder / TRANSFERS).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Outcome:
        """What was kept."""
        content = json.loads((folder / TRANSFERS).read_text(encoding="utf-8"))
        transfers = {
            Direction(Modality(one["source"]), Modality(one["target"])): Transfer(
                Selection.parse(one["fixed"], GroupLayout.parse(one["layout"])),
                one["best_fixed"],
                one["oracle"],
                one["adaptive"],
            )
            for one in content
        }
        return cls(read_evaluations(folder), transfers)


def _outcome_of(results: MethodResults) -> Outcome:
    """What is kept of a run: of AdaptiveEmbed every fixed selection, and not the best ones only."""
    found = results.adaptive
    if found is None:
        return Outcome(results.evaluations, {})
    return Outcome(tuple(found.every_evaluation()), found.transfers())


@dataclass(frozen=True, eq=False)
class OverSeeds:
    """One method over its seeds, per query."""

    method: str
    seeds: tuple[Evaluation, ...]

    @property
    def query_vectors(self) -> float:
        return float(np.mean([one.query_vectors for one in self.seeds]))

    @property
    def gallery_vectors(self) -> float:
        return float(np.mean([one.gallery_vectors_compared for one in self.seeds]))

    @cached_property
    def precision(self) -> list[PerQuery]:
        """The average precision of every query, mean over the seeds, for each direction."""
        by_direction = zip(*(one.directions for one in self.seeds), strict=True)
        return [np.mean([one.measures[MEASURE] for one in group], axis=0) for group in by_direction]

    @property
    def deviation(self) -> float:
        """How much the mean over the directions varies from seed to seed."""
        return float(np.std([one.means[MEASURE] for one in self.seeds]))


def _over_seeds(outcomes: Sequence[Outcome], prefix: str = "") -> list[OverSeeds]:
    """Every method of one recipe, over its seeds."""
    by_method = zip(*(outcome.evaluations for outcome in outcomes), strict=True)
    return [OverSeeds(f"{prefix}{seeds[0].method}", seeds) for seeds in by_method]


@dataclass(frozen=True, eq=False)
class StudyComparison:
    """The policy of one recipe against everything else, over seeds."""

    name: str
    ours: Sequence[Outcome]
    """What came of each seed."""
    rivals: Mapping[str, Sequence[Outcome]]
    """The same of every rival, by its recipe."""

    def report(self) -> Report:
        """The tables of the study; measures in full are those of the first seed."""
        first = [Evaluation(one.method, one.seeds[0].directions) for one in self.methods]
        more = [self.against_all(), self.share_of_lead()]
        return Report.from_evaluations(first, f"{self.name}, first seed", more)

    @cached_property
    def own_methods(self) -> list[OverSeeds]:
        """Fixed selections, policy and oracle of our own recipe, over its seeds."""
        return _over_seeds(self.ours)

    @cached_property
    def methods(self) -> list[OverSeeds]:
        """Our own methods, and behind them those of every rival.

        A rival that has a policy too is told apart by its recipe.
        """
        found = list(self.own_methods)
        for recipe, outcomes in self.rivals.items():
            prefix = f"{recipe}: " if outcomes[0].transfers else ""
            found += _over_seeds(outcomes, prefix)
        return found

    @property
    def adaptive(self) -> OverSeeds:
        return self._own(ADAPTIVE)

    def best_fixed(self) -> OverSeeds:
        """The best fixed selection of our own recipe on these very queries."""
        fixed = [one for one in self.own_methods if one.method.startswith(FIXED)]
        return max(fixed, key=lambda one: float(np.mean([each.mean() for each in one.precision])))

    def _own(self, method: str) -> OverSeeds:
        return next(one for one in self.own_methods if one.method == method)

    def compare(self, other: OverSeeds) -> list[Comparison]:
        """The policy against another method: each direction, then their mean."""
        generator = np.random.default_rng(DRAW_SEED)
        mine, theirs = self.adaptive.precision, other.precision
        each = [compare(one, two, generator) for one, two in zip(mine, theirs, strict=True)]
        return [*each, compare_means(mine, theirs, generator)]

    def against_all(self) -> Section:
        """Every method, and by how much the policy is better."""
        lines = tuple(map(self._line, self.methods))
        directions = [str(one.direction) for one in self.ours[0].evaluations[0].directions]
        header = (
            "method", "query vectors", "gallery compared", *directions, "mean", "± seeds",
            *(f"Δ {one}" for one in directions), "Δ mean", *(f"p {one}" for one in directions),
            "p mean",
        )  # fmt: skip
        caption = (
            f"mAP (%) over {len(self.ours)} seeds; Δ is the policy less the method, in points; p "
            f"is two-sided, from {NUM_DRAWS:,} bootstrap draws of the queries, whose precision is "
            f"averaged over the seeds. The best fixed selection on these queries is "
            f"{self.best_fixed().method.removeprefix(FIXED)}. {TIE_RULE}"
        )
        return Section(f"{self.name}: the policy against all", header, lines, caption)

    def share_of_lead(self) -> Section:
        """What was gained of the lead of the oracle and of the transfer oracle."""
        lines = []
        ours, best, oracle = self.adaptive, self.best_fixed(), self._own(ORACLE)
        for place, one in enumerate(self.ours[0].evaluations[0].directions):
            leads = [each.precision[place].mean() for each in (ours, best, oracle)]
            share = (leads[0] - leads[1]) / (leads[2] - leads[1]) if leads[2] > leads[1] else np.nan
            found = [outcome.transfers[one.direction] for outcome in self.ours]
            shares = [each.share for each in found if each.share is not None]
            lines.append(
                (
                    str(one.direction),
                    f"{100 * share:.1f}",
                    f"{100 * np.mean([each.headroom for each in found]):.2f}",
                    f"{100 * np.mean(shares):.1f}" if shares else "–",
                )
            )
        header = ("direction", "of the oracle", "transfer lead", "of the transfer oracle")
        caption = (
            "Shares (%) of the lead over the best fixed selection. The transfer oracle chooses on "
            "one half of the other items and is scored on the other half; its lead is in points of "
            "mAP, mean over the seeds."
        )
        return Section(f"{self.name}: shares of the oracles' leads", header, tuple(lines), caption)

    def _line(self, one: OverSeeds) -> tuple[str, ...]:
        means = [100 * each.mean() for each in one.precision]
        figures = (f"{value:.2f}" for value in (*means, np.mean(means), 100 * one.deviation))
        start = (one.method, f"{one.query_vectors:.2f}", f"{one.gallery_vectors:.2f}", *figures)
        if one is self.adaptive:
            return (*start, *("–" for _ in range(2 * len(means) + 2)))
        found = self.compare(one)
        return (
            *start,
            *(f"{100 * each.difference:+.2f}" for each in found),
            *(f"{each.p_value:.4f}" for each in found),
        )

"""The whole training of a recipe in one run folder, which goes on where it was stopped.

run/
  recipe.toml       the resolved recipe
  run.json          versions, machine, data, counts
  stage-one/        checkpoints and scalars of Stage I, and of the same without each fold
  stage-two/        the same of Stage II
  model/            the finished model
  run.lock          held while somebody trains
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from adaptiveembed import __version__
from adaptiveembed.data.feature_writer import locked
from adaptiveembed.errors import ModelFormatError, SettingError
from adaptiveembed.pipeline.allocating import Allocated, EmbeddedPairs, fit_allocation
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.crossfitting import crossfitted_lessons
from adaptiveembed.pipeline.enough import require_enough
from adaptiveembed.pipeline.folder import is_model, write_config, write_folder, write_tensors
from adaptiveembed.pipeline.inputs import EncoderFacts
from adaptiveembed.pipeline.model import AdaptiveEmbed, ModelFacts
from adaptiveembed.pipeline.paired import JointPairs, PairedFeatures
from adaptiveembed.pipeline.recipe import Method, Recipe
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.pipeline.representing import Represented, embed_pairs, fit_representation
from adaptiveembed.pipeline.rows import TrainingRows, fold_rows, training_rows
from adaptiveembed.pipeline.saving import EMBEDDER, facts_table
from adaptiveembed.pipeline.settings import Table, differences, to_table, to_toml
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.training.distributed import current, wait_for_all
from adaptiveembed.training.loop import CHECKPOINTS

RECIPE, RECORD, MODEL, LOCK = "recipe.toml", "run.json", "model", "run.lock"
STAGE_ONE, STAGE_TWO = "stage-one", "stage-two"
LIBRARIES = ("torch", "transformers", "numpy", "llvmlite", "safetensors")


def fit(  # noqa: PLR0913 - what from, how, where to, and who is told
    data: JointPairs,
    recipe: Recipe,
    folder: Path,
    encoders: Mapping[Modality, EncoderFacts],
    *,
    announce: Announce = unannounced,
    folders: Sequence[Path] = (),
) -> Path:
    """Train what the recipe says, or go on with it; the folder of the finished model.

    Args:
        data: What is learned from.
        recipe: How.
        folder: The run's.
        encoders: What made the features.
        announce: Told what begins.
        folders: Where the datasets lie, to be found again by the run.
    """
    rows = training_rows(data.pairs, recipe.splits)
    require_enough(rows, recipe)
    if recipe.splits.folds > 1:
        fold_rows(data.pairs, rows, recipe.splits)  # what cannot be divided is refused before work
    process = current()
    with ExitStack() as held:
        if process.is_first:
            begin_run(data, recipe, folder, folders)
            held.enter_context(locked(folder, LOCK))
        wait_for_all(process)
        if not is_model(folder / MODEL):
            cuts = {each.matryoshka_widths for each in encoders.values()}
            widths = cuts.pop() if len(cuts) == 1 else ()
            _Fitting(data, rows, recipe, folder, encoders, widths, announce).make_model()
        wait_for_all(process)
    return folder / MODEL


@dataclass(frozen=True, eq=False)
class _Fitting:
    """What a training is of, through its stages."""

    data: JointPairs
    rows: TrainingRows
    recipe: Recipe
    folder: Path
    encoders: Mapping[Modality, EncoderFacts]
    matryoshka_widths: tuple[int, ...]
    announce: Announce

    def make_model(self) -> None:
        """Train all stages, and write the model."""
        represented = self.represent(self.rows, self.folder / STAGE_ONE, "Stage I: candidates")
        figures = represented.summary.best
        if self.recipe.method is Method.METAEMBED:
            if current().is_first:
                _save_embedder(represented.embedder, self.facts(figures), self.folder / MODEL)
            return
        allocated = self.allocate(represented)
        found = all_figures(figures, [summary.best for summary in allocated.summaries])
        model = AdaptiveEmbed(represented.embedder, allocated.allocators, self.facts(found))
        if current().is_first:
            model.save_pretrained(self.folder / MODEL)

    def represent(self, rows: TrainingRows, folder: Path, what: str) -> Represented:
        """Stage I on these rows."""
        return fit_representation(
            self.data.pairs,
            rows,
            self.recipe,
            folder,
            progress=self.announce(what),
            matryoshka_widths=self.matryoshka_widths,
        )

    def allocate(self, represented: Represented) -> Allocated:
        """Stage II for what Stage I gave."""
        lessons = None
        if self.recipe.splits.folds > 1:
            lessons = crossfitted_lessons(
                self.data, self.rows, self.recipe, self.folder / STAGE_ONE, self.embedded_by
            )
        return fit_allocation(
            embed_joint(represented.embedder, self.data, self.announce("embedding all pairs")),
            self.rows,
            self.recipe,
            self.folder / STAGE_TWO,
            progress=self.announce("Stage II: policy"),
            lessons=lessons,
        )

    def embedded_by(self, rows: TrainingRows, folder: Path, what: str) -> EmbeddedPairs:
        """All pairs as an embedder of these rows alone sees them."""
        represented = self.represent(rows, folder, what)
        return embed_joint(represented.embedder, self.data, self.announce("embedding all pairs"))

    def facts(self, figures: Mapping[str, float]) -> ModelFacts:
        """What the model is to know of its making."""
        counts = self.rows.counts
        return ModelFacts(self.recipe, self.data.direction, self.encoders, figures, counts)


def embed_joint(
    embedder: PairEmbedder, data: JointPairs, progress: Progress = silent
) -> EmbeddedPairs:
    """The candidate sets of all pairs of all datasets."""
    return EmbeddedPairs(data, *embed_pairs(embedder, data.pairs, progress))


def model_folder(run: Path) -> Path:
    """The folder of the model: of a run, or the folder itself if it is one."""
    if is_model(run):
        return run
    if is_model(run / MODEL):
        return run / MODEL
    if (run / RECIPE).exists():
        raise ModelFormatError(
            f"the run in {run} is not finished; go on with it by the command that began it, with "
            f"--resume"
        )
    raise ModelFormatError(f"{run} holds neither a run nor a model; correct the path")


def run_datasets(run: Path) -> list[Path]:
    """The dataset folders that a run was trained on."""
    model_folder(run)
    folders = _read_record(run).get("folders")
    if not folders:
        raise ModelFormatError(
            f"{run} was trained on pairs in memory; name the dataset with --data"
        )
    return [Path(folder) for folder in folders]


def has_learned(run: Path) -> bool:
    """Whether anything was learned in a run folder, which another recipe would lose."""
    return is_model(run / MODEL) or any(run.rglob(f"{CHECKPOINTS}/*"))


def begin_run(data: JointPairs, recipe: Recipe, folder: Path, folders: Sequence[Path] = ()) -> None:
    """Write down what the run is of; a folder of another run, or of anything else, is refused.

    A run in which nothing was learned yet is no other run: its settings may still be changed.
    """
    table, datasets = to_table(recipe), {each.name: _content(each) for each in data.datasets}
    if (folder / RECIPE).exists() and has_learned(folder):
        _require_same_run(folder, table, datasets)
        return
    if folder.is_file():
        raise SettingError(f"{folder} is a file; choose a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    own = {RECIPE, RECORD, STAGE_ONE, LOCK} if (folder / RECORD).exists() else set()
    strange = sorted(each.name for each in folder.iterdir() if each.name not in own)
    if strange:
        raise SettingError(
            f"{folder} holds something other than a run ({strange[0]}); choose a new or an empty "
            f"folder"
        )
    record = {
        "library": __version__,
        "versions": {name: version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "begun": time.strftime("%Y-%m-%d %H:%M:%S"),
        "datasets": datasets,
        "folders": [str(each.resolve()) for each in folders],
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (folder / RECIPE).write_text(to_toml(table), encoding="utf-8")


def _require_same_run(folder: Path, table: Table, datasets: Mapping[str, Any]) -> None:
    """Refuse to take up a run of another recipe or of other pairs."""
    # read in full: a setting that is newer than the run had its default there
    stored = to_table(read_recipe(str(folder / RECIPE)))
    changed = differences(stored, table)
    if changed:
        raise SettingError(
            f"{folder} holds a run of another recipe, which differs in {', '.join(changed)}; "
            f"choose another folder, or give the same settings"
        )
    learned_from = _read_record(folder).get("datasets")
    if learned_from != datasets:
        raise SettingError(
            f"{folder} holds a run on other pairs ({learned_from}, and now {datasets}); choose "
            f"another folder, or give the same datasets"
        )


def _read_record(run: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = dict(json.loads((run / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ModelFormatError(
            f"{run} does not say what it was trained on ({error}); name the dataset with --data, "
            f"or train again in another folder"
        ) from error
    return record


def _content(pairs: PairedFeatures) -> dict[str, Any]:
    """How many pairs of each split there are, and a number that changes with any of them."""
    named = json.dumps([pairs.ids, pairs.splits]).encode()
    return {
        "training": len(pairs.training),
        "queries": len(pairs.queries),
        "pairs": hashlib.blake2b(named, digest_size=8).hexdigest(),
    }


def _save_embedder(embedder: PairEmbedder, facts: ModelFacts, folder: Path) -> None:
    def fill(partial: Path) -> None:
        checksums = write_tensors(partial, {EMBEDDER: embedder.state_dict()})
        widths = {str(each): width for each, width in embedder.widths.items()}
        write_config(
            partial,
            {
                "library": __version__,
                **facts_table(facts),
                "widths": widths,
                "checksums": checksums,
            },
        )

    write_folder(folder, fill)


def all_figures(
    representation: Mapping[str, float], policies: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """The figures of both stages; those of the policy are called adaptive.

    What several policies have a figure of by the same name is the mean over them.
    """
    names = dict.fromkeys(name for one in policies for name in one)
    means = {
        name: sum(found) / len(found)
        for name in names
        if (found := [one[name] for one in policies if name in one])
    }
    return {**representation, **{f"adaptive {name}": value for name, value in means.items()}}

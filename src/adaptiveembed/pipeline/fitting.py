"""The whole training of a recipe in one run folder, which goes on where it was stopped.

run/
recipe.toml       the resolved recipe
run.json          versions, machine, data, counts
stage-one/        checkpoints and scalars of Stage I
stage-two/        the same of Stage II
model/            the finished model
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from adaptiveembed import __version__
from adaptiveembed.errors import ModelFormatError, SettingError
from adaptiveembed.pipeline.allocating import EmbeddedPairs, fit_allocation
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.folder import is_model, write_config, write_folder, write_tensors
from adaptiveembed.pipeline.inputs import EncoderFacts
from adaptiveembed.pipeline.model import AdaptiveEmbed, ModelFacts
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.recipe import Method, Recipe
from adaptiveembed.pipeline.representing import embed_pairs, fit_representation
from adaptiveembed.pipeline.rows import TrainingRows, training_rows
from adaptiveembed.pipeline.saving import EMBEDDER, facts_table
from adaptiveembed.pipeline.settings import differences, read_toml, to_table, to_toml
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.progress import Progress, silent

RECIPE, RECORD, MODEL = "recipe.toml", "run.json", "model"
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
    begin_run(data, recipe, folder, folders)
    if is_model(folder / MODEL):
        return folder / MODEL
    rows = training_rows(data.pairs, recipe.splits)
    cuts = tuple(dict.fromkeys(each.matryoshka_widths for each in encoders.values()))
    represented = fit_representation(
        data.pairs,
        rows,
        recipe,
        folder / STAGE_ONE,
        progress=announce("Stage I: candidates"),
        matryoshka_widths=cuts[0] if len(cuts) == 1 else (),
    )
    facts = ModelFacts(recipe, data.direction, encoders, represented.summary.best, rows.counts)
    if recipe.method is Method.METAEMBED:
        _save_embedder(represented.embedder, facts, folder / MODEL)
        return folder / MODEL
    embedded = embed_joint(represented.embedder, data, announce("embedding all pairs"))
    allocated = fit_allocation(
        embedded, rows, recipe, folder / STAGE_TWO, announce("Stage II: policy")
    )
    figures = _figures(represented.summary.best, allocated.summaries[0].best)
    finished = ModelFacts(recipe, data.direction, encoders, figures, rows.counts)
    AdaptiveEmbed(represented.embedder, allocated.allocators, finished).save_pretrained(
        folder / MODEL
    )
    return folder / MODEL


def embed_joint(embedder: Any, data: JointPairs, progress: Progress = silent) -> EmbeddedPairs:  # noqa: ANN401
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
            f"the run in {run} is not finished; go on with it by: adaptiveembed train --resume"
        )
    raise ModelFormatError(f"{run} holds neither a run nor a model; correct the path")


def run_datasets(run: Path) -> list[Path]:
    """The dataset folders that a run was trained on."""
    try:
        folders = json.loads((run / RECORD).read_text(encoding="utf-8"))["folders"]
    except (OSError, ValueError, KeyError) as error:
        raise ModelFormatError(
            f"{run} does not say what it was trained on ({error}); name the dataset with --data"
        ) from error
    return [Path(folder) for folder in folders]


def begin_run(data: JointPairs, recipe: Recipe, folder: Path, folders: Sequence[Path] = ()) -> None:
    """Write down what the run is of; a folder of another run is refused."""
    folder.mkdir(parents=True, exist_ok=True)
    table = to_table(recipe)
    if (folder / RECIPE).exists():
        changed = differences(read_toml(folder / RECIPE), table)
        if changed:
            raise SettingError(
                f"{folder} holds a run of another recipe, which differs in {', '.join(changed)}; "
                f"choose another folder, or give the same settings"
            )
        return
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
        "datasets": {each.name: _counts(each) for each in data.datasets},
        "folders": [str(each.resolve()) for each in folders],
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (folder / RECIPE).write_text(to_toml(table), encoding="utf-8")


def _counts(pairs: Any) -> dict[str, int]:  # noqa: ANN401
    return {"training": len(pairs.training), "queries": len(pairs.queries)}


def _save_embedder(embedder: Any, facts: ModelFacts, folder: Path) -> None:  # noqa: ANN401
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


def _figures(one: Mapping[str, float], two: Mapping[str, float]) -> dict[str, float]:
    """The figures of both stages; those of the policy are called adaptive."""
    return {**one, **{f"adaptive {name}": value for name, value in two.items()}}


def rows_of_run(data: JointPairs, recipe: Recipe) -> TrainingRows:
    """The rows that a run of this recipe trains and validates on."""
    return training_rows(data.pairs, recipe.splits)

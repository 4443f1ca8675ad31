"""What a file or folder holds, in lines of words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from adaptiveembed.cli.counts import pair_counts, split_counts
from adaptiveembed.data.feature_index import INDEX, StoredStates
from adaptiveembed.data.pairs import read_manifest
from adaptiveembed.encoders.pretrained.guessing import kind_of_folder
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.encoders.training_free.encoder import TrainingFreeEncoder
from adaptiveembed.encoders.user import TRAINING_FREE, named_encoder
from adaptiveembed.errors import SettingError
from adaptiveembed.pipeline import dataset, fitting
from adaptiveembed.pipeline.explained import explained_recipe
from adaptiveembed.pipeline.folder import is_model, read_config
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.recipe import Method
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.pipeline.saving import read_facts
from adaptiveembed.pipeline.sides import SideStores
from adaptiveembed.structure.direction import Modality
from adaptiveembed.training.loop import CHECKPOINTS

MANIFESTS = {".jsonl", ".csv", ".parquet"}


def described(path: Path, *, check: bool) -> Iterator[str]:
    """Lines about what lies there; with ``check``, everything is compared with its checksums."""
    if not path.exists():
        raise SettingError(f"there is no file or folder {path}; correct the path")
    if path.suffix == ".toml":
        yield from explained_recipe(read_recipe(str(path))).splitlines()
    elif path.suffix in MANIFESTS:
        manifest = read_manifest(path, needed=None)
        yield f"manifest: {len(manifest):,} pairs ({split_counts(manifest)})"
    elif is_model(path):
        yield from _model(path, check=check)
    elif (path / fitting.RECIPE).exists():
        yield from _run(path, check=check)
    elif (path / dataset.FACTS).exists():
        yield from _dataset(path, check=check)
    elif (path / INDEX).exists():
        yield from _store(path, check=check)
    else:
        raise SettingError(
            f"{path} is no manifest, recipe, dataset, run or model of this library; correct the "
            f"path"
        )


def described_encoder(name: str) -> Iterator[str]:
    """Lines about the encoder of this name, or about the checkpoint in this folder."""
    if name == TRAINING_FREE:
        for modality in Modality:
            yield from _encoder(TrainingFreeEncoder(modality))
    elif Path(name).is_dir():
        yield from _encoder(named_encoder(f"{kind_of_folder(Path(name))}:{name}"))
    else:
        yield from _encoder(named_encoder(name))


def _encoder(encoder: Encoder) -> Iterator[str]:
    yield f"encoder: {encoder.name}"
    for fact, words in getattr(encoder, "facts", {}).items():
        yield f"  {fact}: {words}"
    yield f"  modalities: {', '.join(sorted(encoder.modalities))}"
    yield f"  width: {encoder.width}"
    if encoder.matryoshka_widths:
        yield f"  may be cut to {', '.join(map(str, encoder.matryoshka_widths))}"
    yield f"  fingerprint {encoder.fingerprint}"


def _model(path: Path, *, check: bool) -> Iterator[str]:
    config = read_config(path)
    facts = read_facts(config)
    yield f"model: {facts.recipe.name}, {facts.direction}, by adaptiveembed {config['library']}"
    for modality, encoder in facts.encoders.items():
        yield f"  {modality}: {encoder.name}, width {config['widths'][modality]}"
        yield f"    fingerprint {encoder.fingerprint}"
    for name, count in facts.counts.items():
        yield f"  {count:,} pairs for {name}"
    for name, value in facts.figures.items():
        yield f"  {name}: {value:.4f}"
    if facts.recipe.method is Method.ADAPTIVE:
        model = AdaptiveEmbed.from_pretrained(path, check=check)
        for direction, threshold in model.thresholds.items():
            yield f"  threshold {direction}: {threshold:.4f}"
        yield f"  {model.embedder.num_trainable:,} trained parameters in the embedder"
        if check:
            yield "  the self-test comes out as it was stored"


def _run(path: Path, *, check: bool) -> Iterator[str]:
    recipe = read_recipe(str(path / fitting.RECIPE))
    yield f"run: {recipe.name}, method {recipe.method}, seed {recipe.seed}"
    for stage in (fitting.STAGE_ONE, fitting.STAGE_TWO):
        for checkpoints in sorted((path / stage).rglob(CHECKPOINTS)):
            steps = sorted(one.name for one in checkpoints.glob("step-*"))
            yield f"  {checkpoints.parent.relative_to(path)}: {steps[-1] if steps else 'not begun'}"
    if is_model(path / fitting.MODEL):
        yield from (f"  {line}" for line in _model(path / fitting.MODEL, check=check))
    else:
        yield "  not finished; the command that began it goes on with --resume"


def _dataset(path: Path, *, check: bool) -> Iterator[str]:
    found = dataset.open_dataset(path)
    yield f"dataset: {pair_counts(found.pairs)}"
    for modality, encoder in found.encoders.items():
        yield f"  {modality}: {encoder.name}"
        yield f"    fingerprint {encoder.fingerprint}"
        yield from (f"    {line}" for line in _store(path / modality, check=check))
    if found.left_out:
        yield f"  {len(found.left_out)} pairs are left out, because a side of them is not encoded"


def _store(path: Path, *, check: bool) -> Iterator[str]:
    side = SideStores.open(path)
    states = "with" if side.states is StoredStates.ALL else "without stored"
    several = f" in {len(side.stores)} stores" if len(side.stores) > 1 else ""
    yield f"features: {len(side.ids):,} items{several}, width {side.width}, {states} hidden states"
    if check:
        side.verify()
        yield "  every byte is as it was written"

"""From pairs of any kind to a model in one call: what ``AdaptiveEmbed.fit`` does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from adaptiveembed.data.pairs import Manifest, Pair, read_manifest
from adaptiveembed.encoders.user import TRAINING_FREE, load_encoders
from adaptiveembed.errors import DtypeError
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.dataset import Dataset, encode_dataset, medium_of, open_dataset
from adaptiveembed.pipeline.fitting import fit
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts
from adaptiveembed.pipeline.paired import JointPairs, PairedFeatures
from adaptiveembed.pipeline.recipe import Recipe
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.structure.direction import Modality

Pairs = PairedFeatures | Dataset | Manifest | str | Path | Iterable[tuple[str, str | Path]]
"""Encoded pairs, a dataset, a manifest or its path, or texts with the paths of their media."""


def fit_pairs(
    pairs: Pairs,
    recipe: Recipe | str = "laptop",
    folder: str | Path | None = None,
    encoders: Mapping[Modality, str] | None = None,
    announce: Announce = unannounced,
) -> Path:
    """Encode what is not encoded, and train; the folder of the model.

    Everything is kept in ``folder``, and the same call goes on there after an interruption; without
    a folder it is a temporary one.
    """
    place = Path(folder) if folder is not None else Path(tempfile.mkdtemp(prefix="adaptiveembed-"))
    settings = read_recipe(recipe) if isinstance(recipe, str) else recipe
    encoded, facts = _encoded(pairs, place / "data", encoders or {}, announce)
    return fit(JointPairs((encoded,)), settings, place / "run", facts, announce=announce)


def _encoded(
    pairs: Pairs, folder: Path, encoders: Mapping[Modality, str], announce: Announce
) -> tuple[PairedFeatures, Mapping[Modality, EncoderFacts]]:
    if isinstance(pairs, PairedFeatures):
        both = (pairs.direction.source, pairs.direction.target)
        return pairs, {each: EncoderFacts(FEATURES, FEATURES) for each in both}
    if isinstance(pairs, Dataset):
        return pairs.pairs, pairs.encoders
    manifest = _as_manifest(pairs)
    names = dict.fromkeys((Modality.TEXT, medium_of(manifest)), TRAINING_FREE) | dict(encoders)
    encode_dataset(manifest, load_encoders(names), names, folder, announce=announce)
    dataset = open_dataset(folder)
    return dataset.pairs, dataset.encoders


def _as_manifest(pairs: Manifest | str | Path | Iterable[tuple[str, str | Path]]) -> Manifest:
    if isinstance(pairs, Manifest):
        return pairs
    if isinstance(pairs, str | Path):
        return read_manifest(pairs)
    listed = list(map(_checked_pair, pairs))
    digits = len(str(len(listed)))
    return Manifest(
        tuple(
            Pair(f"pair-{place:0{digits}}", text=text, media=media)
            for place, (text, media) in enumerate(listed)
        )
    )


def _checked_pair(pair: object) -> tuple[str, Path]:
    if isinstance(pair, tuple) and len(pair) == 2:
        text, media = pair
        if isinstance(text, str) and isinstance(media, str | Path):
            return text, Path(media)
    raise DtypeError(f"got the pair {pair!r}; give a text and the path of its medium, as a tuple")

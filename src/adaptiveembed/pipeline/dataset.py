"""A folder of encoded pairs: what ``adaptiveembed encode`` makes and everything else reads.

dataset/
dataset.json    the two modalities, their encoders, and where they lie
pairs.jsonl     ids, texts, paths of media, splits, metadata
text/  image/   a feature store for each modality
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from adaptiveembed.data.feature_exchange import import_features
from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.data.limits import MediaLimits
from adaptiveembed.data.manifest_writing import write_manifest
from adaptiveembed.data.media import Media, Text
from adaptiveembed.data.pairs import Manifest, Pair, Side, read_manifest
from adaptiveembed.data.reading import content_key, modality_of, read_media
from adaptiveembed.encoders.driving import EncodingSummary, encode_items
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.errors import FeatureStoreError, ManifestError, MediaError
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts
from adaptiveembed.pipeline.paired import QUERY, TRAIN, PairedFeatures
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.views import ChosenFeatures

FORMAT, VERSION = "adaptiveembed.dataset", 1
FACTS, PAIRS = "dataset.json", "pairs.jsonl"

QUERY_SHARE, QUERY_LIMIT, QUERY_SEED = 0.1, 1000, 0
"""What becomes queries of a manifest that names no splits at all."""

NO_KEY = ""
"""What stands for the content of an item that cannot be read: it is never stored."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Encoded pairs, and what they were before."""

    folder: Path
    pairs: PairedFeatures
    manifest: Manifest
    """The pairs of which both sides are encoded; row i is pair i."""
    encoders: Mapping[Modality, EncoderFacts]
    left_out: tuple[str, ...]
    """The pairs of which a side could not be encoded."""


@dataclass(frozen=True)
class SideFacts:
    """One side of a dataset: what it is, and what made its features."""

    modality: Modality
    encoder: EncoderFacts


def open_dataset(folder: str | Path) -> Dataset:
    """The dataset in a folder; pairs of which a side is missing are left out."""
    folder = Path(folder)
    sides = _read_facts(folder)
    manifest = with_splits(read_manifest(folder / PAIRS, needed=frozenset()))
    stores = [FeatureStore.open(folder / side.modality) for side in sides]
    known = set(stores[0].ids) & set(stores[1].ids)
    rows = [row for row, pair in enumerate(manifest) if pair.id in known]
    if not rows:
        raise FeatureStoreError(f"no pair of {folder} has both sides encoded; encode it again")
    chosen = manifest.take(rows)
    source, target = (ChosenFeatures(store, store.places(chosen.ids)) for store in stores)
    pairs = PairedFeatures(
        Direction(sides[0].modality, sides[1].modality),
        chosen.ids,
        source,
        target,
        tuple(pair.split or TRAIN for pair in chosen),
        folder.name or "pairs",
    )
    left_out = tuple(pair.id for pair in manifest if pair.id not in known)
    return Dataset(folder, pairs, chosen, {one.modality: one.encoder for one in sides}, left_out)


def encode_dataset(  # noqa: PLR0913 - what, by what, where to, and how
    manifest: Manifest,
    encoders: Mapping[Modality, Encoder],
    names: Mapping[Modality, str],
    folder: Path,
    *,
    limits: MediaLimits | None = None,
    batch_size: int = 64,
    strict: bool = False,
    announce: Callable[[str], Progress] = lambda _: silent,
) -> dict[Modality, EncodingSummary]:
    """Encode both sides of a manifest, or go on with it; what became of each side.

    Args:
        manifest: The pairs.
        encoders: One for text, and one for the medium.
        names: By which name each encoder is loaded again.
        folder: The dataset's.
        limits: How much of a medium is read.
        batch_size: Items that are encoded at a time.
        strict: Whether an item that cannot be read ends the work.
        announce: Told what begins.
    """
    sides = [
        SideFacts(modality, encoder_facts(names[modality], encoder))
        for modality, encoder in encoders.items()
    ]
    begin_dataset(folder, manifest, sides)
    summaries = {}
    for modality, encoder in encoders.items():
        items = [_item(pair, modality, limits or MediaLimits()) for pair in manifest]
        summaries[modality] = fill_side(
            encoder,
            items,
            folder / modality,
            batch_size=batch_size,
            strict=strict,
            progress=announce(f"encoding {modality}"),
        )
    return summaries


def fill_side(  # noqa: PLR0913 - by what, what, where to, and how
    encoder: Encoder,
    items: Sequence[tuple[str, str, Callable[[], Media]]],
    folder: Path,
    *,
    batch_size: int = 64,
    strict: bool = False,
    progress: Progress = silent,
) -> EncodingSummary:
    """Encode the items that a store does not hold yet."""
    with FeatureWriter(folder, encoder.fingerprint, encoder.width) as writer:
        return encode_items(
            encoder, items, writer, batch_size=batch_size, strict=strict, progress=progress
        )


def import_dataset(
    files: Mapping[Modality, Path],
    folder: Path,
    manifest: Manifest | None = None,
    announce: Callable[[str], Progress] = lambda _: silent,
) -> Dataset:
    """A dataset of features that were made elsewhere, one file (.npz or safetensors) a modality.

    Files of one encoder say so by one fingerprint in them. Without a manifest, pairs are the ids
    that both files have.
    """
    if folder.exists():
        raise FeatureStoreError(f"{folder} exists; give a new folder")
    stores = {
        modality: import_features(
            file, folder / modality, progress=announce(f"importing {modality}")
        )
        for modality, file in files.items()
    }
    sides = [
        SideFacts(modality, EncoderFacts(FEATURES, store.fingerprint, store.fingerprint))
        for modality, store in stores.items()
    ]
    if manifest is None:
        source, target = stores.values()
        both = set(target.ids)
        manifest = Manifest(tuple(Pair(one) for one in source.ids if one in both))
    write_facts(folder, manifest, sides)
    return open_dataset(folder)


def begin_dataset(folder: Path, manifest: Manifest, sides: Sequence[SideFacts]) -> None:
    """Write down what the dataset is of; a folder that holds something else is refused."""
    folder.mkdir(parents=True, exist_ok=True)
    known = _text_of(folder / FACTS)
    if known is None and any(folder.iterdir()):
        raise FeatureStoreError(f"{folder} holds something else; give a new or an empty folder")
    if known is not None and json.loads(known) != json.loads(_facts_text(sides)):
        raise FeatureStoreError(
            f"{folder} was made by other encoders, or of other modalities; encode into another "
            f"folder"
        )
    write_facts(folder, manifest, sides)


def write_facts(folder: Path, manifest: Manifest, sides: Sequence[SideFacts]) -> None:
    """Write what a dataset is of; the file that makes it one appears last, and whole."""
    write_manifest(manifest, folder / PAIRS)
    partial_file = folder / f".{FACTS}"
    partial_file.write_text(_facts_text(sides), encoding="utf-8")
    partial_file.replace(folder / FACTS)


def _facts_text(sides: Sequence[SideFacts]) -> str:
    facts = {"format": FORMAT, "version": VERSION, "sides": [asdict(side) for side in sides]}
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def encoder_facts(name: str, encoder: Encoder) -> EncoderFacts:
    """What is kept of an encoder beside the features that it makes."""
    cuts = tuple(encoder.matryoshka_widths)
    return EncoderFacts(name, encoder.fingerprint, encoder.space, cuts)


def medium_of(manifest: Manifest) -> Modality:
    """The one modality of a manifest's media, by the names of the files."""
    found = dict.fromkeys(modality_of(pair.media) for pair in manifest if pair.media is not None)
    if not found:
        raise ManifestError(f"{manifest!r} names no medium; add the column media")
    if len(found) > 1:
        raise ManifestError(
            f"{manifest!r} has media of {' and '.join(found)}; give one manifest for each"
        )
    return next(iter(found))


def with_splits(manifest: Manifest) -> Manifest:
    """The manifest itself, or, where it names no split, a seeded share of it as queries."""
    if manifest.splits:
        return manifest
    count = min(round(QUERY_SHARE * len(manifest)), QUERY_LIMIT)
    asked = set(np.random.default_rng(QUERY_SEED).permutation(len(manifest))[:count].tolist())
    pairs = (
        replace(pair, split=QUERY if row in asked else TRAIN) for row, pair in enumerate(manifest)
    )
    return Manifest(tuple(pairs), manifest.path)


def _item(
    pair: Pair, modality: Modality, limits: MediaLimits
) -> tuple[str, str, Callable[[], Media]]:
    """The id of one side of a pair, a key of its content, and how to read it."""
    if modality is Modality.TEXT:
        text = pair.text or ""
        return pair.id, content_key(text), partial(_as_text, text, pair.id)
    assert pair.media is not None
    try:
        key = content_key(pair.media)
    except MediaError:  # it will be said when the item is read
        key = NO_KEY
    return pair.id, key, partial(read_media, pair.media, modality, limits)


def _as_text(text: str, item: str) -> Text:
    if not text.strip():
        raise MediaError(f"the text of {item!r} is empty; write one or leave the pair out")
    return Text(text)


def _read_facts(folder: Path) -> tuple[SideFacts, SideFacts]:
    text = _text_of(folder / FACTS)
    if text is None:
        raise FeatureStoreError(
            f"{folder} holds no encoded pairs ({FACTS} is not there); make them by: "
            f"adaptiveembed encode MANIFEST --output {folder}"
        )
    try:
        facts = json.loads(text)
        if facts["format"] != FORMAT or facts["version"] != VERSION:
            raise FeatureStoreError(f"{folder / FACTS} is not of this version; encode it again")
        source, target = (_side(one) for one in facts["sides"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FeatureStoreError):
            raise
        raise FeatureStoreError(f"{folder / FACTS} is damaged ({error}); encode again") from error
    return source, target


def _side(facts: Any) -> SideFacts:  # noqa: ANN401 - as JSON has it
    encoder = facts["encoder"] | {"matryoshka_widths": tuple(facts["encoder"]["matryoshka_widths"])}
    return SideFacts(Modality(facts["modality"]), EncoderFacts(**encoder))


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


NEEDED = frozenset({Side.TEXT, Side.MEDIA})
"""What a manifest must have to be encoded."""

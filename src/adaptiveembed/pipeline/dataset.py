"""A folder of encoded pairs: what ``adaptiveembed encode`` makes and everything else reads.

dataset/
  dataset.json    the two modalities, and their encoders
  pairs.jsonl     ids, texts, paths of media, splits, metadata
  text/  image/   the features of each modality: see ``sides``
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from adaptiveembed.data.feature_exchange import import_features
from adaptiveembed.data.feature_index import StoredStates
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.data.limits import MediaLimits
from adaptiveembed.data.manifest_writing import replace_manifest
from adaptiveembed.data.media import Media, Text
from adaptiveembed.data.pairs import Manifest, Pair, read_manifest
from adaptiveembed.data.reading import content_key, modality_of, read_media
from adaptiveembed.encoders.driving import EncodingSummary
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.encoders.reading_ahead import Load
from adaptiveembed.errors import (
    EncoderError,
    FeatureStoreError,
    ManifestError,
    MediaError,
    SettingError,
)
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts
from adaptiveembed.pipeline.live import LiveFeatures
from adaptiveembed.pipeline.paired import QUERY, TRAIN, PairedFeatures
from adaptiveembed.pipeline.sides import BATCH_SIZE, SideStores, fill_side
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.encoded import Features
from adaptiveembed.structure.views import ChosenFeatures
from adaptiveembed.training.distributed import current, wait_for_all

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


class KeptStates(StrEnum):
    """What a dataset keeps of hidden states."""

    ALL = "all"
    """All of them."""
    NONE = "none"
    """None: the global feature is then an item's only state."""
    LIVE = "live"
    """None either: they are encoded whenever they are read, so media and encoder must stay."""

    @property
    def stored(self) -> StoredStates:
        """What a feature store keeps."""
        return StoredStates.ALL if self is KeptStates.ALL else StoredStates.NONE


@dataclass(frozen=True)
class SideFacts:
    """One side of a dataset: what it is, and what made its features."""

    modality: Modality
    encoder: EncoderFacts
    states: KeptStates = KeptStates.ALL


def open_dataset(folder: str | Path) -> Dataset:
    """The dataset in a folder; pairs of which a side is missing are left out."""
    folder = Path(folder)
    sides = _read_facts(folder)
    manifest = with_splits(read_manifest(folder / PAIRS, needed=None))
    stores = [SideStores.open(folder / side.modality) for side in sides]
    known = set(stores[0].ids) & set(stores[1].ids)
    rows = [row for row, pair in enumerate(manifest) if pair.id in known]
    if not rows:
        raise FeatureStoreError(f"no pair of {folder} has both sides encoded; encode it again")
    chosen = manifest.take(rows)
    source, target = (
        _features(side, store, chosen) for side, store in zip(sides, stores, strict=True)
    )
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


def _features(side: SideFacts, stores: SideStores, manifest: Manifest) -> Features:
    """What is stored of a side, or what is encoded when it is read."""
    places = stores.places(manifest.ids)
    stored = ChosenFeatures(stores.features, places)
    if side.states is not KeptStates.LIVE:
        return stored
    keys = stores.keys

    def media_of(row: int) -> Media:
        item, key, load = _item(manifest, side.modality, MediaLimits(), row)
        if key not in (keys[places[row]], NO_KEY):
            raise MediaError(
                f"the {side.modality} of {item!r} has changed since it was encoded; bring it back, "
                f"or encode the dataset again"
            )
        return load()

    return LiveFeatures(stored, partial(side.encoder.load, side.modality), media_of)


def encode_dataset(  # noqa: PLR0913 - what, by what, where to, and how
    manifest: Manifest,
    encoders: Mapping[Modality, Encoder],
    names: Mapping[Modality, str],
    folder: Path,
    *,
    limits: MediaLimits | None = None,
    states: KeptStates = KeptStates.ALL,
    batch_size: int = BATCH_SIZE,
    strict: bool = False,
    announce: Announce = unannounced,
) -> dict[Modality, EncodingSummary]:
    """Encode both sides of a manifest, or go on with it; what became of each side.

    Of several processes each encodes a share, and says what became of that.

    Args:
        manifest: The pairs.
        encoders: One for text, and one for the medium.
        names: By which name each encoder is loaded again.
        folder: The dataset's.
        limits: How much of a medium is read.
        states: What is kept beside the global features.
        batch_size: Items that are encoded at a time.
        strict: Whether an item that cannot be read ends the work.
        announce: Told what begins.
    """
    _require_both_sides(manifest)
    require_different_texts(manifest)
    with_splits(manifest)
    sides = [
        SideFacts(modality, encoder_facts(names[modality], encoder), states)
        for modality, encoder in encoders.items()
    ]
    if current().is_first:
        begin_dataset(folder, manifest, sides)
    wait_for_all(current())
    summaries = {}
    for modality, encoder in encoders.items():
        item_of = partial(_item, manifest, modality, limits or MediaLimits())
        summaries[modality] = fill_side(
            encoder,
            manifest.ids,
            item_of,
            folder / modality,
            states=states.stored,
            batch_size=batch_size,
            strict=strict,
            progress=announce(f"encoding {modality}"),
        )
    return summaries


def import_dataset(
    files: Mapping[Modality, Path],
    folder: Path,
    manifest: Manifest | None = None,
    announce: Announce = unannounced,
) -> Dataset:
    """A dataset of features that were made elsewhere, one file (.npz or safetensors) a modality.

    Files of one encoder say so by one fingerprint in them. Without a manifest, pairs are the ids
    that both files have. The folder appears whole or not at all.
    """
    if len(files) != 2:
        raise SettingError(
            f"features of {' and '.join(files) or 'nothing'} were given; give a file for each of "
            f"two modalities"
        )
    if folder.exists():
        raise FeatureStoreError(f"{folder} exists; give a new folder")
    if manifest is not None:
        with_splits(manifest)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as place:
        partial_folder = Path(place) / folder.name
        stores = {
            modality: import_features(
                file, partial_folder / modality, progress=announce(f"importing {modality}")
            )
            for modality, file in files.items()
        }
        sides = [
            SideFacts(modality, EncoderFacts(FEATURES, store.fingerprint, store.fingerprint))
            for modality, store in stores.items()
        ]
        one, other = stores.values()
        pairs = _common_pairs(one, other, manifest)
        write_facts(partial_folder, pairs, sides)
        partial_folder.rename(folder)
    return open_dataset(folder)


def _common_pairs(one: FeatureStore, other: FeatureStore, manifest: Manifest | None) -> Manifest:
    """The pairs that are listed, or those of all ids that both sides have."""
    both = set(one.ids) & set(other.ids)
    if manifest is None:
        manifest = Manifest(tuple(Pair(each) for each in one.ids if each in both))
    if both.isdisjoint(manifest.ids):
        raise FeatureStoreError(
            f"the two files and the list of pairs have no id in common ({one.ids[0]!r}, "
            f"{other.ids[0]!r}{''.join(f', {each!r}' for each in manifest.ids[:1])}); give both "
            f"sides of a pair the same id"
        )
    return manifest


def begin_dataset(folder: Path, manifest: Manifest, sides: Sequence[SideFacts]) -> None:
    """Write down what the dataset is of; a folder that holds something else is refused."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / FACTS).exists():
        strange = sorted(each.name for each in folder.iterdir() if each.name != PAIRS)
        if strange:
            raise FeatureStoreError(
                f"{folder} holds something else ({strange[0]}); give a new or an empty folder"
            )
    elif (known := _read_facts(folder)) != tuple(sides):
        raise FeatureStoreError(
            f"{folder} was made by {_in_words(known)}, and now it is {_in_words(sides)}; encode "
            f"into another folder"
        )
    write_facts(folder, manifest, sides)


def _in_words(sides: Sequence[SideFacts]) -> str:
    return " and ".join(
        f"{one.encoder.name} for {one.modality} (fingerprint {one.encoder.fingerprint}, hidden "
        f"states {one.states})"
        for one in sides
    )


def write_facts(folder: Path, manifest: Manifest, sides: Sequence[SideFacts]) -> None:
    """Write what a dataset is of; the file that makes it one appears last, and whole."""
    replace_manifest(manifest, folder / PAIRS)
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


def require_encoders(dataset: Dataset, encoders: Mapping[Modality, EncoderFacts]) -> None:
    """Refuse a dataset of other modalities or by other encoders than these."""
    for modality, needed in encoders.items():
        found = dataset.encoders.get(modality)
        if found is None:
            raise SettingError(
                f"{dataset.folder} is of {' and '.join(dataset.encoders)}, and needed is "
                f"{' and '.join(encoders)}; give a dataset of these"
            )
        # features that were brought along in memory have no fingerprint to compare
        if needed.fingerprint not in (found.fingerprint, FEATURES):
            raise EncoderError(
                f"the {modality} features of {dataset.folder} have fingerprint "
                f"{found.fingerprint}, and needed is {needed.fingerprint}; encode it with "
                f"{needed.name}, or import files that hold one and the same fingerprint"
            )


def common_encoders(datasets: Sequence[Dataset]) -> Mapping[Modality, EncoderFacts]:
    """The encoders of all datasets, which must be the same to be trained on together."""
    encoders = datasets[0].encoders
    for other in datasets[1:]:
        require_encoders(other, encoders)
    return encoders


def _require_both_sides(manifest: Manifest) -> None:
    for pair in manifest:
        if pair.text is None or pair.media is None:
            side = "text" if pair.text is None else "medium"
            raise ManifestError(
                f"pair {pair.id!r} of {manifest!r} has no {side}; give every pair both sides"
            )


def require_different_texts(manifest: Manifest) -> None:
    """Refuse pairs from whose texts nothing can be learned."""
    if manifest.has_identical_texts():
        raise ManifestError(
            f"all {len(manifest):,} texts are {manifest[0].text!r:.60}, and nothing can be learned "
            f"from them; give each medium a text of its own"
        )


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
    unknown = sorted(set(manifest.splits) - {TRAIN, QUERY})
    if unknown:
        raise ManifestError(
            f"{manifest!r} has a split {unknown[0]!r}; the splits are {TRAIN!r} and {QUERY!r}"
        )
    if manifest.splits:
        return manifest
    count = min(round(QUERY_SHARE * len(manifest)), QUERY_LIMIT)
    asked = set(np.random.default_rng(QUERY_SEED).permutation(len(manifest))[:count].tolist())
    pairs = (
        replace(pair, split=QUERY if row in asked else TRAIN) for row, pair in enumerate(manifest)
    )
    return Manifest(tuple(pairs), manifest.path)


def _item(
    manifest: Manifest, modality: Modality, limits: MediaLimits, place: int
) -> tuple[str, str, Load]:
    """The id of one side of a pair, a key of its content, and how to read it."""
    pair = manifest[place]
    load = _load_of(pair, modality, limits)
    if pair.media is None or modality is Modality.TEXT:
        return pair.id, content_key(pair.text or ""), load
    try:
        return pair.id, content_key(pair.media), load
    except MediaError:  # it will be said when the item is read
        return pair.id, NO_KEY, load


def _load_of(pair: Pair, modality: Modality, limits: MediaLimits) -> Load:
    """How one side of a pair is read."""
    if modality is Modality.TEXT:
        return partial(_as_text, pair.text or "", pair.id)
    assert pair.media is not None
    return partial(read_media, pair.media, modality, limits)


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
    # datasets of before there was a choice keep all states
    states = KeptStates(facts.get("states", KeptStates.ALL))
    return SideFacts(Modality(facts["modality"]), EncoderFacts(**encoder), states)


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None

"""The built-in corpus as a dataset, encoded from memory: no media are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from adaptiveembed.data.media import Media
from adaptiveembed.data.pairs import Manifest, Pair
from adaptiveembed.data.reading import content_key
from adaptiveembed.data.scenes.corpus import VERSION, scene_id, scene_media, scene_text
from adaptiveembed.data.scenes.latent import DEFAULTS, scene
from adaptiveembed.data.scenes.settings import ScenesSettings
from adaptiveembed.encoders.driving import EncodingSummary
from adaptiveembed.encoders.reading_ahead import Load
from adaptiveembed.encoders.user import TRAINING_FREE, load_encoder
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.dataset import SideFacts, begin_dataset, encoder_facts
from adaptiveembed.pipeline.paired import QUERY, TRAIN
from adaptiveembed.pipeline.sides import fill_side
from adaptiveembed.structure.direction import Modality


@dataclass(frozen=True)
class SceneCorpus:
    """So many scenes of a seed, told and seen or heard; the last ones are queries."""

    medium: Modality
    training: int
    queries: int
    seed: int = 0
    settings: ScenesSettings = DEFAULTS

    def media(self, number: int, modality: Modality) -> Media:
        """One side of the scene of this number."""
        one = scene(number, self.seed, self.settings)
        if modality is Modality.TEXT:
            return scene_text(one, self.medium, self.settings)
        return scene_media(one, modality, self.settings)

    def manifest(self) -> Manifest:
        """The pairs with their texts; their media are made when they are asked for."""
        return Manifest(tuple(map(self._pair, range(self.training + self.queries))))

    def _pair(self, number: int) -> Pair:
        one = scene(number, self.seed, self.settings)
        return Pair(
            scene_id(number),
            text=scene_text(one, self.medium, self.settings).text,
            split=TRAIN if number < self.training else QUERY,
            metadata={"number": number, "kind": str(one.kind)},
        )


def encode_scenes(
    corpus: SceneCorpus,
    folder: Path,
    announce: Announce = unannounced,
    *,
    batch_size: int = 64,
) -> Mapping[Modality, EncodingSummary]:
    """Encode a corpus by the built-in encoder into a dataset folder, or go on with it."""
    encoders = {each: load_encoder(TRAINING_FREE, each) for each in (Modality.TEXT, corpus.medium)}
    sides = [
        SideFacts(each, encoder_facts(TRAINING_FREE, encoder)) for each, encoder in encoders.items()
    ]
    begin_dataset(folder, corpus.manifest(), sides)
    return {
        each: fill_side(
            encoder,
            [scene_id(number) for number in range(corpus.training + corpus.queries)],
            partial(_item, corpus, each),
            folder / each,
            batch_size=batch_size,
            progress=announce(f"encoding {each}"),
        )
        for each, encoder in encoders.items()
    }


def _item(corpus: SceneCorpus, modality: Modality, number: int) -> tuple[str, str, Load]:
    """A scene with a key that names it: nothing has to be made to know that it is stored."""
    origin = content_key(f"{VERSION} {corpus.seed} {corpus.medium} {corpus.settings}")
    return scene_id(number), f"{origin}-{number}", partial(corpus.media, number, modality)

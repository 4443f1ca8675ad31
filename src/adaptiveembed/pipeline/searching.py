"""A model over a dataset: queries in, items with their scores and matches out."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from adaptiveembed.allocation.adaptive import Explanation
from adaptiveembed.data.feature_exchange import import_features, stated_fingerprint
from adaptiveembed.errors import EncoderError
from adaptiveembed.pipeline.dataset import Dataset, require_encoders
from adaptiveembed.pipeline.inputs import MediaLike, encoded_in_batches
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.representing import embed_pairs
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.search import search
from adaptiveembed.similarity.setsim import setsim_assignment
from adaptiveembed.structure.candidates import CAES, activate
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.selection import Selection


@dataclass(frozen=True)
class Found:
    """One item that was found."""

    id: str
    score: float
    text: str | None
    media: Path | None
    matched: tuple[tuple[str, str], ...]
    """Which position of the query matched which of the item, by the paper's names."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What a query found, and with how many vectors."""

    query: str
    selection: Selection
    found: tuple[Found, ...]
    explanation: Explanation | None
    """How the policy came to the selection; none where the selection was given."""
    threshold: float | None
    """What an expansion's probability had to exceed; none where the selection was given."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A query that is encoded and has its selection."""

    query: str
    direction: Direction
    caes: CAES
    explanation: Explanation | None
    threshold: float | None

    @property
    def selection(self) -> Selection:
        (selection,) = self.caes.selections
        return selection


class Choice(NamedTuple):
    """What replaces the policy's choice; nothing does where all is open."""

    selection: str | None = None
    capacity: int | None = None
    threshold: float | None = None


POLICY = Choice()
"""The policy's own choice."""


def ask(model: AdaptiveEmbed, query: MediaLike, choice: Choice = POLICY) -> Asked:
    """One query of a model, with its selection."""
    modality = model.modality_of(query)
    encoded = encoded_in_batches(model.encoder(modality), [query], batch_size=1)
    return _asked(model, str(query), modality, encoded, choice)


def ask_features(
    model: AdaptiveEmbed, modality: Modality, file: Path, choice: Choice = POLICY
) -> list[Asked]:
    """The queries whose features a file holds, each called by its id.

    The file is one that ``data.feature_exchange`` reads; where it states a fingerprint, that must
    be the one of the features that the model learned from.
    """
    known = model.facts.encoders.get(modality)
    with tempfile.TemporaryDirectory() as place:
        store = import_features(file, Path(place) / "queries")
        stated = stated_fingerprint(file)
        if known is not None and stated not in (None, known.fingerprint):
            raise EncoderError(
                f"the features of {file} have fingerprint {stated}, and the model learned from "
                f"{known.fingerprint}; give features of the same encoder"
            )
        queries = {one: store.read(np.array([row])) for row, one in enumerate(store.ids)}
    return [_asked(model, one, modality, encoded, choice) for one, encoded in queries.items()]


def _asked(
    model: AdaptiveEmbed, name: str, modality: Modality, encoded: EncodedMedia, choice: Choice
) -> Asked:
    """One encoded query with its selection, and the reasons where the policy chose it."""
    caes = model.encode_query(encoded, modality=modality, **choice._asdict())
    direction = next(one for one in model.directions if one.source is modality)
    if choice.selection is not None or choice.capacity is not None:
        return Asked(name, direction, caes, None, None)
    threshold = model.thresholds[direction] if choice.threshold is None else choice.threshold
    (explained,) = model.explain(encoded, modality=modality, threshold=threshold)
    return Asked(name, direction, caes, explained, threshold)


@dataclass(frozen=True, eq=False)
class Searcher:
    """The galleries of both modalities of a dataset, ready to be searched."""

    model: AdaptiveEmbed
    dataset: Dataset
    galleries: dict[Modality, Gallery]

    @classmethod
    def over(cls, model: AdaptiveEmbed, dataset: Dataset, progress: Progress = silent) -> Searcher:
        """A searcher over all pairs of a dataset."""
        require_encoders(dataset, model.facts.encoders)
        pairs = dataset.pairs
        source, target = embed_pairs(model.embedder, pairs, progress)
        galleries = {
            pairs.direction.source: Gallery.from_candidates(pairs.ids, source),
            pairs.direction.target: Gallery.from_candidates(pairs.ids, target),
        }
        return cls(model, dataset, galleries)

    def answer(self, asked: Asked, k: int) -> Findings:
        """The k items of the other modality most similar to what was asked."""
        chosen = asked.selection
        gallery = self.galleries[asked.direction.target]
        (ranking,) = search(gallery, asked.caes, k)
        items = activate(gallery.candidates(gallery.indices_of(ranking.ids)), chosen)
        own = activate(asked.caes.candidates, chosen).expand(len(items), -1, -1)
        columns = setsim_assignment(own, items)
        found = tuple(
            self._found(hit.id, hit.score, chosen, column)
            for hit, column in zip(ranking, columns, strict=True)
        )
        return Findings(asked.query, chosen, found, asked.explanation, asked.threshold)

    def _found(self, item: str, score: float, selection: Selection, columns: torch.Tensor) -> Found:
        row = int(self.dataset.pairs.rows_of([item])[0])
        pair, labels = self.dataset.manifest[row], selection.labels
        matched = tuple(
            (labels[place], labels[column])
            for place, column in enumerate(np.asarray(columns).tolist())
        )
        return Found(item, float(score), pair.text, pair.media, matched)

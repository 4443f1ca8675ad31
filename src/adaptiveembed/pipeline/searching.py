"""A model over a dataset: queries in, items with their scores and matches out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from adaptiveembed.allocation.adaptive import Explanation
from adaptiveembed.pipeline.dataset import Dataset, require_encoders
from adaptiveembed.pipeline.inputs import MediaLike
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.representing import embed_pairs
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.search import search
from adaptiveembed.similarity.setsim import setsim_assignment
from adaptiveembed.structure.candidates import CAES, activate
from adaptiveembed.structure.direction import Direction, Modality
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


def ask(
    model: AdaptiveEmbed,
    query: MediaLike,
    *,
    selection: str | None = None,
    capacity: int | None = None,
    threshold: float | None = None,
) -> Asked:
    """One query of a model, with the selection of its policy or the one that is given."""
    caes = model.encode_query(query, selection=selection, capacity=capacity, threshold=threshold)
    modality = model.modality_of(query)
    direction = next(one for one in model.directions if one.source is modality)
    if selection is not None or capacity is not None:
        return Asked(str(query), direction, caes, None, None)
    (explained,) = model.explain(query, threshold=threshold)
    used = model.thresholds[direction] if threshold is None else threshold
    return Asked(str(query), direction, caes, explained, used)


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

    def search(
        self,
        query: MediaLike,
        k: int,
        *,
        selection: str | None = None,
        capacity: int | None = None,
        threshold: float | None = None,
    ) -> Findings:
        """The k items of the other modality most similar to one query."""
        asked = ask(self.model, query, selection=selection, capacity=capacity, threshold=threshold)
        return self.answer(asked, k)

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

"""AdaptiveEmbed: media in, sets of as many vectors as each query needs out.

>>> from pathlib import Path
>>> from adaptiveembed import AdaptiveEmbed
>>> model = AdaptiveEmbed.from_pretrained("runs/mine/model")  # doctest: +SKIP
>>> queries = model.encode_query(["two red kites over a beach"])  # doctest: +SKIP
>>> documents = model.encode_document([Path("kites.jpg")])  # doctest: +SKIP
>>> model.similarity(queries, documents)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from adaptiveembed.allocation.adaptive import AdaptiveAllocator, Explanation
from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.allocation.fixed import FixedAllocator
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.errors import DtypeError, SettingError, ShapeError
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.inputs import (
    EncoderFacts,
    MediaLike,
    as_items,
    common_modality,
    encoded_in_batches,
    known_modality,
)
from adaptiveembed.pipeline.recipe import Recipe
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.search import score_gallery
from adaptiveembed.shapes import PairScores, ScoreMatrix
from adaptiveembed.similarity.setsim import setsim_pairs
from adaptiveembed.structure.candidates import CAES, CandidateSets, activate
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.encoded import EncodedMedia, Features
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection

if TYPE_CHECKING:
    from adaptiveembed.pipeline.training import Pairs

BATCH_SIZE = 32

Items = MediaLike | Sequence[MediaLike] | EncodedMedia
"""What is encoded: one item, a list of items of one modality, or what an encoder made of them."""


@dataclass(frozen=True)
class ModelFacts:
    """What a model was made by, beside its weights."""

    recipe: Recipe
    direction: Direction
    """Source and target; the model serves both ways."""
    encoders: Mapping[Modality, EncoderFacts]
    figures: Mapping[str, float]
    """What it reached on validation."""
    counts: Mapping[str, int]
    """How many pairs it was made from."""


@dataclass(frozen=True, eq=False)
class AdaptiveEmbed:
    """A trained model of one pair of modalities, each of which can search the other."""

    embedder: PairEmbedder
    allocators: Mapping[Direction, AdaptiveAllocator]
    facts: ModelFacts

    @classmethod
    def fit(
        cls,
        pairs: Pairs,
        *,
        recipe: Recipe | str = "laptop",
        folder: str | Path | None = None,
        encoders: Mapping[Modality, str] | None = None,
        announce: Announce = unannounced,
    ) -> AdaptiveEmbed:
        """A model trained on pairs, or gone on with where that was stopped in the folder.

        Args:
            pairs: Encoded pairs, a dataset, a manifest or its path, or texts with paths of media.
            recipe: A recipe, the name of a built-in one, or the path of one.
            folder: Where everything is kept; a temporary one if not given.
            encoders: ``training-free`` or ``module:object`` for each modality, of pairs that are
                not encoded yet.
            announce: Told what begins, for progress.
        """
        from adaptiveembed.pipeline.training import fit_pairs  # noqa: PLC0415 - it imports this

        return cls.from_pretrained(fit_pairs(pairs, recipe, folder, encoders, announce))

    @classmethod
    def from_pretrained(cls, source: str | Path, *, check: bool = False) -> AdaptiveEmbed:
        """The model saved in a folder or, if there is none of this name, on the hub.

        With ``check``, what was stored with the model is computed again and compared.
        """
        from adaptiveembed.pipeline.saving import load_model  # noqa: PLC0415 - it imports this

        model = load_model(source)
        if check:
            model.self_test(source)
        return model

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model into a folder: safetensors, JSON and a model card."""
        from adaptiveembed.pipeline.saving import save_model  # noqa: PLC0415 - it imports this

        save_model(self, Path(folder))

    def push_to_hub(self, name: str, *, private: bool = True, token: str | None = None) -> str:
        """Upload the saved model as ``owner/name``; the address of the commit."""
        from adaptiveembed.pipeline.hub import upload  # noqa: PLC0415 - it imports this

        return upload(self, name, private=private, token=token)

    def self_test(self, source: str | Path) -> None:
        """Refuse to work where the vectors stored in the folder come out otherwise."""
        from adaptiveembed.pipeline.saving import compare_with_stored  # noqa: PLC0415 - as above

        compare_with_stored(self, source)

    def __repr__(self) -> str:
        return (
            f"AdaptiveEmbed({self.facts.direction}, layout {self.layout}, "
            f"dim {self.embedder.settings.dim})"
        )

    @property
    def layout(self) -> GroupLayout:
        return self.embedder.layout

    @property
    def directions(self) -> tuple[Direction, Direction]:
        return self.facts.direction, self.facts.direction.reversed

    @property
    def thresholds(self) -> dict[Direction, float]:
        """Above which probability each direction's queries are expanded."""
        return {direction: each.threshold for direction, each in self.allocators.items()}

    def encode_query(  # noqa: PLR0913 - the names that users of sentence-transformers know, and ours
        self,
        inputs: Items,
        *,
        modality: Modality | str | None = None,
        selection: Selection | str | None = None,
        capacity: int | None = None,
        threshold: float | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> CAES:
        """The vectors of queries, as many for each as the policy gives it.

        Args:
            inputs: One query or many of one modality: texts, paths of files, pictures, media, or
                encoded media.
            modality: Of encoded media, which do not say.
            selection: The same for all queries, instead of the policy's.
            capacity: The first selection of so many vectors, for all queries.
            threshold: Another one than was chosen on validation.
            batch_size: Items that are encoded at a time.
        """
        direction = self._direction(inputs, modality)
        candidates = self._candidates(direction.source, inputs, batch_size)
        return self.allocator(direction, selection, capacity, threshold).allocate(candidates)

    def encode_document(
        self,
        inputs: Items,
        *,
        modality: Modality | str | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> CandidateSets:
        """All vectors of gallery items: which of them count is each query's choice."""
        direction = self._direction(inputs, modality)
        return self._candidates(direction.source, inputs, batch_size)

    def embed(self, modality: Modality | str, features: Features) -> CandidateSets:
        """All vectors of items that were encoded before."""
        return self.embedder.embed(Modality(modality), features)

    def similarity(self, queries: CAES, documents: CandidateSets) -> ScoreMatrix:
        """SetSim of every query with every document, at the query's positions."""
        _require_sets(queries, documents)
        ids = [str(number) for number in range(len(documents))]
        gallery = Gallery.from_candidates(ids, documents)
        return torch.from_numpy(score_gallery(gallery, queries))

    def similarity_pairwise(self, queries: CAES, documents: CandidateSets) -> PairScores:
        """SetSim of query i with document i."""
        _require_sets(queries, documents)
        if len(queries) != len(documents):
            raise ShapeError(
                f"got {len(queries)} queries and {len(documents)} documents; give as many of both, "
                f"or use similarity for all pairs"
            )
        scores = torch.empty(len(queries))
        for selection, rows in queries.buckets().items():
            own = activate(queries.candidates[rows], selection)
            scores[rows] = setsim_pairs(own, activate(documents[rows], selection))
        return scores

    def explain(
        self,
        inputs: Items,
        *,
        modality: Modality | str | None = None,
        threshold: float | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> list[Explanation]:
        """How each query came by its selection: every decision, its odds and its feedback."""
        direction = self._direction(inputs, modality)
        candidates = self._candidates(direction.source, inputs, batch_size)
        return self._adaptive(direction, threshold).explain(candidates)

    def allocator(
        self,
        direction: Direction,
        selection: Selection | str | None = None,
        capacity: int | None = None,
        threshold: float | None = None,
    ) -> Allocator:
        """Who decides on the queries of a direction: the policy, unless something is fixed."""
        given = [each for each in (selection, capacity, threshold) if each is not None]
        if len(given) > 1:
            raise SettingError(
                "selection, capacity and threshold exclude each other; give at most one"
            )
        if selection is not None:
            return FixedAllocator(self._selection(selection))
        if capacity is not None:
            return FixedAllocator(self._of_capacity(capacity))
        return self._adaptive(direction, threshold)

    def modality_of(self, inputs: Items) -> Modality:
        """The modality of inputs that say what they are."""
        return self._direction(inputs, None).source

    def encoder(self, modality: Modality) -> Encoder:
        """The encoder of a modality, loaded at its first use."""
        if modality not in self._encoders:
            self._encoders[modality] = self.facts.encoders[modality].load(modality)
        return self._encoders[modality]

    @cached_property
    def _encoders(self) -> dict[Modality, Encoder]:
        return {}

    def _adaptive(self, direction: Direction, threshold: float | None) -> AdaptiveAllocator:
        allocator = self.allocators[direction]
        return allocator if threshold is None else replace(allocator, threshold=threshold)

    def _candidates(self, modality: Modality, inputs: Items, batch_size: int) -> CandidateSets:
        if isinstance(inputs, EncodedMedia):
            return self.embed(modality, inputs)
        items = as_items(inputs)
        return self.embed(modality, encoded_in_batches(self.encoder(modality), items, batch_size))

    def _direction(self, inputs: Items, modality: Modality | str | None) -> Direction:
        """The direction in which items of this kind ask."""
        if modality is not None:
            found = known_modality(modality)
        elif isinstance(inputs, EncodedMedia):
            raise SettingError("encoded media do not say of what; give modality=")
        else:
            found = common_modality(as_items(inputs))
        known = {direction.source: direction for direction in self.directions}
        if found not in known:
            raise SettingError(
                f"this model is for {' and '.join(known)}, got {found}; use a model of {found}"
            )
        return known[found]

    def _selection(self, selection: Selection | str) -> Selection:
        if isinstance(selection, str):
            return Selection.parse(selection, self.layout)
        return selection

    def _of_capacity(self, capacity: int) -> Selection:
        nodes = self.facts.recipe.space.nodes
        for node in nodes:
            if node.capacity == capacity:
                return node
        known = ", ".join(str(each) for each in sorted({node.capacity for node in nodes}))
        raise SettingError(
            f"no selection has capacity {capacity}; choose one of {known}, or give selection="
        )


def _require_sets(queries: object, documents: object) -> None:
    """Refuse bare arrays: nothing says which of their rows are which position."""
    if not isinstance(queries, CAES):
        raise DtypeError(
            f"queries are a CAES, got {type(queries).__name__}; use encode_query, since bare "
            f"arrays do not say which positions they hold"
        )
    if not isinstance(documents, CandidateSets):
        raise DtypeError(
            f"documents are CandidateSets, got {type(documents).__name__}; use encode_document, "
            f"since bare arrays do not say which positions they hold"
        )

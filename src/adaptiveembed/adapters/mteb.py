"""A model as MTEB searches with it: its ``SearchProtocol``, of version 2.26.

>>> import mteb  # doctest: +SKIP
>>> from adaptiveembed import AdaptiveEmbed
>>> from adaptiveembed.adapters.mteb import MTEBSearch
>>> model = AdaptiveEmbed.from_pretrained("runs/mine/model")  # doctest: +SKIP
>>> task = mteb.get_task("Flickr30kT2IRetrieval")  # doctest: +SKIP
>>> mteb.evaluate(MTEBSearch(model, "mine/images"), task)  # doctest: +SKIP

Each query's selection decides which positions of the documents it meets, and the search is ours.
MTEB ranks what it is given by score once more; scores are exported as ``retrieval.runs`` says, so
that it keeps our order. Among equal scores that order is the corpus's, while our own evaluator
counts them against the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adaptiveembed.adapters.exports import model_fingerprint
from adaptiveembed.adapters.libraries import library
from adaptiveembed.data.media import Audio
from adaptiveembed.errors import EmptyBatchError, SettingError
from adaptiveembed.pipeline.inputs import MediaLike
from adaptiveembed.pipeline.model import BATCH_SIZE, AdaptiveEmbed
from adaptiveembed.pipeline.searching import POLICY, Choice
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.runs import to_ranx
from adaptiveembed.retrieval.search import search
from adaptiveembed.structure.candidates import CAES, CandidateSets
from adaptiveembed.structure.direction import Direction, Modality

Found = dict[str, dict[str, float]]
"""Query id to document id to score."""


class MTEBSearch:
    """A model that searches for MTEB in the two directions that it serves.

    Args:
        model: What encodes and searches.
        name: What results are filed under, as ``owner/name``.
        choice: What replaces the policy's choice of a selection for every query.
    """

    def __init__(self, model: AdaptiveEmbed, name: str, choice: Choice = POLICY) -> None:
        self.model, self.name, self.choice = model, name, choice
        self.gallery: Gallery | None = None

    @property
    def mteb_model_meta(self) -> Any:  # noqa: ANN401 - mteb.models.ModelMeta, which is optional
        """What MTEB files results under: the revision changes with the vectors."""
        meta = library("mteb.models.model_meta")
        changed = {name: each for name, each in self.choice._asdict().items() if each is not None}
        return meta.ModelMeta.create_empty(
            {
                "name": self.name,
                "revision": model_fingerprint(self.model),
                "similarity_fn_name": meta.ScoringFunction.CUSTOM,
                "model_type": ["late-interaction"],
                "modalities": [str(each.source) for each in self.model.directions],
                "embed_dim": self.model.embedder.settings.dim,
                "framework": ["PyTorch"],
                "experiment_kwargs": changed or None,
            }
        )

    def index(
        self,
        corpus: Any,  # noqa: ANN401 - datasets.Dataset, which is optional
        *,
        task_metadata: Any,  # noqa: ANN401 - mteb's
        encode_kwargs: Mapping[str, Any],
        num_proc: int | None,
        **_: object,
    ) -> None:
        """Embed the corpus, in place of one that was indexed before."""
        direction = self._direction(task_metadata)
        batches = _batches(corpus, task_metadata, "document", encode_kwargs, num_proc)
        sets = [
            self.model.encode_document(media_of(batch, direction.target), modality=direction.target)
            for batch in batches
        ]
        self.gallery = Gallery.from_candidates(corpus["id"][:], CandidateSets.concatenate(sets))

    def search(  # noqa: PLR0913 - as MTEB calls it
        self,
        queries: Any,  # noqa: ANN401 - datasets.Dataset, which is optional
        *,
        task_metadata: Any,  # noqa: ANN401 - mteb's
        top_k: int,
        encode_kwargs: Mapping[str, Any],
        num_proc: int | None,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: object,
    ) -> Found:
        """The best documents of every query, or of those that it is given to be ranked again."""
        if self.gallery is None:
            raise EmptyBatchError("no corpus was indexed; call index before search")
        source = self._direction(task_metadata).source
        batches = _batches(queries, task_metadata, "query", encode_kwargs, num_proc)
        chosen = self.choice._asdict()
        parts = [
            self.model.encode_query(media_of(batch, source), modality=source, **chosen)
            for batch in batches
        ]
        asked, ids = CAES.concatenate(parts), queries["id"][:]
        if top_ranked is not None:
            return _ranked_again(self.gallery, asked, ids, top_ranked, top_k)
        return to_ranx(search(self.gallery, asked, top_k), ids)

    def _direction(self, task_metadata: Any) -> Direction:  # noqa: ANN401 - mteb's
        sides = [task_metadata.get_modalities(_prompt_type(side)) for side in ("query", "document")]
        for direction in self.model.directions:
            if sides == [[direction.source], [direction.target]]:
                return direction
        asked = "→".join("+".join(each) for each in sides)
        served = " and ".join(map(str, self.model.directions))
        raise SettingError(
            f"task {task_metadata.name} is {asked} and this model serves {served}; choose a task "
            f"of these modalities, or another model"
        )


def media_of(batch: Mapping[str, Any], modality: Modality) -> list[MediaLike]:
    """What one batch of MTEB holds of a modality, as a model of ours takes it."""
    if modality is Modality.VIDEO:
        raise SettingError(
            "videos of MTEB come without a rate that can be relied on; evaluate them by a dataset "
            "of your own, see docs/own-data.md"
        )
    found = list(batch[modality])
    return [_audio(each) for each in found] if modality is Modality.AUDIO else found


def _audio(item: Mapping[str, Any]) -> Audio:
    """One channel; of several, which stand first, the mean."""
    samples = np.asarray(item["array"], np.float32)
    mono = samples if samples.ndim == 1 else samples.mean(axis=0)
    return Audio(mono, int(item["sampling_rate"]))


def _batches(
    rows: Any,  # noqa: ANN401 - datasets.Dataset, which is optional
    task_metadata: Any,  # noqa: ANN401 - mteb's
    side: str,
    encode_kwargs: Mapping[str, Any],
    num_proc: int | None,
) -> Iterator[Mapping[str, Any]]:
    """The rows as MTEB hands them to all: titles joined to texts, instructions to queries."""
    loaders = library("mteb._create_dataloaders")
    return iter(
        loaders.create_dataloader(
            rows,
            task_metadata=task_metadata,
            prompt_type=_prompt_type(side),
            batch_size=encode_kwargs.get("batch_size", BATCH_SIZE),
            num_proc=num_proc,
        )
    )


def _prompt_type(side: str) -> object:
    return library("mteb.types").PromptType(side)


def _ranked_again(
    gallery: Gallery,
    asked: CAES,
    ids: Sequence[str],
    top_ranked: Mapping[str, Sequence[str]],
    top_k: int,
) -> Found:
    found: Found = {}
    for place, query in enumerate(ids):
        own = gallery.take(gallery.indices_of(top_ranked.get(query, ())))
        found |= to_ranx(search(own, asked[place], top_k), [query])
    return found

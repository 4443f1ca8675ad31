"""Stage I: the embedder learns from pairs of encoded media (Sec. 3.2).

A model maps encoded media of either modality to a set of unit vectors each, and an objective maps
the sets of a batch of pairs to a loss; neither this loop nor the other knows more of them. So MGCL,
its ablations and MetaEmbed are trained by the same lines.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adaptiveembed.errors import NotFiniteError, ShapeError, TrainingError
from adaptiveembed.representation.dropout import item_keys
from adaptiveembed.representation.mgcl import Objective
from adaptiveembed.shapes import CandidateVectors, ItemIndices
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia, Features
from adaptiveembed.structure.ids import checked_ids
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.training.distributed import current
from adaptiveembed.training.gradient_cache import backward_in_parts
from adaptiveembed.training.hardware import ANY_CPU, Hardware
from adaptiveembed.training.loop import TrainingSummary, Validate, train
from adaptiveembed.training.randomness import mixed, seed_generators
from adaptiveembed.training.settings import LastBatch, TrainingSettings
from adaptiveembed.training.task import facts_of

PROBED = 16
"""Items whose hidden states are compared when all global features are equal."""


@dataclass(frozen=True, eq=False)
class TrainingPairs:
    """Pairs of encoded media: pair i is item ``source_places[i]`` and item ``target_places[i]``.

    Pairs of equal ids are the same item, and so no negatives of each other. Without places, pair i
    is item i on either side.
    """

    source: Features
    target: Features
    ids: tuple[str, ...]
    source_places: np.ndarray | None = None
    target_places: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", checked_ids(self.ids))
        for side in ("source", "target"):
            places = self._checked_places(side)
            object.__setattr__(self, f"{side}_places", places)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def codes(self) -> ItemIndices:
        """A number for every pair, equal for pairs of the same item."""
        numbers = {one: number for number, one in enumerate(dict.fromkeys(self.ids))}
        return torch.tensor([numbers[one] for one in self.ids])

    @cached_property
    def fingerprint(self) -> str:
        """Equal for pairs of equal ids, places and global features."""
        digest = hashlib.blake2b(json.dumps(self.ids).encode(), digest_size=16)
        for features, places in self.sides:
            digest.update(places.tobytes())
            digest.update(features.global_features().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @property
    def sides(self) -> tuple[tuple[Features, np.ndarray], tuple[Features, np.ndarray]]:
        """Features and places, of the source and of the target."""
        assert self.source_places is not None
        assert self.target_places is not None
        return (self.source, self.source_places), (self.target, self.target_places)

    def _checked_places(self, side: str) -> np.ndarray:
        features, given = getattr(self, side), getattr(self, f"{side}_places")
        places = np.arange(len(self.ids)) if given is None else np.asarray(given, dtype=np.int64)
        if places.shape != (len(self.ids),):
            raise ShapeError(
                f"{len(self.ids)} ids and {side}_places {places.shape}; give one place per id"
            )
        if len(places) and not 0 <= places.min() <= places.max() < len(features):
            raise ShapeError(
                f"{side}_places go from {places.min()} to {places.max()} and there are "
                f"{len(features)} {side} items; give places of theirs"
            )
        return places


def train_embedder(  # noqa: PLR0913 - what is learned and how, where it is kept, who looks at it
    model: nn.Module,
    pairs: TrainingPairs,
    objective: Objective,
    settings: TrainingSettings,
    folder: str | Path,
    *,
    validate: Validate | None = None,
    progress: Progress = silent,
    facts: Mapping[str, Any] | None = None,
) -> TrainingSummary:
    """Train an embedder on pairs, or go on where a training in the folder was stopped.

    Args:
        model: Has ``modalities`` (source, target), and maps ``(modality, encoded, dropout_keys)``
            to unit vectors [batch, vectors, dim]. Dropout drawn by the keys, one per item and step,
            does not depend on micro-batches and processes; other dropout does.
        pairs: What it learns from.
        objective: The loss.
        settings: How it learns.
        folder: For checkpoints and figures; one training per folder.
        validate: As ``training.loop.train`` takes it.
        progress: Told the steps done, and figures.
        facts: What a stored state must have been made with beside the settings, the pairs, the
            layout and ``settings`` of the model, and the fields of the objective, where these are
            dataclasses.
    """
    _require_learnable(pairs)
    _require_filled_batches(settings, len(pairs))
    task = _StageOne(model, pairs, objective, settings)
    return train(task, settings, Path(folder), validate=validate, progress=progress, facts=facts)


@dataclass(frozen=True, eq=False)
class _Part:
    """Some pairs of a batch, embedded together."""

    source: EncodedMedia
    target: EncodedMedia
    source_places: ItemIndices
    target_places: ItemIndices


@dataclass(frozen=True, eq=False)
class _Batch:
    items: ItemIndices
    """All pairs of the batch, whichever process embeds them."""
    parts: Sequence[_Part]
    """The share of this process."""


@dataclass(frozen=True, eq=False)
class _StageOne:
    """The task of the loop; what it must have is said in ``training.task``."""

    model: nn.Module
    pairs: TrainingPairs
    objective: Objective
    settings: TrainingSettings
    hardware: Hardware = ANY_CPU

    name = "Stage I"
    items_name = "pairs"

    def __len__(self) -> int:
        return len(self.pairs)

    def facts(self) -> dict[str, Any]:
        layout = getattr(self.model, "layout", None)
        return {
            "modalities": [str(each) for each in _modalities(self.model)],
            "layout": None if layout is None else str(layout),
            "pairs": f"{len(self.pairs)} of fingerprint {self.pairs.fingerprint}",
            **facts_of("model", getattr(self.model, "settings", None)),
            **facts_of("objective", self.objective),
        }

    def on(self, hardware: Hardware) -> "_StageOne":
        return replace(self, model=self.model.to(hardware.device), hardware=hardware)

    def prepare(self, items: ItemIndices) -> _Batch:
        own = items[current().share(len(items))]
        size = self.settings.micro_batch or len(own)
        starts = range(0, len(own), size)
        return _Batch(items, [self._read(own[start : start + size]) for start in starts])

    def backward(self, batch: _Batch, step: int) -> Tensor:
        process = current()
        numbered = list(enumerate(batch.parts))

        def embed(part: tuple[int, _Part]) -> tuple[Tensor, Tensor]:
            # of a model with dropout of its own, both passes draw the same
            seed = mixed(self.settings.seed, step, process.rank, part[0])
            seed_generators(seed, self.hardware.device)
            return self._embed(part[1], step)

        same_item = self._same_item(batch.items)

        def loss_of(source: Tensor, target: Tensor) -> Tensor:
            return self.objective(source, target, same_item)

        loss = backward_in_parts(embed, numbered, loss_of, len(batch.items), process)
        return loss / process.size

    def fault(self, items: ItemIndices) -> str | None:
        found = []
        for (features, places), side in zip(self.pairs.sides, ("source", "target"), strict=True):
            wrong = [i for i in items.tolist() if not _is_finite(features, int(places[i]))]
            if wrong:
                found.append(f"the {side} features of {_named(self.pairs, wrong)}")
        return _not_finite(" and ".join(found)) if found else None

    def _read(self, items: ItemIndices) -> _Part:
        sides = [(features, places[items.numpy()]) for features, places in self.pairs.sides]
        source, target = (features.read(places) for features, places in sides)
        return _Part(source, target, *(torch.from_numpy(places) for _, places in sides))

    def _embed(self, part: _Part, step: int) -> tuple[CandidateVectors, CandidateVectors]:
        source, target = _modalities(self.model)
        return (
            self._embed_side(source, part.source, part.source_places, step),
            self._embed_side(target, part.target, part.target_places, step),
        )

    def _embed_side(
        self, modality: Modality, encoded: EncodedMedia, places: ItemIndices, step: int
    ) -> CandidateVectors:
        device = self.hardware.device
        keys = item_keys(self.settings.seed, step, places).to(device)
        with self.hardware.autocast():
            vectors: Tensor = self.model(modality, encoded.to(device), keys)
        return vectors.float()

    def _same_item(self, items: ItemIndices) -> Tensor | None:
        """Which pairs of the batch are one item; nothing if all are different."""
        codes = self.pairs.codes[items]
        if len(set(codes.tolist())) == len(codes):
            return None
        return (codes[:, None] == codes).to(self.hardware.device)


def _modalities(model: nn.Module) -> tuple[Modality, Modality]:
    found: tuple[Modality, Modality] = tuple(model.modalities)  # type: ignore[arg-type]
    return found


def _require_learnable(pairs: TrainingPairs) -> None:
    """Refuse pairs that no model can learn to tell apart."""
    if len(set(pairs.ids)) < 2:
        raise TrainingError(
            f"{len(pairs)} pairs of {len(set(pairs.ids))} different ids have no negatives; give "
            f"at least 2 pairs of different ids"
        )
    for (features, places), side in zip(pairs.sides, ("source", "target"), strict=True):
        found = features.global_features()[torch.from_numpy(places)]
        wrong = (~found.isfinite().all(dim=1)).nonzero().flatten().tolist()
        if wrong:
            raise TrainingError(_not_finite(f"the {side} features of {_named(pairs, wrong)}"))
        if bool((found == found[0]).all()) and _have_equal_states(features, places):
            raise TrainingError(
                f"all {len(pairs)} {side} items have the same features, so nothing tells them "
                f"apart; look at what was encoded"
            )


def _require_filled_batches(settings: TrainingSettings, num_pairs: int) -> None:
    """Refuse batches that leave a process without a pair of its own."""
    processes = current().size
    kept = settings.last_batch is LastBatch.KEEP
    left = num_pairs % settings.batch_size if kept else 0
    smallest = min(settings.batch_size, left or settings.batch_size)
    if smallest < processes:
        raise TrainingError(
            f"a batch of {smallest} pairs is too small for {processes} processes; choose another "
            f"batch_size or set last_batch to drop"
        )
    if settings.batch_size < 2:
        raise TrainingError("a batch of 1 pair has no negatives; set batch_size to 2 or more")


def _have_equal_states(features: Features, places: np.ndarray) -> bool:
    """Whether some of the items have the same hidden states."""
    first, *others = (features.read([int(at)]).hidden_states for at in places[:PROBED])
    return all(torch.equal(first, other) for other in others)


def _is_finite(features: Features, place: int) -> bool:
    try:
        encoded = features.read([place])
    except NotFiniteError:
        return False
    tensors = (encoded.global_feature, encoded.hidden_states)
    return all(bool(each.isfinite().all()) for each in tensors)


def _not_finite(what: str) -> str:
    return f"{what} hold NaN or infinity; encode these items again or leave them out"


def _named(pairs: TrainingPairs, wrong: Sequence[int]) -> str:
    shown = ", ".join(repr(pairs.ids[pair]) for pair in wrong[:3])
    return f"{shown} and {len(wrong) - 3} more" if len(wrong) > 3 else shown

"""The candidate embedder of two modalities: encoded media to N unit vectors each (Sec. 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError
from adaptiveembed.representation.dropout import side_keys
from adaptiveembed.representation.fitting import FittingData, Places, fitted_maps
from adaptiveembed.representation.global_position import (
    FixedMap,
    empty_position,
    require_one_space,
    unit_vectors,
)
from adaptiveembed.representation.qformer import QFormer, StandardisedStates, state_normaliser
from adaptiveembed.representation.settings import EmbedderSettings, GlobalPosition
from adaptiveembed.shapes import CandidateVectors, DropoutKeys
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia, Features
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.progress import Progress, silent

BATCH_SIZE = 256
"""Items that are embedded at a time, unless told otherwise."""

BATCHES_READ = 4
"""Batches that are read together and sorted by length, so that little padding is computed."""

SHARED = "shared"
"""The name of the one Q-Former of both modalities."""


Embedder = TypeVar("Embedder", bound="PairEmbedder")
"""Which kind of embedder is made: that of the class that makes it."""


class PairEmbedder(nn.Module):
    """Embeds the items of two modalities into one space.

    All that was fitted or trained is in ``state_dict``; the shapes there follow from the settings
    and from the widths of the features.
    """

    def __init__(self, settings: EmbedderSettings, widths: Mapping[Modality, int]) -> None:
        super().__init__()
        _require_pair_of_widths(settings, widths)
        self.settings = settings
        self.widths = dict(widths)
        self.global_positions = nn.ModuleDict(_global_positions(settings, self.widths))
        self.normalisers = nn.ModuleDict(
            {each: state_normaliser(settings.states, width) for each, width in widths.items()}
        )
        self.qformers = nn.ModuleDict(self._qformers())
        self.projections = nn.ModuleDict(
            {each: nn.Linear(settings.width, settings.dim, bias=False) for each in widths}
        )

    @classmethod
    def empty(
        cls: type[Embedder], settings: EmbedderSettings, widths: Mapping[Modality, int]
    ) -> Embedder:
        """An embedder to load a state into, for features of these widths, the source's first."""
        return cls(settings, widths)

    @classmethod
    def fitted(  # noqa: PLR0913 - two sides, and which pairs each part is fitted on
        cls: type[Embedder],
        settings: EmbedderSettings,
        source: tuple[Modality, Features],
        target: tuple[Modality, Features],
        places: Places,
        seed: int,
        *,
        validation: Places | None = None,
        matryoshka_widths: Sequence[int] = (),
    ) -> Embedder:
        """An embedder ready to be trained: fitted where the form is closed, and random elsewhere.

        Equal arguments give equal embedders.

        Args:
            settings: What it is made of.
            source: One modality and its features.
            target: The other modality and its features.
            places: Where the training items stand in the features of both.
            seed: What the random part starts from.
            validation: Places of other pairs, to choose the regularisation of an alignment on;
                without them some training pairs are held out for this choice.
            matryoshka_widths: The widths to which the encoder says that features may be cut.
        """
        cuts = tuple(matryoshka_widths)
        modalities = source[0], target[0]
        data = FittingData(source[1], target[1], modalities, places, validation, cuts, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            embedder = cls(settings, {each: features.width for each, features in (source, target)})
        embedder.fit(data)
        return embedder

    def fit(self, data: FittingData) -> None:
        """Fit what has a closed form: maps of global features and the scale of states."""
        maps = [each for each in self.global_positions.values() if isinstance(each, FixedMap)]
        if maps:
            for position, fitted in zip(maps, fitted_maps(self.settings, data), strict=True):
                position.fit(fitted)
        for normaliser, states in zip(self.normalisers.values(), data.some_states(), strict=True):
            if isinstance(normaliser, StandardisedStates):
                normaliser.fit(states)

    def forward(
        self, modality: Modality, encoded: EncodedMedia, dropout_keys: DropoutKeys | None = None
    ) -> CandidateVectors:
        """All candidates of every item, unit vectors in float32 also under autocast.

        In training with dropout, ``dropout_keys`` holds a key for each item: see ``item_keys``.
        """
        self._require_known(modality, encoded.width)
        like = next(self.parameters())
        states = self.normalisers[modality](encoded.hidden_states.to(like))
        keys = None if dropout_keys is None else self._keys_of(modality, dropout_keys)
        outputs = self.qformer(modality)(states, encoded.mask.to(like.device), keys)
        learned = unit_vectors(self.projections[modality](outputs))
        if modality not in self.global_positions:
            return learned
        fixed = self.global_positions[modality](encoded.global_feature.to(like))
        return _with_positions(learned, fixed, self.global_places)

    def embed(
        self,
        modality: Modality,
        features: Features,
        *,
        batch_size: int = BATCH_SIZE,
        progress: Progress = silent,
    ) -> CandidateSets:
        """The candidate sets of all items, in their order.

        Nothing is dropped, no gradient is kept, and the result lies on the CPU.
        """
        if not len(features):
            raise EmptyBatchError("there is nothing to embed; give at least one item")
        found = torch.empty(len(features), self.layout.num_candidates, self.settings.dim)
        done = 0
        with torch.inference_mode(), evaluating(self):
            for places, encoded in batches_by_length(features, batch_size):
                found[places] = self(modality, encoded).to(found)
                done += len(places)
                progress(done, len(features))
        return CandidateSets(found, self.layout)

    @property
    def modalities(self) -> tuple[Modality, Modality]:
        """Source and target."""
        source, target = self.widths
        return source, target

    @property
    def layout(self) -> GroupLayout:
        return self.settings.group_layout

    @property
    def global_places(self) -> tuple[int, ...]:
        """The positions that come from the global feature."""
        return () if self.settings.global_position is GlobalPosition.LEARNED else (0,)

    @property
    def num_trainable(self) -> int:
        """How many parameters training changes."""
        return sum(each.numel() for each in self.parameters() if each.requires_grad)

    def qformer(self, modality: Modality) -> nn.Module:
        """The Q-Former that reads this modality."""
        return self.qformers[SHARED if self.settings.shared else modality]

    def _qformers(self) -> dict[str, nn.Module]:
        num_queries = self.layout.num_candidates - len(self.global_places)
        if num_queries < 1:
            raise SettingError(
                f"layout {self.layout} and global_position {self.settings.global_position} leave "
                f"no position to the Q-Former; use global_position = learned, or a larger layout"
            )
        widths = dict(
            [(SHARED, min(self.widths.values()))] if self.settings.shared else self.widths
        )
        return {name: QFormer(self.settings, num_queries, width) for name, width in widths.items()}

    def _keys_of(self, modality: Modality, keys: Tensor) -> Tensor:
        """Keys of this side, so that the two sides of one pair do not drop the same numbers."""
        return side_keys(keys.to(next(self.parameters()).device), self.modalities.index(modality))

    def _require_known(self, modality: Modality, width: int) -> None:
        if modality not in self.widths:
            raise SettingError(
                f"this embedder is for {' and '.join(self.widths)}, got {modality}; "
                f"use the embedder of that modality"
            )
        if width != self.widths[modality]:
            raise ShapeError(
                f"{modality} features have width {width} and this embedder was made for "
                f"{self.widths[modality]}; encode with the encoder that it was trained on"
            )


def batches_by_length(
    features: Features, batch_size: int
) -> Iterator[tuple[np.ndarray, EncodedMedia]]:
    """All items in batches of similar length, each with the places of its items.

    Only a few batches are sorted at a time, because features are read fastest in their order.
    """
    block = batch_size * BATCHES_READ
    for start in range(0, len(features), block):
        read = features.read(np.arange(start, min(start + block, len(features))))
        order = np.argsort(_lengths(read), kind="stable")
        for first in range(0, len(order), batch_size):
            rows = order[first : first + batch_size]
            yield start + rows, read.read(rows)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within, the model is in evaluation mode."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)


def _lengths(encoded: EncodedMedia) -> np.ndarray:
    """The number of states of each item up to its last real one."""
    places = torch.arange(1, encoded.mask.shape[1] + 1)
    lengths: np.ndarray = (encoded.mask * places).amax(dim=1).numpy()
    return lengths


def _with_positions(learned: Tensor, fixed: Tensor, places: Sequence[int]) -> Tensor:
    """The learned vectors in order, with the fixed one at each of these places."""
    ends = [place - number for number, place in enumerate(places)]
    parts = torch.tensor_split(learned, ends, dim=1)
    row = fixed.unsqueeze(1)
    return torch.cat([parts[0], *(each for part in parts[1:] for each in (row, part))], dim=1)


def _global_positions(
    settings: EmbedderSettings, widths: Mapping[Modality, int]
) -> dict[str, nn.Module]:
    kind = settings.global_position
    made = {each: empty_position(kind, width, settings.dim) for each, width in widths.items()}
    return {each: position for each, position in made.items() if position is not None}


def _require_pair_of_widths(settings: EmbedderSettings, widths: Mapping[Modality, int]) -> None:
    if len(widths) != 2:
        raise SettingError(
            f"an embedder is for two different modalities, got {', '.join(widths) or 'none'}; "
            f"give a width for each of two"
        )
    if settings.global_position is GlobalPosition.FROZEN:
        require_one_space(list(widths.values()))
    if settings.shared and len(set(widths.values())) > 1:
        raise SettingError(
            f"one Q-Former cannot read features of widths {' and '.join(map(str, widths.values()))}"
            f"; use shared = false, or encoders of one width"
        )

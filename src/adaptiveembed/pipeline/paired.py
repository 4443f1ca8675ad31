"""Encoded pairs of two modalities: what is trained on, evaluated and searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError, UnknownIdError
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.encoded import Features
from adaptiveembed.structure.ids import checked_ids, distinct_ids
from adaptiveembed.structure.views import ChosenFeatures, JoinedFeatures

TRAIN, QUERY = "train", "query"
"""The two splits of the paper's protocol: what is learned from, and what is asked."""


@dataclass(frozen=True, eq=False, repr=False)
class PairedFeatures:
    """Pairs of two modalities: row i of either side is pair ``ids[i]``, of split ``splits[i]``.

    The gallery of an evaluation is all pairs, those of the training split and the queries alike.
    """

    direction: Direction
    ids: tuple[str, ...]
    source: Features
    target: Features
    splits: tuple[str, ...]
    name: str = "pairs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", distinct_ids(self.ids))
        object.__setattr__(self, "splits", checked_ids(self.splits, meaning="splits"))
        counts = [len(each) for each in (self.ids, self.source, self.target, self.splits)]
        if len(set(counts)) > 1:
            raise ShapeError(
                f"{self.name} were given {counts[0]} ids, {counts[1]} and {counts[2]} encoded "
                f"items and {counts[3]} splits; give one of each per pair"
            )
        if self.direction.source is self.direction.target:
            raise SettingError(
                f"both sides of {self.name} are {self.direction.source}; "
                f"pairs are of two different modalities"
            )
        unknown = sorted(set(self.splits) - {TRAIN, QUERY})
        if unknown:
            raise SettingError(
                f"{self.name} have a split {unknown[0]!r}; the splits are {TRAIN!r} and {QUERY!r}"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        counts = f"{len(self.training)} to train on, {len(self.queries)} queries"
        return f"PairedFeatures({self.name}, {self.direction}, {counts})"

    @cached_property
    def training(self) -> np.ndarray:
        """The rows of the training split."""
        return self._rows(TRAIN)

    @cached_property
    def queries(self) -> np.ndarray:
        """The rows of the query split."""
        return self._rows(QUERY)

    def features(self, modality: Modality) -> Features:
        """The side of this modality."""
        if modality not in (self.direction.source, self.direction.target):
            raise SettingError(
                f"{self.name} are {self.direction}, and there is no {modality}; "
                f"choose one of the two modalities"
            )
        return self.source if modality is self.direction.source else self.target

    def take(self, rows: np.ndarray) -> PairedFeatures:
        """Some of the pairs, in this order."""
        chosen = np.asarray(rows, dtype=np.int64)
        return PairedFeatures(
            self.direction,
            tuple(self.ids[row] for row in chosen),
            ChosenFeatures(self.source, chosen),
            ChosenFeatures(self.target, chosen),
            tuple(self.splits[row] for row in chosen),
            self.name,
        )

    def rows_of(self, ids: Sequence[str]) -> np.ndarray:
        """The rows of these pairs."""
        missing = [one for one in checked_ids(ids) if one not in self._places]
        if missing:
            raise UnknownIdError(f"{self.name} have no pair {missing[0]!r}; correct the id")
        return np.array([self._places[one] for one in ids], dtype=np.int64)

    def _rows(self, split: str) -> np.ndarray:
        return np.flatnonzero(np.array(self.splits, dtype=object) == split)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {one: row for row, one in enumerate(self.ids)}


@dataclass(frozen=True, eq=False)
class JointPairs:
    """The pairs of several datasets as one, each still knowing which it belongs to (R21)."""

    datasets: tuple[PairedFeatures, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", tuple(self.datasets))
        if not self.datasets:
            raise EmptyBatchError("nothing to train on; give the pairs of at least one dataset")
        for other in self.datasets[1:]:
            if other.direction != self.direction:
                raise SettingError(
                    f"datasets of {self.direction} and {other.direction} cannot be trained "
                    f"together; give datasets of the same two modalities"
                )
        distinct_ids([each.name for each in self.datasets], meaning="datasets")

    def __len__(self) -> int:
        return sum(map(len, self.datasets))

    @property
    def direction(self) -> Direction:
        return self.datasets[0].direction

    @cached_property
    def pairs(self) -> PairedFeatures:
        """All pairs, one dataset after another; ids carry the dataset's name if there are many."""
        if len(self.datasets) == 1:
            return self.datasets[0]
        return PairedFeatures(
            self.direction,
            tuple(f"{each.name}/{one}" for each in self.datasets for one in each.ids),
            JoinedFeatures(tuple(each.source for each in self.datasets)),
            JoinedFeatures(tuple(each.target for each in self.datasets)),
            tuple(split for each in self.datasets for split in each.splits),
            "+".join(each.name for each in self.datasets),
        )

    @cached_property
    def owners(self) -> np.ndarray:
        """The number of the dataset that each pair belongs to."""
        return np.repeat(np.arange(len(self.datasets)), [len(each) for each in self.datasets])

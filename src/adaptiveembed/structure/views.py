"""Features seen otherwise: some of the items, or those of several stores one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from adaptiveembed.errors import EmptyBatchError, ShapeError, UnknownIdError
from adaptiveembed.shapes import GlobalFeatures
from adaptiveembed.structure.encoded import EncodedMedia, Features


@dataclass(frozen=True, eq=False)
class ChosenFeatures:
    """The features of some items, in an order of their own."""

    features: Features
    chosen: np.ndarray  # places in the features

    def __post_init__(self) -> None:
        places = np.asarray(self.chosen, dtype=np.int64)
        wrong = places[(places < 0) | (places >= len(self.features))]
        if wrong.size:
            raise UnknownIdError(
                f"item {wrong[0]} is not among the {len(self.features)} encoded items; "
                f"choose 0 to {len(self.features) - 1}"
            )
        object.__setattr__(self, "chosen", places)

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def width(self) -> int:
        return self.features.width

    def global_features(self) -> GlobalFeatures:
        """The global features of the chosen items."""
        return self.features.global_features()[torch.from_numpy(self.chosen)]

    def read(self, places: Sequence[int] | np.ndarray) -> EncodedMedia:
        """The chosen items at these places."""
        return self.features.read(self.chosen[np.asarray(places, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class JoinedFeatures:
    """The features of several stores of one width, one store after another."""

    parts: tuple[Features, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise EmptyBatchError("nothing to join; give the features of at least one store")
        widths = sorted({part.width for part in self.parts})
        if len(widths) > 1:
            raise ShapeError(
                f"features of widths {', '.join(map(str, widths))} cannot be joined; "
                f"encode all of them with one encoder"
            )

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def width(self) -> int:
        return self.parts[0].width

    def global_features(self) -> GlobalFeatures:
        """The global features of all items of all stores."""
        return torch.cat([part.global_features() for part in self.parts])

    def read(self, places: Sequence[int] | np.ndarray) -> EncodedMedia:
        """The items at these places, counted through all stores."""
        rows = np.asarray(places, dtype=np.int64)
        owners = np.searchsorted(self._ends, rows, side="right")
        starts = self._ends - [len(part) for part in self.parts]
        # a stable sort brings the items of a store together, and its inverse puts them back
        order = np.argsort(owners, kind="stable")
        present = np.unique(owners)
        read = [self.parts[owner].read(rows[owners == owner] - starts[owner]) for owner in present]
        return stacked(read).read(np.argsort(order))

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum([len(part) for part in self.parts])


def stacked(parts: Sequence[EncodedMedia]) -> EncodedMedia:
    """Batches of different lengths as one batch, padded to the longest of them."""
    longest = max(part.mask.shape[1] for part in parts)
    states, masks = [], []
    for part in parts:
        missing = longest - part.mask.shape[1]
        states.append(torch.nn.functional.pad(part.hidden_states, (0, 0, 0, missing)))
        masks.append(torch.nn.functional.pad(part.mask, (0, missing)))
    features = torch.cat([part.global_feature for part in parts])
    return EncodedMedia(features, torch.cat(states), torch.cat(masks))

"""What a frozen encoder says of media: a global feature each, hidden states, and which are real."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.errors import DtypeError, EmptyBatchError, NotFiniteError, ShapeError
from adaptiveembed.shapes import GlobalFeatures


@dataclass(frozen=True, eq=False, repr=False)
class EncodedMedia:
    """A batch of at least one item, each with at least one real state.

    What stands where the mask is false is never read; it is kept at zero.
    """

    global_feature: Tensor  # [batch, width]
    hidden_states: Tensor  # [batch, states, width]
    mask: Tensor  # [batch, states], true where a state is real

    def __post_init__(self) -> None:
        _require_tensors(self)
        _require_shapes(self)
        _require_real_numbers(self)

    def __len__(self) -> int:
        return self.global_feature.shape[0]

    def __repr__(self) -> str:
        return f"EncodedMedia({len(self)} items, {self.mask.shape[1]} states, width {self.width})"

    @property
    def width(self) -> int:
        return self.global_feature.shape[1]

    def global_features(self) -> GlobalFeatures:
        """The global features of all items."""
        return self.global_feature

    def read(self, places: Sequence[int] | np.ndarray) -> "EncodedMedia":
        """The items at these places, cut behind the last real state of them."""
        rows = torch.as_tensor(np.asarray(places, dtype=np.int64))
        mask = self.mask[rows]
        # Real states may stand anywhere in a row; what lies beyond the last of them is cut.
        states = int(mask.any(dim=0).nonzero().max()) + 1
        return EncodedMedia(
            self.global_feature[rows], self.hidden_states[rows, :states], mask[:, :states]
        )

    def to(self, device: torch.device | str) -> "EncodedMedia":
        """The same media on another device; they are not checked again."""
        moved = object.__new__(EncodedMedia)
        for name in ("global_feature", "hidden_states", "mask"):
            object.__setattr__(moved, name, getattr(self, name).to(device))
        return moved


@runtime_checkable
class Features(Protocol):
    """Encoded media of many items, read by place: a store on disk, or a batch in memory."""

    def __len__(self) -> int: ...

    @property
    def width(self) -> int:
        """Numbers of one feature."""
        ...

    def global_features(self) -> GlobalFeatures:
        """The global features of all items, float32."""
        ...

    def read(self, places: Sequence[int] | np.ndarray) -> EncodedMedia:
        """The items at these places, float32, padded to the longest of them."""
        ...


def _require_tensors(encoded: EncodedMedia) -> None:
    for name in ("global_feature", "hidden_states", "mask"):
        value = getattr(encoded, name)
        if not isinstance(value, Tensor):
            raise DtypeError(
                f"{name} is a torch tensor, got {type(value).__name__}; "
                f"convert it with torch.from_numpy"
            )
    for name in ("global_feature", "hidden_states"):
        if not getattr(encoded, name).is_floating_point():
            raise DtypeError(
                f"{name} holds {getattr(encoded, name).dtype}; convert it with .float()"
            )
    if encoded.mask.dtype != torch.bool:
        raise DtypeError(f"mask holds {encoded.mask.dtype}; convert it with .bool()")


def _require_shapes(encoded: EncodedMedia) -> None:
    features, states, mask = encoded.global_feature, encoded.hidden_states, encoded.mask
    if features.dim() != 2 or states.dim() != 3 or mask.dim() != 2:
        raise ShapeError(
            f"encoded media are global_feature [batch, width], hidden_states [batch, states, "
            f"width] and mask [batch, states], got {tuple(features.shape)}, {tuple(states.shape)} "
            f"and {tuple(mask.shape)}"
        )
    if len(features) == 0:
        raise EmptyBatchError("encoded media need at least one item")
    wanted = (len(features), mask.shape[1], features.shape[1])
    if tuple(states.shape) != wanted or len(mask) != len(features):
        raise ShapeError(
            f"global_feature {tuple(features.shape)}, hidden_states {tuple(states.shape)} and mask "
            f"{tuple(mask.shape)} do not fit together; give [batch, width], [batch, states, width] "
            f"and [batch, states]"
        )


def _require_real_numbers(encoded: EncodedMedia) -> None:
    empty = ~encoded.mask.any(dim=1)
    if empty.any():
        raise EmptyBatchError(
            f"item {int(empty.nonzero()[0])} has no hidden state; give at least one, for example "
            f"its global feature"
        )
    for name in ("global_feature", "hidden_states"):
        wrong = ~torch.isfinite(getattr(encoded, name)).flatten(1).all(dim=1)
        if wrong.any():
            raise NotFiniteError(
                f"{name} of item {int(wrong.nonzero()[0])} holds NaN or infinity; look for the "
                f"cause in what encoded it, or leave the item out"
            )

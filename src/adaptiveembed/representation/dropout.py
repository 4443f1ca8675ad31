"""Dropout whose masks belong to items: an item has one mask, whatever batch or rank it is in.

A mask is a pure function of the item's key and of the place in the model. So micro-batches,
gradient caches, several processes and a resumed run drop the same numbers as one full batch would.
The random numbers are those of SplitMix64 (Steele, Lea and Flood 2014), counted from the key; they
are the same on every device.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adaptiveembed.errors import DtypeError, SettingError, ShapeError
from adaptiveembed.shapes import (
    DrawnNumbers,
    DropoutKeys,
    ItemHidden,
    ItemMask,
    ShorterMask,
    ShorterStates,
    StateMask,
    States,
)

LANES = 4
"""Random numbers of 16 bits that one of 64 bits holds."""

LAST = (1 << 63) - 1
"""The greatest integer: where it stands among drawn numbers, nothing comes later."""

STEPS = 1 << 16
"""How finely a share can be set: the number of different random numbers of 16 bits."""


def item_keys(seed: int, step: int, items: Tensor) -> DropoutKeys:
    """A key for every item, given by its number, at one step of one run."""
    if items.dim() != 1 or items.dtype != torch.int64:
        raise ShapeError(
            f"items are numbered by an int64 tensor [items], got {items.dtype} of shape "
            f"{tuple(items.shape)}; use torch.tensor(numbers)"
        )
    run = torch.tensor([seed], device=items.device)
    return _mixed(_mixed(_mixed(run) + step) + items)


def side_keys(keys: DropoutKeys, side: int) -> DropoutKeys:
    """Other keys for another use of the same items, such as the other modality of a pair."""
    return _mixed(keys + _signed(side * GOLDEN))


def drawn(keys: DropoutKeys, stream: int, count: int) -> DrawnNumbers:
    """``count`` random numbers of 64 bits for each item; other streams are independent of these."""
    first = _signed((stream << 32) * GOLDEN)
    places = torch.arange(1, count + 1, device=keys.device) * _signed(GOLDEN) + first
    return _mixed(keys[:, None] + places)


def kept(keys: DropoutKeys, stream: int, count: int, dropped: int) -> ItemMask:
    """Which of ``count`` numbers each item keeps, when ``dropped`` of ``STEPS`` are dropped."""
    lanes = drawn(keys, stream, -(-count // LANES)).view(torch.int16)[:, :count]
    return lanes >= dropped - STEPS // 2


class _ItemRandomness(nn.Module):
    """Something random that is drawn for each item, by the keys of ``item_dropout``.

    ``stream`` tells the places of a model apart.
    """

    def __init__(self, share: float, stream: int) -> None:
        super().__init__()
        self.share = share
        self.stream = stream
        self.keys: Tensor | None = None

    def extra_repr(self) -> str:
        return f"share={self.share}, stream={self.stream}"

    def keys_of(self, batch: Tensor) -> Tensor:
        """The keys, one for each item of this batch."""
        if self.keys is None:
            raise SettingError(
                f"dropout of {self.share:.3g} is on and no dropout keys were given; pass "
                f"dropout_keys=item_keys(seed, step, items), or call .eval() to embed"
            )
        if len(self.keys) != len(batch):
            raise ShapeError(
                f"got dropout keys of {len(self.keys)} items for a batch of {len(batch)}; "
                f"give one key per item"
            )
        return self.keys


class ItemDropout(_ItemRandomness):
    """Drops numbers of hidden vectors in training; what is kept is enlarged, so the mean stays."""

    def forward(self, hidden: ItemHidden) -> ItemHidden:
        dropped = round(self.share * STEPS)
        if not self.training or not dropped:
            return hidden
        mask = kept(self.keys_of(hidden), self.stream, hidden[0].numel(), dropped)
        return hidden.masked_fill(~mask.view(hidden.shape), 0) * (STEPS / (STEPS - dropped))


class StateDropout(_ItemRandomness):
    """Leaves out a share of every item's states in training, and at least one of them in.

    What is left is moved together, so that the rest costs nothing. Their order is lost, which
    attention does not see.
    """

    def forward(self, states: States, mask: StateMask) -> tuple[ShorterStates, ShorterMask]:
        dropped = round(self.share * STEPS)
        if not self.training or not dropped:
            return states, mask
        numbers = drawn(self.keys_of(states), self.stream, mask.shape[1])
        order = numbers.masked_fill(~mask, LAST).argsort(dim=1, stable=True)
        lengths = mask.sum(dim=1, keepdim=True)
        left = (lengths - (lengths * dropped + STEPS // 2) // STEPS).clamp(min=1)
        chosen = order[:, : int(left.max())]
        firsts = torch.arange(len(mask), device=mask.device).unsqueeze(1) * mask.shape[1]
        rows = states.flatten(0, 1).index_select(0, (chosen + firsts).flatten())
        real = torch.arange(chosen.shape[1], device=mask.device) < left
        return rows.view(*chosen.shape, -1), real


@contextmanager
def item_dropout(model: nn.Module, keys: Tensor | None) -> Iterator[None]:
    """Within, all dropout of ``model`` is drawn by these keys, one per item of the batch."""
    if keys is not None and (keys.dim() != 1 or keys.dtype != torch.int64):
        raise DtypeError(
            f"dropout keys are an int64 tensor [batch], got {keys.dtype} of shape "
            f"{tuple(keys.shape)}; make them with item_keys"
        )
    places = [module for module in model.modules() if isinstance(module, _ItemRandomness)]
    before = [place.keys for place in places]
    _set_keys(places, [keys] * len(places))
    try:
        yield
    finally:
        _set_keys(places, before)


def with_item_dropout(model: nn.Module, first_stream: int = 0) -> None:
    """Put item dropout of the same share in the place of every ``nn.Dropout`` of ``model``."""
    parents = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Dropout)
    ]
    for stream, (parent, name, child) in enumerate(parents, first_stream):
        setattr(parent, name, ItemDropout(child.p, stream))


def _set_keys(places: Sequence[_ItemRandomness], keys: Sequence[Tensor | None]) -> None:
    for place, own in zip(places, keys, strict=True):
        place.keys = own


def _signed(number: int) -> int:
    """The signed number of 64 bits that has the same lowest 64 bits."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)


def _mixed(numbers: Tensor) -> Tensor:
    """The output function of SplitMix64: every bit depends on every bit given.

    Integers of torch wrap around and shift by their sign, which the masks undo.
    """
    mixed = numbers ^ _shifted(numbers, 30)
    mixed = mixed.mul_(_FIRST)
    mixed = mixed.bitwise_xor_(_shifted(mixed, 27)).mul_(_SECOND)
    return mixed.bitwise_xor_(_shifted(mixed, 31))


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    return (numbers >> bits).bitwise_and_((1 << 64 - bits) - 1)

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
from adaptiveembed.shapes import DropoutKeys, ItemHidden, ItemMask

LANES = 4
"""Random numbers of 16 bits that one of 64 bits holds."""

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


def kept(keys: DropoutKeys, stream: int, count: int, dropped: int) -> ItemMask:
    """Which of ``count`` numbers each item keeps, when ``dropped`` of ``STEPS`` are dropped.

    Masks of different streams of one key are independent.
    """
    blocks = -(-count // LANES)
    first = _signed((stream << 32) * GOLDEN)
    places = torch.arange(1, blocks + 1, device=keys.device) * _signed(GOLDEN) + first
    lanes = _mixed(keys[:, None] + places).view(torch.int16)[:, :count]
    return lanes >= dropped - STEPS // 2


class ItemDropout(nn.Module):
    """Drops numbers of hidden vectors in training, by the keys of ``item_dropout``.

    What is kept is enlarged, so that the mean stays. ``stream`` tells the places of a model apart.
    """

    def __init__(self, share: float, stream: int) -> None:
        super().__init__()
        self.dropped = round(share * STEPS)
        self.stream = stream
        self.keys: Tensor | None = None

    def forward(self, hidden: ItemHidden) -> ItemHidden:
        if not self.training or not self.dropped:
            return hidden
        mask = kept(self._keys_of(hidden), self.stream, hidden[0].numel(), self.dropped)
        scale = STEPS / (STEPS - self.dropped)
        return hidden.masked_fill(~mask.view(hidden.shape), 0) * scale

    def extra_repr(self) -> str:
        return f"share={self.dropped / STEPS:.4f}, stream={self.stream}"

    def _keys_of(self, hidden: Tensor) -> Tensor:
        if self.keys is None:
            raise SettingError(
                f"dropout of {self.dropped / STEPS:.3g} is on and no dropout keys were given; pass "
                f"dropout_keys=item_keys(seed, step, items), or call .eval() to embed"
            )
        if len(self.keys) != len(hidden):
            raise ShapeError(
                f"got dropout keys of {len(self.keys)} items for a batch of {len(hidden)}; "
                f"give one key per item"
            )
        return self.keys


@contextmanager
def item_dropout(model: nn.Module, keys: Tensor | None) -> Iterator[None]:
    """Within, all dropout of ``model`` is drawn by these keys, one per item of the batch."""
    if keys is not None and (keys.dim() != 1 or keys.dtype != torch.int64):
        raise DtypeError(
            f"dropout keys are an int64 tensor [batch], got {keys.dtype} of shape "
            f"{tuple(keys.shape)}; make them with item_keys"
        )
    places = [module for module in model.modules() if isinstance(module, ItemDropout)]
    before = [place.keys for place in places]
    _set_keys(places, [keys] * len(places))
    try:
        yield
    finally:
        _set_keys(places, before)


def with_item_dropout(model: nn.Module) -> None:
    """Put item dropout of the same share in the place of every ``nn.Dropout`` of ``model``."""
    parents = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Dropout)
    ]
    for stream, (parent, name, child) in enumerate(parents):
        setattr(parent, name, ItemDropout(child.p, stream))


def _set_keys(places: Sequence[ItemDropout], keys: Sequence[Tensor | None]) -> None:
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

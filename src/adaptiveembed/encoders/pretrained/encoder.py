"""An encoder made of a checkpoint: one way of encoding for each modality, within a token budget."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from adaptiveembed.data.media import Media
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.encoders.protocol import checked_batch
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia


class Prepared(NamedTuple):
    """One item, ready for a model: how many tokens, frames or patches it has, and its inputs."""

    length: int
    inputs: Any


@dataclass(frozen=True, eq=False)
class Branch:
    """How items of one modality are encoded."""

    prepare: Callable[[Any], Prepared]
    """Of one item by itself."""
    forward: Callable[[Sequence[Any]], EncodedMedia]
    """Of the inputs of several items, in one pass of the model."""


@dataclass(frozen=True, eq=False)
class PretrainedEncoder:
    """A frozen model and how it is asked, behind the protocol of all encoders."""

    kind: PretrainedKind
    settings: PretrainedSettings
    fingerprint: str
    width: int
    branches: Mapping[Modality, Branch]
    facts: Mapping[str, str]
    """What people want to know of it, each fact under its name: class, pooling, limits."""
    matryoshka_widths: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.settings.source}"

    @property
    def modalities(self) -> frozenset[Modality]:
        return frozenset(self.branches)

    @property
    def space(self) -> str:
        return self.fingerprint

    def encode(self, batch: Sequence[Media]) -> EncodedMedia:
        """Global features of length 1, and hidden states in their space where there is a way."""
        items = checked_batch(self, batch)
        places: list[list[int]] = []
        parts: list[EncodedMedia] = []
        for modality, branch in self.branches.items():
            own = [place for place, item in enumerate(items) if item.modality is modality]
            prepared = [branch.prepare(items[place]) for place in own]
            lengths = [one.length for one in prepared]
            for rows in passes(lengths, self.settings.token_budget):
                parts.append(branch.forward([prepared[row].inputs for row in rows]))
                places.append([own[row] for row in rows])
        return in_order(parts, places)


def passes(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Places of items, cut into passes of similar length.

    A pass, padded to its longest item, is within the budget or has one item.
    """
    rows: list[int] = []
    # longest first: the first item of a pass says how long its rows are
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if rows and lengths[rows[0]] * (len(rows) + 1) > budget:
            yield rows
            rows = []
        rows.append(place)
    if rows:
        yield rows


def in_order(parts: Sequence[EncodedMedia], places: Sequence[Sequence[int]]) -> EncodedMedia:
    """One batch of all parts, every item at its place, padded to the longest with zeros."""
    states = max(part.mask.shape[1] for part in parts)
    order = torch.tensor([place for rows in places for place in rows]).argsort()
    return EncodedMedia(
        torch.cat([part.global_feature for part in parts])[order],
        torch.cat([_longer(part.hidden_states, states) for part in parts])[order],
        torch.cat([_longer(part.mask, states) for part in parts])[order],
    )


def encoded(global_feature: Tensor, hidden_states: Tensor, mask: Tensor) -> EncodedMedia:
    """What a model gave, in float32 on the CPU: unit features, and zeros where nothing is real."""
    real = mask.bool().cpu()
    states = hidden_states.float().cpu().masked_fill(~real[:, :, None], 0)
    return EncodedMedia(functional.normalize(global_feature.float().cpu(), dim=1), states, real)


def padded(rows: Sequence[Sequence[int]], filling: int) -> tuple[Tensor, Tensor]:
    """Rows of tokens, filled up behind their ends to one length, and which tokens are real."""
    longest = max(map(len, rows))
    tokens = torch.full((len(rows), longest), filling)
    mask = torch.zeros((len(rows), longest), dtype=torch.bool)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = torch.tensor(row)
        mask[place, : len(row)] = True
    return tokens, mask


def _longer(tensor: Tensor, states: int) -> Tensor:
    """The tensor with so many states, the new ones zero or false."""
    filled = tensor.new_zeros((len(tensor), states, *tensor.shape[2:]))
    filled[:, : tensor.shape[1]] = tensor
    return filled

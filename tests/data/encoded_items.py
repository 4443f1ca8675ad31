"""Encoded items for tests: ragged, with real states anywhere in a row."""

import torch

from adaptiveembed.structure.encoded import EncodedMedia

WIDTH, LONGEST = 4, 5


def item_ids(count, start=0):
    return [f"item {place}" for place in range(start, start + count)]


def item_keys(count, start=0):
    return [f"key {place}" for place in range(start, start + count)]


def encoded_items(count, seed=0, width=WIDTH, longest=LONGEST):
    """``count`` items of one to ``longest`` states, exact in half precision."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(count, longest, generator=generator) > 0.5
    mask[torch.arange(count), torch.randint(longest, (count,), generator=generator)] = True
    features = torch.randn(count, width, generator=generator).half().float()
    states = torch.randn(count, longest, width, generator=generator).half().float()
    return EncodedMedia(features, states * mask.unsqueeze(-1), mask)


def real_states(encoded, place):
    """The states of one item, one after another."""
    return encoded.hidden_states[place][encoded.mask[place]]

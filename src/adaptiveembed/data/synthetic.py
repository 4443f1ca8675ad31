"""Synthetic candidate sets in which items really differ in the capacity that they need.

A stand-in for embedded media, so that search, allocation and evaluation can be tried without any
model. It proves nothing about real media: how much there is to gain from adaptive allocation was
decided here, by the numbers below.

Items come in two kinds, in random order:

* *clear* items are told apart by position 0 alone; what the finer positions of their two modalities
  say hardly agrees, so that comparing more of them adds noise;
* *crowded* items share position 0 with a crowd of near-twins, and are told apart only by the finer
  positions of one group, another one from crowd to crowd.

So no single selection serves everyone, in either direction.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from adaptiveembed.errors import SettingError
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.groups import PAPER_LAYOUT, GroupLayout

LARGEST_SEED = 2**63 - 1
"""What fits into the signed 64-bit integer that torch takes."""


@dataclass(frozen=True)
class SyntheticSettings:
    """How the synthetic items are made; noise is a multiple of the signal's own length."""

    crowd_size: int = 8
    """Near-twins that share position 0."""
    crowded_share: float = 0.5
    """Share of the items that stand in crowds."""
    agreement_noise: float = 1.2
    """Noise of each modality where a position tells items apart."""
    disagreement_noise: float = 3.0
    """Noise of each modality where a position says little."""
    twin_distance: float = 0.3
    """How far position 0 of a crowded item lies from its crowd."""

    def __post_init__(self) -> None:
        _check_settings(self)


def synthetic_pairs(
    num_items: int,
    layout: GroupLayout = PAPER_LAYOUT,
    dim: int = 64,
    seed: int = 0,
    settings: SyntheticSettings | None = None,
) -> tuple[CandidateSets, CandidateSets]:
    """Candidate sets of the same items in two modalities: row i of both is item i.

    Equal arguments give equal sets.
    """
    _check_seed(seed)
    settings = settings or SyntheticSettings()
    generator = torch.Generator().manual_seed(seed)
    crowds = _crowds(num_items, settings, generator)
    meaning = _meaning(crowds, layout, dim, settings, generator)
    noise = _noise_levels(crowds, layout, settings)
    return _view(meaning, noise, layout, generator), _view(meaning, noise, layout, generator)


CLEAR = -1
"""Crowd number of an item that stands in no crowd."""


def _crowds(num_items: int, settings: SyntheticSettings, generator: torch.Generator) -> Tensor:
    """The crowd number of each item, ``CLEAR`` for items in none."""
    if num_items < 1:
        raise SettingError(f"num_items is {num_items}; ask for at least one item")
    num_crowded = round(settings.crowded_share * num_items)
    crowds = torch.full((num_items,), CLEAR)
    crowds[:num_crowded] = torch.arange(num_crowded) // settings.crowd_size
    return crowds[torch.randperm(num_items, generator=generator)]


def _meaning(
    crowds: Tensor,
    layout: GroupLayout,
    dim: int,
    settings: SyntheticSettings,
    generator: torch.Generator,
) -> Tensor:
    """What both modalities share: one unit vector per item and position."""
    own = torch.randn(len(crowds), layout.num_candidates, dim, generator=generator)
    own = torch.nn.functional.normalize(own, dim=-1)
    centres = torch.randn(int(crowds.max()) + 1, dim, generator=generator)
    centres = torch.nn.functional.normalize(centres, dim=-1)
    crowded = crowds != CLEAR
    own[crowded, 0] = centres[crowds[crowded]] + settings.twin_distance * own[crowded, 0]
    return torch.nn.functional.normalize(own, dim=-1)


def _noise_levels(crowds: Tensor, layout: GroupLayout, settings: SyntheticSettings) -> Tensor:
    """How noisy each position of each item is [items, candidates]: low where it is informative."""
    informative = torch.zeros(len(crowds), layout.num_candidates, dtype=torch.bool)
    informative[:, 0] = True
    refined = _refined_positions(layout)
    for place, positions in enumerate(refined):
        members = (crowds != CLEAR) & (crowds % len(refined) == place)
        informative[members.unsqueeze(-1) & _mask(positions, layout)] = True
    return torch.where(informative, settings.agreement_noise, settings.disagreement_noise)


def _refined_positions(layout: GroupLayout) -> list[list[int]]:
    """Positions other than 0 of every group that has any."""
    groups = zip(layout.starts, layout.sizes, strict=True)
    positions = [list(range(max(start, 1), start + size)) for start, size in groups]
    return [one for one in positions if one]


def _mask(positions: list[int], layout: GroupLayout) -> Tensor:
    return torch.isin(torch.arange(layout.num_candidates), torch.tensor(positions))


def _view(
    meaning: Tensor, noise: Tensor, layout: GroupLayout, generator: torch.Generator
) -> CandidateSets:
    """One modality's candidate sets: the shared meaning, seen through noise of its own."""
    # divided by the square root of dim, one unit of noise is as long as the meaning itself
    own = torch.randn(meaning.shape, generator=generator) / meaning.shape[-1] ** 0.5
    return CandidateSets.normalized(meaning + noise.unsqueeze(-1) * own, layout)


def _check_seed(seed: int) -> None:
    if not 0 <= seed <= LARGEST_SEED:
        raise SettingError(f"seed is {seed}; give a whole number from 0 to {LARGEST_SEED}")


def _check_settings(settings: SyntheticSettings) -> None:
    if settings.crowd_size < 1:
        raise SettingError(f"crowd_size is {settings.crowd_size}; a crowd needs at least one item")
    if not 0 <= settings.crowded_share <= 1:
        raise SettingError(f"crowded_share is {settings.crowded_share}; give a share from 0 to 1")
    for name in ("agreement_noise", "disagreement_noise", "twin_distance"):
        if getattr(settings, name) < 0:
            raise SettingError(f"{name} is {getattr(settings, name)}; give a number >= 0")

"""Where a state is, as numbers from which near and far can be read."""

import torch

from adaptiveembed.shapes import Descriptions, LocatedStates, PlaceFeatures, Places, StatesAndWhole

WAVES = 3
"""How many waves each axis is described by; the fastest goes round one and a half times."""


def place_features(places: Places) -> PlaceFeatures:
    """Sines and cosines of half waves along every axis, whose places are from 0 to 1."""
    angles = places.unsqueeze(-1) * (torch.pi * torch.arange(1, WAVES + 1))
    return torch.cat((angles.sin(), angles.cos()), dim=-1).flatten(-2)


def middles(parts: int) -> torch.Tensor:
    """The middles of so many equal parts of the way from 0 to 1."""
    return (torch.arange(parts) + 0.5) / parts


def grid_places(*parts: int) -> Places:
    """The middles of a grid's cells, the last axis fastest [cells, axes]."""
    return torch.cartesian_prod(*map(middles, parts)).reshape(-1, len(parts))


def located(cells: Descriptions, places: PlaceFeatures) -> LocatedStates:
    """Every cell with its place."""
    return torch.cat((cells, places.expand(len(cells), *places.shape)), dim=2)


def with_whole(cells: Descriptions) -> StatesAndWhole:
    """All cells and, as one more state, their mean, which stands for the whole."""
    return torch.cat((cells, cells.mean(dim=1, keepdim=True)), dim=1)

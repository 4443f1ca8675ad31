"""What the cells of a picture look like: colours, contrast, edges and the shapes they hint at.

Statistics in the tradition of colour histograms and histograms of oriented gradients. Every number
is between -1 and about 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from PIL import Image as Pictures
from torch import Tensor

from adaptiveembed.shapes import (
    CellDetails,
    CellFeatures,
    ColourTable,
    PartPlanes,
    PixelArray,
    Planes,
    SquarePixels,
    Summaries,
    WavePlanes,
)

COLOUR_LEVELS = 3
"""Levels of red, green and blue by which colours are counted: 27 colours in all."""

COLOUR_STEPS = 16
"""Steps of red, green and blue between which no difference is made when colours are counted."""

HARMONICS = 4
"""How finely the directions of edges are told apart: as by twice as many bins."""

STRENGTH_GAIN = 4.0
"""What makes the mean strength of the edges of a cell a number near 1."""

CONTRAST_GAIN = 3.0
"""What makes the deviation of brightness within a cell a number near 1."""

FAINT = 0.01
"""A mean strength of edges that is as good as none; directions fade below it."""

TYPICAL_COLOUR, TYPICAL_DEVIATION, TYPICAL_STRENGTH, TYPICAL_SHAPE = 0.1, 0.2, 0.4, 0.2
"""What is subtracted from numbers that are never negative, so that they lie around zero."""

PICTURES_AT_ONCE = 16
"""As many as the planes of fit into the second cache of a processor."""


@dataclass(frozen=True)
class Cells:
    """What is measured of the cells of pictures."""

    looks: CellFeatures
    """Every cell by itself, and together with those around it."""
    quarters: CellDetails
    """The quarters of every cell, without their colours."""


def rasters(pictures: Iterable[PixelArray], side: int) -> Planes:
    """Every picture squeezed into a square; what is made smaller is averaged."""
    squares = np.stack([_raster(picture, side) for picture in pictures])
    return torch.from_numpy(squares).permute(0, 3, 1, 2)


def measured_cells(pictures: Planes, grid: int) -> Cells:
    """The looks of grid × grid cells of every picture, whose numbers are from 0 to 255."""
    parts = [_measured(part, grid) for part in torch.split(pictures, PICTURES_AT_ONCE)]
    own = torch.cat([looks for looks, _ in parts])
    around = neighbourhoods(own)
    looks = torch.cat((own, shape_features(own), around, shape_features(around)), dim=3)
    return Cells(looks, torch.cat([quarters for _, quarters in parts]))


def _measured(pictures: Planes, grid: int) -> tuple[CellFeatures, CellDetails]:
    opponents = opponent_planes(pictures)
    waves = _edge_waves(opponents)
    own = _moments_and_edges(opponents, waves, grid).permute(0, 2, 3, 1)
    quarters = _moments_and_edges(opponents, waves, 2 * grid)
    looks = torch.cat((_colours(pictures, grid), own), dim=3)
    return looks, _by_cell(quarters, grid)


def _by_cell(planes: PartPlanes, grid: int) -> CellFeatures:
    """The numbers of all parts of every cell, side by side."""
    pictures, numbers, rows, _ = planes.shape
    parts = planes.reshape(pictures, numbers, grid, rows // grid, grid, rows // grid)
    return parts.permute(0, 2, 4, 3, 5, 1).flatten(3)


def neighbourhoods(cells: CellFeatures) -> CellFeatures:
    """The mean over every cell and the up to eight around it."""
    planes = cells.permute(0, 3, 1, 2)
    around = torch.nn.functional.avg_pool2d(planes, 3, 1, 1, count_include_pad=False)
    return around.permute(0, 2, 3, 1)


def shape_features(cells: CellFeatures) -> CellDetails:
    """How far edges agree on 2, 4, 6 and 8 directions, whichever way all of them are turned."""
    waves = cells[..., -2 * HARMONICS :].reshape(*cells.shape[:3], HARMONICS, 2)
    agreement: CellDetails = torch.linalg.vector_norm(waves, dim=-1) - TYPICAL_SHAPE
    return agreement


def region_means(cells: CellFeatures, regions: int) -> Summaries:
    """The means over regions × regions parts of every picture, side by side."""
    planes = cells.permute(0, 3, 1, 2)
    return torch.nn.functional.adaptive_avg_pool2d(planes, regions).flatten(1)


def opponent_planes(pictures: Planes) -> Planes:
    """Brightness, red against green, and both against blue, from 0 to 1 or -1/2 to 1/2."""
    red, green, blue = (pictures.float() / 255).unbind(1)
    planes = ((red + green + blue) / 3, (red - green) / 2, (red + green) / 4 - blue / 2)
    return torch.stack(planes, dim=1)


def slopes(planes: Planes) -> tuple[Tensor, Tensor]:
    """How much brighter the next pixel is than the one before, across and down."""
    padded = torch.nn.functional.pad(planes, (1, 1, 1, 1), mode="replicate")
    across = padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2]
    down = padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]
    return across, down


def _means(planes: Tensor, side: int) -> PartPlanes:
    return torch.nn.functional.avg_pool2d(planes, side)


def _moments_and_edges(opponents: Planes, waves: WavePlanes, grid: int) -> PartPlanes:
    side = opponents.shape[-1] // grid
    return torch.cat((_moments(opponents, side), _edges(waves, side)), dim=1)


def _moments(opponents: Planes, side: int) -> PartPlanes:
    """Mean and deviation of brightness and colour in every cell."""
    mean = _means(opponents, side)
    spread = mean.repeat_interleave(side, dim=2).repeat_interleave(side, dim=3)
    deviation = _means((opponents - spread).square(), side).sqrt()
    centred = torch.cat((mean[:, :1] - 0.5, mean[:, 1:]), dim=1)
    return torch.cat((centred, CONTRAST_GAIN * deviation - TYPICAL_DEVIATION), dim=1)


def _edges(waves: WavePlanes, side: int) -> PartPlanes:
    """How strong the edges in every cell are, and how far they agree on which directions."""
    means = _means(waves, side)
    strength = means[:, :1]
    gained = (STRENGTH_GAIN * strength).sqrt() - TYPICAL_STRENGTH
    return torch.cat((gained, means[:, 1:] / (strength + FAINT)), dim=1)


def _edge_waves(opponents: Planes) -> WavePlanes:
    """The strength of the edge at every pixel, and the waves of its direction times strength.

    An edge and its reverse are one direction, so the first wave goes round in half a turn.
    """
    strength, across, down = _steepest(*slopes(opponents))
    cosine, sine = across / (strength + 1e-6), down / (strength + 1e-6)
    double = torch.complex(cosine.square() - sine.square(), 2 * cosine * sine)
    waves = [strength * double]
    for _ in range(HARMONICS - 1):
        waves.append(waves[-1] * double)
    parts = torch.view_as_real(torch.stack(waves, dim=1)).permute(0, 1, 4, 2, 3).flatten(1, 2)
    return torch.cat((strength.unsqueeze(1), parts), dim=1)


def _steepest(across: Tensor, down: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The slope of the channel in which it is steepest: its strength, across and down."""
    squares = across.square() + down.square()
    best, best_across, best_down = squares[:, 0], across[:, 0], down[:, 0]
    for channel in range(1, squares.shape[1]):
        steeper = squares[:, channel] > best
        best = torch.where(steeper, squares[:, channel], best)
        best_across = torch.where(steeper, across[:, channel], best_across)
        best_down = torch.where(steeper, down[:, channel], best_down)
    return best.sqrt(), best_across, best_down


def _colours(pictures: Planes, grid: int) -> CellFeatures:
    """The share of every colour in every cell; a colour between two levels counts for both."""
    step = pictures.int() // (256 // COLOUR_STEPS)
    colours = (step[:, 0] * COLOUR_STEPS + step[:, 1]) * COLOUR_STEPS + step[:, 2]
    side = pictures.shape[-1] // grid
    cells = colours.reshape(-1, grid, side, grid, side).transpose(2, 3).reshape(-1, side * side)
    shares = torch.nn.functional.embedding_bag(cells, _colour_table(), mode="mean")
    return shares.reshape(len(pictures), grid, grid, -1).sqrt() - TYPICAL_COLOUR


def _raster(pixels: PixelArray, side: int) -> SquarePixels:
    if pixels.shape[:2] == (side, side):
        return pixels
    picture = Pictures.fromarray(np.ascontiguousarray(pixels))
    return np.array(picture.resize((side, side), Pictures.Resampling.BILINEAR))


@cache
def _colour_table() -> ColourTable:
    """For every step of red, green and blue: how much it counts for each of the colours."""
    places = torch.arange(COLOUR_STEPS) * (COLOUR_LEVELS - 1) / (COLOUR_STEPS - 1)
    near = (1 - (places.unsqueeze(1) - torch.arange(COLOUR_LEVELS)).abs()).clamp_min(0)
    table = torch.einsum("ri,gj,bk->rgbijk", near, near, near)
    return table.reshape(COLOUR_STEPS**3, COLOUR_LEVELS**3)

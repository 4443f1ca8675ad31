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
    WholePlanes,
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

NO_EDGE = 1e-9
"""A square of the slope of a pixel that has no direction."""

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
    """The looks of every cell by itself, and of its quarters."""
    quarters = _statistics(pictures, 2 * grid)
    whole = _features(_merged(quarters)).permute(0, 2, 3, 1)
    looks = torch.cat((_colours(pictures, grid), whole), dim=3)
    return looks, _by_cell(_features(quarters), grid)


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


def _statistics(pictures: Planes, grid: int) -> PartPlanes:
    """Means of colour, squares of its deviation, and means of edges in every part of a picture."""
    opponents = opponent_planes(pictures)
    side = pictures.shape[-1] // grid
    mean = _means(opponents, side)
    parts = opponents.reshape(*mean.shape[:3], side, grid, side)
    square = (parts - mean[:, :, :, None, :, None]).square().mean(dim=(3, 5))
    return torch.cat((mean, square, _means(_edge_waves(opponents), side)), dim=1)


def _merged(quarters: PartPlanes) -> WholePlanes:
    """The statistics of every two by two parts together."""
    merged = _means(quarters, 2)
    mean = merged[:, :3].repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    between = _means((quarters[:, :3] - mean).square(), 2)
    return torch.cat((merged[:, :3], merged[:, 3:6] + between, merged[:, 6:]), dim=1)


def _features(statistics: Tensor) -> Tensor:
    """The statistics, brought to numbers around zero that do not exceed about 1."""
    brightness, colours, squares, strength, waves = statistics.split_with_sizes(
        (1, 2, 3, 1, 2 * HARMONICS), dim=1
    )
    numbers = (
        brightness - 0.5,
        colours,
        CONTRAST_GAIN * squares.sqrt() - TYPICAL_DEVIATION,
        (STRENGTH_GAIN * strength).sqrt() - TYPICAL_STRENGTH,
        waves / (strength + FAINT),
    )
    return torch.cat(numbers, dim=1)


def _edge_waves(opponents: Planes) -> WavePlanes:
    """The strength of the edge at every pixel, and the waves of its direction times strength.

    An edge and its reverse are one direction, so the first wave goes round in half a turn. Where
    brightness and colours have edges of different directions, the waves are weaker.
    """
    across, down = slopes(opponents)
    across_squares, down_squares = across.square().sum(dim=1), down.square().sum(dim=1)
    squares = across_squares + down_squares
    cosine = (across_squares - down_squares) / (squares + NO_EDGE)
    sine = 2 * (across * down).sum(dim=1) / (squares + NO_EDGE)
    waves = [squares.sqrt(), squares.sqrt() * cosine, squares.sqrt() * sine]
    for _ in range(HARMONICS - 1):
        before, aside = waves[-2:]
        waves += [before * cosine - aside * sine, before * sine + aside * cosine]
    return torch.stack(waves, dim=1)


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

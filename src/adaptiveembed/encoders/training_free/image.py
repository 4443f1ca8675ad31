"""Pictures, described by the statistics of a grid of cells."""

from collections.abc import Sequence

import torch

from adaptiveembed.data.media import Image
from adaptiveembed.encoders.training_free.cells import measured_cells, rasters, region_means
from adaptiveembed.encoders.training_free.places import (
    grid_places,
    located,
    place_features,
    with_whole,
)
from adaptiveembed.encoders.training_free.projecting import Described

SIDE = 96
"""Pixels of a side of the raster that every picture is brought to."""

GRID = 6
"""Cells along a side, each of which becomes a state."""

REGIONS = 3
"""Regions along a side, whose means are part of the global feature."""


def describe_images(batch: Sequence[Image]) -> Described:
    """Every cell with its place, row by row; then the whole picture, which has none."""
    cells = measured_cells(rasters((item.pixels for item in batch), SIDE), GRID)
    places = place_features(grid_places(GRID, GRID))
    descriptions = with_whole(located(cells.looks.flatten(1, 2), places))
    mask = torch.ones(descriptions.shape[:2], dtype=torch.bool)
    regions = region_means(cells.looks, REGIONS)
    return Described(descriptions, with_whole(cells.quarters.flatten(1, 2)), mask, regions)

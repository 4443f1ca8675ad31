"""Videos, described by the statistics of cells in space and time, and by what moves in them."""

from collections.abc import Sequence

import numpy as np
import torch

from adaptiveembed.data.media import Video
from adaptiveembed.encoders.training_free.cells import (
    measured_cells,
    opponent_planes,
    rasters,
    region_means,
    slopes,
)
from adaptiveembed.encoders.training_free.places import (
    grid_places,
    located,
    place_features,
    with_whole,
)
from adaptiveembed.encoders.training_free.projecting import Described
from adaptiveembed.shapes import CellFeatures, CellsOverTime, PlanesOverTime, SpansOfCells

SIDE = 48
"""Pixels of a side of the raster that every frame is brought to."""

GRID = 4
"""Cells along a side of a frame."""

FRAMES = 8
"""Frames that are looked at, spread evenly over the video."""

SPANS = 4
"""Spans of time; every cell of every span becomes a state."""

REGIONS = 2
"""Regions along a side, whose means over every span are part of the global feature."""

BLUR = 4
"""Pixels of a side of the blocks by which movement is measured."""

CHANGE_GAIN = 3.0
"""What makes a change of brightness from frame to frame a number near 1."""

STILL = 1e-3
"""A square of the slope that is as good as none: what moves there cannot be seen."""


def describe_videos(batch: Sequence[Video]) -> Described:
    """Every cell of every span with its place, span by span; then the whole video."""
    pictures = rasters((frame for item in batch for frame in sampled_frames(item)), SIDE)
    measured = measured_cells(pictures, GRID)
    looks = over_time(measured.looks, FRAMES)
    quarters = span_means(over_time(measured.quarters, FRAMES))
    moves = movements(over_time(opponent_planes(pictures), FRAMES), GRID)
    cells = torch.cat((span_means(looks), span_means(moves)), dim=4)
    places = place_features(grid_places(SPANS, GRID, GRID))
    descriptions = with_whole(located(cells.flatten(1, 3), places))
    mask = torch.ones(descriptions.shape[:2], dtype=torch.bool)
    regions = region_means(cells.flatten(0, 1), REGIONS)
    summaries = over_time(regions, SPANS).flatten(1)
    return Described(descriptions, with_whole(quarters.flatten(1, 3)), mask, summaries)


def sampled_frames(video: Video) -> np.ndarray:
    """Frames spread evenly over the video; a short video repeats some."""
    places = (np.arange(FRAMES) * 2 + 1) * len(video.frames) // (2 * FRAMES)
    chosen: np.ndarray = video.frames[places]
    return chosen


def movements(frames: PlanesOverTime, grid: int) -> CellsOverTime:
    """What changes in every cell from each frame to the next: colours, how much, and whereto.

    The last frame is followed by what followed the one before.
    """
    blocks = over_time(torch.nn.functional.avg_pool2d(frames.flatten(0, 1), BLUR), FRAMES)
    change = blocks[:, 1:] - blocks[:, :-1]
    middle = (blocks[:, 1:] + blocks[:, :-1]).flatten(0, 1) / 2
    cells = over_time(_movement(change.flatten(0, 1), middle, grid), FRAMES - 1)
    return torch.cat((cells, cells[:, -1:]), dim=1)


def span_means(cells: CellsOverTime) -> SpansOfCells:
    """The mean over the frames of every span."""
    parts = cells.reshape(len(cells), SPANS, FRAMES // SPANS, *cells.shape[2:])
    return parts.mean(dim=2)


def over_time(rows: torch.Tensor, times: int) -> torch.Tensor:
    """Rows that follow each other in time, with an axis for so many times of each video."""
    return rows.reshape(-1, times, *rows.shape[1:])


def _movement(change: torch.Tensor, middle: torch.Tensor, grid: int) -> CellFeatures:
    """The shift that explains the change best, in blocks, by least squares in every cell."""
    across, down = slopes(middle)
    side = middle.shape[-1] // grid
    steepness = _cell_sums(across.square() + down.square(), side) + STILL
    parts = (
        CHANGE_GAIN * torch.nn.functional.avg_pool2d(change, side),
        CHANGE_GAIN * torch.nn.functional.avg_pool2d(change.abs(), side),
        -_cell_sums(change * across, side) / steepness,
        -_cell_sums(change * down, side) / steepness,
    )
    return torch.cat(parts, dim=1).permute(0, 2, 3, 1)


def _cell_sums(planes: torch.Tensor, side: int) -> torch.Tensor:
    """The sum over channels and over the blocks of every cell [pictures, 1, grid, grid]."""
    return side**2 * torch.nn.functional.avg_pool2d(planes.sum(dim=1, keepdim=True), side)

"""What the models of the Qwen-VL family read: tokens, patches of pixels, and which is which.

Pictures go through the image processor of the checkpoint. Videos are cut into patches here, because
the processors of videos need a library that many machines do not have.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.nn.utils.rnn import pad_sequence

from adaptiveembed.data.media import Image, Video
from adaptiveembed.errors import EncoderError, SettingError
from adaptiveembed.shapes import (
    FrameArray,
    NormalizedFrames,
    PatchArray,
    ResizedFrames,
    TokenIds,
    TokenMask,
)

IMAGE_TOKEN, VIDEO_TOKEN = "<|image_pad|>", "<|video_pad|>"
"""What stands in a prompt for every few patches of a picture and of a video."""

NARROWEST = 200
"""How many times as wide as high a picture may be, or as high as wide; the models know no more."""

FRAMES_SEEN_TOGETHER = 2
"""Frames that share a budget of pixels."""

FEWEST_FRAMES = 4
"""Frames that are taken of a short video, if it has them."""

ROUNDING = 1e-6
"""By how much a number of frames may miss a whole one. A rate is seldom exact."""


class Kind(IntEnum):
    """What a token stands for, as the models count it."""

    TEXT = 0
    IMAGE = 1
    VIDEO = 2


@dataclass(frozen=True)
class PixelLimits:
    """How many pixels a picture or a frame is brought to."""

    least: int
    """Pixels below which it is made larger."""
    most: int
    """Pixels above which it is made smaller."""

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most:
            raise SettingError(
                f"the least pixels are {self.least} and the most are {self.most}; give at least 1, "
                f"and the smaller number first"
            )


@dataclass(frozen=True)
class FrameChoice:
    """Which frames of a video are looked at."""

    per_second: float
    """Frames of each second, at most; infinity: as many as there are."""
    most: int
    """Frames of a video; of a long one, they are spread over all of it."""

    def __post_init__(self) -> None:
        if not (self.per_second > 0 and self.most > 0):
            raise SettingError(
                f"{self.per_second} frames a second and at most {self.most} leave no frame; give "
                f"numbers above 0"
            )


class Grid(NamedTuple):
    """How many patches a medium has: over time, down and across."""

    times: int
    rows: int
    columns: int


class Composed(NamedTuple):
    """One item as a model reads it; its patches are made when they are needed."""

    tokens: list[int]
    kinds: list[Kind]
    grid: Grid | None = None
    patches: Callable[[], np.ndarray] | None = None


class Patches(NamedTuple):
    """Patches of several media, one behind the other [patches, numbers]; a grid each [media, 3]."""

    pixels: Tensor
    grids: Tensor


class TokenBatch(NamedTuple):
    """Items of one modality, filled up behind their last token."""

    tokens: TokenIds
    kinds: TokenIds
    mask: TokenMask
    patches: Patches | None

    def to(self, device: torch.device) -> "TokenBatch":
        """The same batch on another device."""
        tokens, kinds, mask, patches = self
        moved = None if patches is None else Patches(*(part.to(device) for part in patches))
        return TokenBatch(tokens.to(device), kinds.to(device), mask.to(device), moved)


@dataclass(frozen=True)
class PatchCutter:
    """Cuts pictures and videos into patches as a checkpoint wants them."""

    processor: Any
    """The image processor of the checkpoint."""

    @property
    def limits(self) -> PixelLimits:
        """What the checkpoint says of a picture."""
        size = self.processor.size
        return PixelLimits(int(size["shortest_edge"]), int(size["longest_edge"]))

    @property
    def frames_together(self) -> int:
        """Frames that one patch of a video shows."""
        return int(self.processor.temporal_patch_size)

    def image_grid(self, image: Image, limits: PixelLimits) -> Grid:
        """The grid of ``image_patches``."""
        return Grid(1, *self._rows_and_columns(image.pixels.shape[:2], limits))

    def image_patches(self, image: Image, limits: PixelLimits) -> PatchArray:
        """The picture in patches, as the processor makes them."""
        made = self.processor(
            images=[image.pixels],
            size={"shortest_edge": limits.least, "longest_edge": limits.most},
            input_data_format="channels_last",
            return_tensors="np",
        )
        patches: np.ndarray = made["pixel_values"]
        return patches

    def video_grid(self, video: Video, frames: int, limits: PixelLimits) -> Grid:
        """The grid of ``video_patches`` of so many frames of the video."""
        times = math.ceil(frames / self.frames_together)
        return Grid(times, *self._rows_and_columns(video.frames.shape[1:3], limits))

    def video_patches(self, frames: FrameArray, limits: PixelLimits) -> PatchArray:
        """The frames in patches of several frames each; the last frame is repeated as needed."""
        height, width = fitted_size(frames.shape[1:3], self._factor, limits)
        missing = -len(frames) % self.frames_together
        whole = np.concatenate((frames, frames[-1:].repeat(missing, axis=0)))
        return cut_into_patches(self._normalized(resized(whole, height, width)), self.processor)

    def tokens_of(self, grid: Grid) -> int:
        """Tokens that stand for one time of the grid."""
        return grid.rows * grid.columns // int(self.processor.merge_size) ** 2

    @property
    def _factor(self) -> int:
        """Pixels along a side of what one token stands for."""
        return int(self.processor.patch_size * self.processor.merge_size)

    def _rows_and_columns(self, shape: tuple[int, ...], limits: PixelLimits) -> tuple[int, int]:
        height, width = fitted_size(shape, self._factor, limits)
        return height // self.processor.patch_size, width // self.processor.patch_size

    def _normalized(self, frames: FrameArray) -> NormalizedFrames:
        """Numbers around zero, by the means and deviations that the processor has for pictures."""
        mean, deviation = (
            np.asarray(numbers, np.float32)
            for numbers in (self.processor.image_mean, self.processor.image_std)
        )
        scaled = frames.astype(np.float32) * np.float32(self.processor.rescale_factor)
        normalized: np.ndarray = (scaled - mean) / deviation
        return normalized


def fitted_size(shape: tuple[int, ...], factor: int, limits: PixelLimits) -> tuple[int, int]:
    """Height and width of nearly the same shape, in multiples of the factor and within the limits.

    Of a very narrow picture the limits are given up before the shape.
    """
    height, width = shape
    if max(height, width) > NARROWEST * min(height, width):
        raise EncoderError(
            f"a picture of {width} × {height} pixels is too narrow; give one whose long side is at "
            f"most {NARROWEST} times the short side"
        )
    rows, columns = round(height / factor), round(width / factor)
    if rows * columns * factor**2 > limits.most:
        shrink = math.sqrt(height * width / limits.most)
        rows = max(1, math.floor(height / shrink / factor))
        columns = max(1, math.floor(width / shrink / factor))
    elif rows * columns * factor**2 < limits.least:
        grow = math.sqrt(limits.least / (height * width))
        rows, columns = math.ceil(height * grow / factor), math.ceil(width * grow / factor)
    return rows * factor, columns * factor


def frame_limits(frames: int, each: PixelLimits, together: int) -> PixelLimits:
    """The limits of one of so many frames that share a budget of pixels.

    Its least is kept whatever the budget, so that very many frames take more.
    """
    share = together / frames * FRAMES_SEEN_TOGETHER
    return PixelLimits(each.least, int(max(min(each.most, share), each.least * 1.05)))


def chosen_frames(video: Video, choice: FrameChoice) -> np.ndarray:
    """Places of the frames that are looked at, spread evenly from the first to the last."""
    total = len(video.frames)
    wanted = total / video.frames_per_second * choice.per_second + ROUNDING
    count = int(min(max(wanted, FEWEST_FRAMES), choice.most, total))
    places: np.ndarray = np.linspace(0, total - 1, count).round().astype(np.int64)
    return places


def times_of(places: np.ndarray, frames_per_second: float, together: int) -> list[float]:
    """Seconds at which frames seen together stand: the middle between the first and the last."""
    whole = np.concatenate((places, places[-1:].repeat(-len(places) % together)))
    seconds = whole.reshape(-1, together) / frames_per_second
    middles: list[float] = ((seconds[:, 0] + seconds[:, -1]) / 2).tolist()
    return middles


def resized(frames: FrameArray, height: int, width: int) -> ResizedFrames:
    """The frames in another size, by bicubic interpolation that looks at every pixel."""
    if frames.shape[1:3] == (height, width):
        return frames
    planes = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2)
    smooth = interpolate(planes, (height, width), mode="bicubic", antialias=True)
    return smooth.permute(0, 2, 3, 1).contiguous().numpy()


def cut_into_patches(frames: NormalizedFrames, geometry: Any) -> PatchArray:  # noqa: ANN401
    """Patches of all frames: what one token stands for together, then across, down and over time.

    The numbers of a patch are sorted by colour, frame, row and column.
    """
    side, merge, depth = geometry.patch_size, geometry.merge_size, geometry.temporal_patch_size
    times, height, width, colours = frames.shape
    down, across = ((length // (merge * side), merge, side) for length in (height, width))
    blocks = frames.reshape(times // depth, depth, *down, *across, colours)
    ordered = blocks.transpose(0, 2, 5, 3, 6, 8, 1, 4, 7)
    return ordered.reshape(-1, colours * depth * side**2)


def plain_text(text: str, markers: Sequence[str]) -> str:
    """The text with a blank in whatever a tokenizer would take for a marker of its own."""
    for marker in markers:
        text = text.replace(marker, f"{marker[:1]} {marker[1:]}")
    return text


def kinds_of(tokens: Sequence[int], image_token: int, video_token: int) -> list[Kind]:
    """What every token stands for."""
    pictures = {image_token: Kind.IMAGE, video_token: Kind.VIDEO}
    return [pictures.get(token, Kind.TEXT) for token in tokens]


def cut_before(tokens: list[int], closing: Sequence[int], most: int) -> list[int]:
    """At most so many tokens: what is cut stands before the closing ones, which stay."""
    if len(tokens) <= most:
        return tokens
    return tokens[: max(0, most - len(closing))] + tokens[len(tokens) - len(closing) :]


def token_batch(items: Sequence[Composed], filling: int) -> TokenBatch:
    """Items of one modality as one forward pass takes them."""
    tokens, kinds, mask = (
        [torch.tensor(item.tokens) for item in items],
        [torch.tensor(item.kinds) for item in items],
        [torch.ones(len(item.tokens), dtype=torch.bool) for item in items],
    )
    return TokenBatch(
        pad_sequence(tokens, batch_first=True, padding_value=filling),
        pad_sequence(kinds, batch_first=True),
        pad_sequence(mask, batch_first=True),
        _all_patches(items),
    )


def _all_patches(items: Sequence[Composed]) -> Patches | None:
    """The patches of all items; None where items have none."""
    made = [torch.from_numpy(item.patches()) for item in items if item.patches is not None]
    grids = [item.grid for item in items if item.grid is not None]
    return Patches(torch.cat(made), torch.tensor(grids)) if made else None

"""A scene as a picture: backdrop, things, weather, and what no text mentions."""

from typing import NamedTuple

import numpy as np

from adaptiveembed.data.media import Image
from adaptiveembed.data.scenes.backdrop import LIGHTS, Canvas, backdrop, fall
from adaptiveembed.data.scenes.draws import Draws, Stream
from adaptiveembed.data.scenes.latent import COLUMNS, ROWS, Colour, Scene, Size, Thing
from adaptiveembed.data.scenes.settings import ScenesSettings
from adaptiveembed.data.scenes.silhouettes import painted, silhouette

COLOURS = {
    Colour.RED: (215, 35, 35),
    Colour.BLUE: (35, 70, 215),
    Colour.YELLOW: (250, 220, 30),
    Colour.PURPLE: (130, 45, 165),
    Colour.GREEN: (30, 165, 55),
    Colour.ORANGE: (250, 135, 20),
    Colour.WHITE: (250, 250, 250),
    Colour.PINK: (250, 145, 195),
    Colour.BROWN: (115, 70, 30),
    Colour.TURQUOISE: (40, 205, 200),
    Colour.BLACK: (22, 22, 24),
    Colour.GREY: (140, 140, 145),
}
_COLOURS = np.array([COLOURS[colour] for colour in Colour], dtype=np.float32)
_SECOND_COLOURS = np.where(
    _COLOURS.mean(axis=1, keepdims=True) > 150, _COLOURS * 0.45, _COLOURS * 0.45 + 140
)
"""What patterns are painted in: darker on light things, lighter on dark ones."""

SIZES = {Size.SMALL: 0.16, Size.MEDIUM: 0.22, Size.LARGE: 0.3}
"""Width and height of a thing, as a share of the picture."""
CROWDING = {1: 1.0, 2: 0.84, 3: 0.72}
"""How much smaller the copies of a thing are, the more there are."""
SHIFTS = {1: ((0.0, 0.0),), 2: ((-0.45, 0.0), (0.45, 0.0)), 3: ((-0.5, 0.3), (0.5, 0.3), (0, -0.4))}
"""Where the copies stand, in widths of one."""


class Pose(NamedTuple):
    """Where a thing is drawn, how wide, how far turned, and whether at all.

    Sizes and places are shares of the picture.
    """

    x: float
    y: float
    width: float
    turn: int = 0
    shown: bool = True


def image(scene: Scene, settings: ScenesSettings) -> Image:
    """The scene as a picture."""
    draws = Draws(scene.seed, Stream.IMAGE, scene.number)
    canvas = stage(scene, settings.image_size, settings, draws)
    for thing in reversed(scene.things):
        draw_thing(canvas, thing, pose(thing, settings, draws), scene)
    fall(canvas, scene.setting.weather, draws.below(1000))
    light = 1 + draws.within(settings.light_jitter)
    return Image(exposed(canvas, light, settings.pixel_noise, draws))


def stage(scene: Scene, size: int, settings: ScenesSettings, draws: Draws) -> Canvas:
    """The backdrop with its clutter."""
    canvas = backdrop(scene.setting, size, draws)
    for _ in range(draws.below(settings.most_clutter + 1)):
        row, column = draws.below(size - 3), draws.below(size - 3)
        canvas[row : row + 2, column : column + 3] = 60 + 140 * draws.fraction()
    return canvas


def pose(thing: Thing, settings: ScenesSettings, draws: Draws) -> Pose:
    """Where and how large a thing is drawn, a little off its place and size."""
    row, column = divmod(thing.place, COLUMNS)
    return Pose(
        x=(column + 0.5) / COLUMNS + draws.within(settings.place_jitter),
        y=(row + 0.55) / (ROWS + 0.1) + draws.within(settings.place_jitter),
        width=SIZES[thing.size] * (1 + draws.within(settings.size_jitter)),
    )


def draw_thing(canvas: Canvas, thing: Thing, pose: Pose, scene: Scene) -> None:
    """Draw all copies of a thing; what lies outside the canvas is cut."""
    if not pose.shown:
        return
    width = pose.width * CROWDING[thing.copies]
    pixels = max(5, round(width * len(canvas)))
    cover = silhouette(thing.kind, pixels, pose.turn)
    # things keep more of their own colour than the ground does, or nobody could tell it at night
    shade = 0.45 + 0.55 * LIGHTS[scene.setting.daytime].shade
    pattern = painted(thing.texture, pixels)
    colour, second = _COLOURS[thing.colour], _SECOND_COLOURS[thing.colour]
    colours = (colour + pattern * (second - colour)) * shade
    for right, down in SHIFTS[thing.copies]:
        _stamp(canvas, colours, cover, pose.x + right * width, pose.y + down * width)


def _stamp(canvas: Canvas, colours: Canvas, cover: np.ndarray, x: float, y: float) -> None:
    size, pixels = len(canvas), len(cover)
    top, left = round(y * size - pixels / 2), round(x * size - pixels / 2)
    rows = slice(max(0, -top), min(pixels, size - top))
    columns = slice(max(0, -left), min(pixels, size - left))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return
    below = canvas[top + rows.start : top + rows.stop, left + columns.start : left + columns.stop]
    below += cover[rows, columns] * (colours[rows, columns] - below)


def exposed(canvas: Canvas, light: float, noise: float, draws: Draws) -> np.ndarray:
    """The canvas as a camera takes it: lighter or darker, with errors, in whole numbers."""
    shot = draws.noise(*canvas.shape)
    shot *= np.float32(noise)
    shot += canvas * np.float32(light)
    np.clip(shot, 0, 255, out=shot)
    return shot.astype(np.uint8)

"""The setting of a scene as it is seen: sky, skyline, ground and weather."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.data.scenes.draws import Draws, Stream
from adaptiveembed.data.scenes.latent import Daytime, Ground, Setting, Skyline, Weather

Canvas: TypeAlias = NDArray[np.float32]
"""Red, green and blue, float32, about 0 to 255 [height, width, 3]."""


Rgb: TypeAlias = NDArray[np.float32]


def _rgb(*values: int | float) -> Rgb:
    return np.array(values, dtype=np.float32)


class Light(NamedTuple):
    """What the hour does to colours."""

    above: Rgb
    """The sky at the top."""
    below: Rgb
    """The sky at the horizon."""
    shade: Rgb
    """What everything on the ground is multiplied with."""


LIGHTS = {
    Daytime.DAWN: Light(_rgb(150, 170, 215), _rgb(255, 205, 180), _rgb(0.95, 0.82, 0.80)),
    Daytime.DAY: Light(_rgb(90, 160, 235), _rgb(190, 225, 250), _rgb(1.0, 1.0, 1.0)),
    Daytime.DUSK: Light(_rgb(80, 50, 110), _rgb(250, 130, 60), _rgb(0.85, 0.60, 0.50)),
    Daytime.NIGHT: Light(_rgb(8, 10, 35), _rgb(30, 40, 80), _rgb(0.35, 0.40, 0.58)),
}

GROUND_COLOURS = {
    Ground.GRASS: (_rgb(80, 150, 60), _rgb(50, 110, 40)),
    Ground.SAND: (_rgb(225, 200, 140), _rgb(200, 170, 110)),
    Ground.WATER: (_rgb(50, 110, 180), _rgb(110, 170, 220)),
    Ground.SNOWFIELD: (_rgb(240, 244, 250), _rgb(215, 225, 240)),
    Ground.ROAD: (_rgb(95, 95, 100), _rgb(225, 215, 130)),
    Ground.TILES: (_rgb(205, 190, 185), _rgb(150, 90, 80)),
    Ground.PLANKS: (_rgb(165, 115, 65), _rgb(110, 70, 35)),
    Ground.ROCK: (_rgb(135, 125, 115), _rgb(90, 82, 78)),
}

SKYLINE_COLOURS = {
    Skyline.OPEN: _rgb(0, 0, 0),
    Skyline.MOUNTAINS: _rgb(115, 120, 150),
    Skyline.HILLS: _rgb(95, 140, 85),
    Skyline.HOUSES: _rgb(175, 95, 75),
    Skyline.TOWERS: _rgb(120, 130, 140),
    Skyline.FOREST: _rgb(40, 85, 50),
    Skyline.BRIDGE: _rgb(150, 65, 50),
    Skyline.CLIFF: _rgb(150, 130, 105),
}

HORIZON = 0.42
"""Where the ground begins, as a share of the height."""
WIDTH = 256
"""Columns of a skyline; it is shown from a random one on, twice around."""


def backdrop(setting: Setting, size: int, draws: Draws) -> Canvas:
    """The setting without its weather's rain or snow [size, size, 3]."""
    light = LIGHTS[setting.daytime]
    horizon = round(size * (HORIZON + draws.within(0.03)))
    canvas = np.empty((size, size, 3), dtype=np.float32)
    canvas[:] = _sky(setting, horizon, size)
    _draw_lights_of_the_sky(canvas, setting, draws)
    _draw_skyline(canvas, setting.skyline, horizon, light, draws)
    canvas[horizon:] = _ground(setting.ground, size - horizon, size, draws) * light.shade
    return _in_weather(canvas, setting.weather)


def _sky(setting: Setting, horizon: int, size: int) -> Canvas:
    light = LIGHTS[setting.daytime]
    height = np.minimum(np.arange(size, dtype=np.float32) / horizon, 1)[:, None, None]
    sky = light.above + (light.below - light.above) * height
    grey = sky.mean(axis=-1, keepdims=True)
    covered: Canvas = (
        sky + (grey * CLOUD_LIGHT[setting.weather] - sky) * CLOUD_COVER[setting.weather]
    )
    return covered


CLOUD_COVER = {
    Weather.CLEAR: 0.0,
    Weather.CLOUDS: 0.25,
    Weather.RAIN: 0.75,
    Weather.SNOW: 0.6,
    Weather.FOG: 0.8,
    Weather.STORM: 0.9,
}
CLOUD_LIGHT = {
    Weather.CLEAR: 1.0,
    Weather.CLOUDS: 1.05,
    Weather.RAIN: 0.75,
    Weather.SNOW: 1.1,
    Weather.FOG: 1.1,
    Weather.STORM: 0.4,
}


def _draw_lights_of_the_sky(canvas: Canvas, setting: Setting, draws: Draws) -> None:
    """Stars at night, a sun or moon if clear, clouds if cloudy, lightning in a storm."""
    size = len(canvas)
    if setting.daytime is Daytime.NIGHT and setting.weather in {Weather.CLEAR, Weather.CLOUDS}:
        rows = (draws.fractions(24) * size * HORIZON).astype(np.int64)
        canvas[rows, (draws.fractions(24) * size).astype(np.int64)] = 230
    if setting.weather is Weather.CLEAR:
        _draw_disc(canvas, setting.daytime, draws)
    elif setting.weather is Weather.CLOUDS:
        _blend_texture(canvas, _clouds(size), draws, LIGHTS[setting.daytime])
    elif setting.weather is Weather.STORM:
        _draw_lightning(canvas, draws)


DISC_COLOURS = {
    Daytime.DAWN: _rgb(255, 235, 190),
    Daytime.DAY: _rgb(255, 240, 120),
    Daytime.DUSK: _rgb(255, 100, 50),
    Daytime.NIGHT: _rgb(225, 225, 215),
}


def _draw_disc(canvas: Canvas, daytime: Daytime, draws: Draws) -> None:
    size = len(canvas)
    x, y = (0.15 + 0.7 * draws.fraction()) * size, (0.1 + 0.1 * draws.fraction()) * size
    axis = np.arange(size, dtype=np.float32)
    inside = (axis - x) ** 2 + ((axis - y) ** 2)[:, None] < (0.07 * size) ** 2
    canvas[inside] = DISC_COLOURS[daytime]


def _draw_lightning(canvas: Canvas, draws: Draws) -> None:
    size = len(canvas)
    rows = np.arange(round(size * HORIZON))
    steps = np.where(draws.fractions(len(rows)) < 0.5, -1, 1)
    columns = np.clip(draws.below(size) + np.cumsum(steps), 0, size - 2)
    canvas[rows, columns] = canvas[rows, columns + 1] = 250


def _blend_texture(canvas: Canvas, clouds: np.ndarray, draws: Draws, light: Light) -> None:
    rows, shift = len(clouds), draws.below(clouds.shape[1])
    cover = np.roll(clouds, shift, axis=1)[:, : canvas.shape[1], None]
    canvas[:rows] += cover * (255 * np.sqrt(light.shade) - canvas[:rows])


@cache
def _clouds(size: int) -> np.ndarray:
    """How thick clouds are above the horizon [rows, 2 size]."""
    draws = Draws(0, Stream.TEXTURES, 100)
    rows, columns = round(size * HORIZON), 2 * size
    thick = np.zeros((rows, columns), dtype=np.float32)
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    for _ in range(14):
        middle, width = draws.fraction() * columns, (0.08 + 0.1 * draws.fraction()) * size
        away = (x - middle + columns / 2) % columns - columns / 2
        above = y - draws.fraction() * rows
        thick = np.maximum(thick, 1.2 - (away / width) ** 2 - (above / (0.4 * width)) ** 2)
    return np.clip(thick, 0, 0.85)


def _draw_skyline(
    canvas: Canvas, skyline: Skyline, horizon: int, light: Light, draws: Draws
) -> None:
    if skyline is Skyline.OPEN:
        return
    size = canvas.shape[1]
    shown = (draws.below(WIDTH) + np.arange(size) * (WIDTH // 2) // size) % WIDTH
    height = _height_of_skyline(skyline)[shown] * (0.30 * size)
    gap = _gap_of_skyline(skyline)[shown] * (0.30 * size)
    above = horizon - np.arange(horizon, dtype=np.float32)[:, None]
    inside = (above <= height) & (above > gap)
    canvas[:horizon][inside] = SKYLINE_COLOURS[skyline] * light.shade


Columns: TypeAlias = NDArray[np.float32]
"""A number for each column of a skyline [WIDTH]."""


@cache
def _height_of_skyline(skyline: Skyline) -> Columns:
    """How high the skyline is in each column, from 0 to 1."""
    grain = Draws(0, Stream.TEXTURES, 200 + skyline).fractions(64)
    return _HEIGHTS[skyline](np.arange(WIDTH, dtype=np.float32), grain).astype(np.float32)


def _mountains(x: Columns, grain: Columns) -> Columns:
    height = np.full_like(x, 0.1)
    for middle, width, top in ((32, 60, 1.0), (96, 50, 0.7), (150, 60, 0.95), (220, 56, 0.75)):
        away = np.abs((x - middle + WIDTH / 2) % WIDTH - WIDTH / 2)
        height = np.maximum(height, top * (1 - away / width))
    return height


def _hills(x: Columns, grain: Columns) -> Columns:
    turns = x * np.float32(2 * np.pi / 128)
    height: Columns = 0.32 + 0.16 * np.sin(2 * turns) + 0.1 * np.sin(turns + 1)
    return height


def _houses(x: Columns, grain: Columns) -> Columns:
    roofs: Columns = np.maximum(0, 1 - np.abs(x % 32 - 14) / 14) * (x % 32 < 28).astype(np.float32)
    height: Columns = 0.28 + 0.24 * roofs
    return height


def _towers(x: Columns, grain: Columns) -> Columns:
    return np.where(x % 16 < 12, np.repeat(0.35 + 0.65 * grain[:16], 16), np.float32(0.12))


def _forest(x: Columns, grain: Columns) -> Columns:
    return 0.3 + 0.3 * np.abs(x % 12 - 6) / 6 + 0.06 * np.repeat(grain, 4)


def _bridge(x: Columns, grain: Columns) -> Columns:
    return np.where(x % 64 < 8, np.float32(0.85), 0.5 + 0.3 * (np.abs(x % 64 - 36) / 28) ** 2)


def _cliff(x: Columns, grain: Columns) -> Columns:
    height: Columns = np.where(x < 150, np.float32(0.95), np.float32(0.15)) + 0.05 * np.repeat(
        grain, 4
    )
    return height


_HEIGHTS: dict[Skyline, Callable[[Columns, Columns], Columns]] = {
    Skyline.MOUNTAINS: _mountains,
    Skyline.HILLS: _hills,
    Skyline.HOUSES: _houses,
    Skyline.TOWERS: _towers,
    Skyline.FOREST: _forest,
    Skyline.BRIDGE: _bridge,
    Skyline.CLIFF: _cliff,
}


@cache
def _gap_of_skyline(skyline: Skyline) -> Columns:
    """How far light is seen below the skyline in each column, from 0 to 1."""
    gap = np.zeros(WIDTH, dtype=np.float32)
    if skyline is Skyline.BRIDGE:
        gap[np.arange(WIDTH) % 64 >= 8] = 0.36
    return gap


def _ground(ground: Ground, height: int, width: int, draws: Draws) -> Canvas:
    texture = _texture_of_ground(ground, width)
    row, column = draws.below(width), draws.below(width)
    rows = (row + np.arange(height)) % width
    columns = (column + np.arange(width)) % width
    return texture[rows[:, None], columns]


@cache
def _texture_of_ground(ground: Ground, size: int) -> Canvas:
    """A piece of ground that repeats in both directions [size, size, 3]."""
    draws = Draws(0, Stream.TEXTURES, 300 + ground)
    main, second = GROUND_COLOURS[ground]
    y, x = np.mgrid[:size, :size].astype(np.float32) / size
    grain = draws.fractions(size, size)
    amounts = {
        Ground.GRASS: (np.repeat(grain[::4], 4, axis=0)[:size] < 0.4) * 0.9,
        Ground.SAND: (grain < 0.2) * 1.0,
        Ground.WATER: (np.sin(2 * np.pi * (8 * y + 0.25 * np.sin(2 * np.pi * 2 * x))) > 0.6) * 0.8,
        Ground.SNOWFIELD: (np.sin(2 * np.pi * (2 * y + x)) > 0.7) * 0.7,
        Ground.ROAD: ((np.abs(y % 0.5 - 0.25) < 0.03) & (x % 0.25 < 0.15)) * 1.0,
        Ground.TILES: ((np.floor(x * 8) + np.floor(y * 8)) % 2) * 1.0,
        Ground.PLANKS: ((x * 8) % 1 < 0.16) * 1.0,
        Ground.ROCK: _blotches(draws, size),
    }
    texture: Canvas = main + (second - main) * amounts[ground].astype(np.float32)[:, :, None]
    return texture


def _blotches(draws: Draws, size: int) -> np.ndarray:
    step = size // 8
    coarse = np.kron(draws.fractions(8, 8), np.ones((step, step), dtype=np.float32))
    coarse = np.pad(coarse, (0, size - 8 * step), mode="wrap")
    return 0.6 * (coarse > 0.5) + 0.4 * draws.fractions(size, size)


WHITENESS = {Weather.FOG: 0.55, Weather.SNOW: 0.12, Weather.RAIN: 0.15, Weather.STORM: 0.0}
DARKNESS = {Weather.STORM: 0.6, Weather.RAIN: 0.85}


def _in_weather(canvas: Canvas, weather: Weather) -> Canvas:
    """The canvas as far as one can see in this weather."""
    canvas *= DARKNESS.get(weather, 1.0)
    white = WHITENESS.get(weather, 0.0)
    if white:
        canvas += white * (0.4 * canvas.mean() + 100 - canvas)
    return canvas


FALL = {Weather.RAIN: 0.11, Weather.STORM: 0.14, Weather.SNOW: 0.045}
"""How far rain and snow fall from one frame to the next, as a share of the height."""


def fall(canvas: Canvas, weather: Weather, start: int, frame: int = 0) -> None:
    """Draw rain or snow over the canvas, as it has fallen by this frame."""
    if weather not in FALL:
        return
    size = len(canvas)
    drops = _drops(weather, size)
    moved = round(frame * FALL[weather] * size)
    rows = (np.arange(size) + start - moved) % size
    columns = (np.arange(size) + start // 7 + moved // 4) % size
    cover = drops[rows[:, None], columns][:, :, None]
    canvas += cover * ((245 if weather is Weather.SNOW else 190) - canvas)


@cache
def _drops(weather: Weather, size: int) -> np.ndarray:
    """How much rain or snow covers each pixel; repeats in both directions [size, size]."""
    draws = Draws(0, Stream.TEXTURES, 400 + weather)
    cover = np.zeros((size, size), dtype=np.float32)
    snow = weather is Weather.SNOW
    number = {Weather.SNOW: 60, Weather.RAIN: 45, Weather.STORM: 60}[weather]
    for _ in range(number):
        row, column = draws.below(size), draws.below(size)
        for step in range(2 if snow else max(4, size // 10)):
            place = (row + step) % size, (column + (step if snow else -step // 3)) % size
            cover[place] = 0.9 if snow else 0.55
    return cover

"""The outlines of things, and what is painted on them."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.data.scenes.latent import Kind, Texture

GRID = 96
"""Outlines are drawn this fine, then averaged to the size at which they are shown."""

Outline: TypeAlias = NDArray[np.bool_]
"""Which points of the grid lie inside [GRID, GRID]."""

Number: TypeAlias = int | float
"""A coordinate: -1 is the left or upper edge, 1 the right or lower one."""

_AXIS = (np.arange(GRID) + 0.5) / GRID * 2 - 1
_X, _Y = np.meshgrid(_AXIS, _AXIS)


def _ellipse(x: Number, y: Number, width: Number, height: Number) -> Outline:
    inside: Outline = ((_X - x) / width) ** 2 + ((_Y - y) / height) ** 2 <= 1
    return inside


def _bar(left: Number, top: Number, right: Number, bottom: Number) -> Outline:
    inside: Outline = (left <= _X) & (right >= _X) & (top <= _Y) & (bottom >= _Y)
    return inside


def _below(top: Number) -> Outline:
    return _bar(-1, top, 1, 1)


def _polygon(*corners: tuple[Number, Number]) -> Outline:
    """The points from which a ray to the right crosses an odd number of sides."""
    inside = np.zeros((GRID, GRID), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corners, (*corners[1:], corners[0]), strict=True):
        if y0 != y1:
            crosses = (y0 > _Y) != (y1 > _Y)
            inside ^= crosses & (x0 + (_Y - y0) * (x1 - x0) / (y1 - y0) > _X)
    return inside


def _ball() -> Outline:
    return _ellipse(0, 0, 0.92, 0.92)


def _bell() -> Outline:
    left = [(-0.2, -0.8), (-0.45, -0.3), (-0.55, 0.35), (-0.95, 0.62)]
    right = [(-x, y) for x, y in reversed(left)]
    return _polygon(*left, *right) | _ellipse(0, 0.75, 0.22, 0.22) | _ellipse(0, -0.85, 0.14, 0.13)


def _bird() -> Outline:
    body = _ellipse(0, 0.2, 0.6, 0.36) | _ellipse(0.5, -0.22, 0.28, 0.26)
    beak = _polygon((0.7, -0.35), (1, -0.15), (0.7, -0.08))
    tail = _polygon((-0.45, 0.1), (-1, -0.2), (-0.9, 0.4))
    legs = _bar(-0.12, 0.4, -0.02, 0.95) | _bar(0.12, 0.4, 0.22, 0.95)
    return body | beak | tail | legs


def _boat() -> Outline:
    hull = _polygon((-0.98, 0.35), (0.98, 0.35), (0.6, 0.85), (-0.6, 0.85))
    sails = _polygon((0.1, -0.9), (0.1, 0.2), (0.85, 0.2)) | _polygon(
        (-0.12, -0.6), (-0.12, 0.2), (-0.65, 0.2)
    )
    return hull | sails | _bar(-0.06, -0.95, 0.04, 0.35)


def _bottle() -> Outline:
    shoulders = _polygon((-0.15, -0.5), (0.15, -0.5), (0.42, -0.1), (-0.42, -0.1))
    return _bar(-0.15, -0.95, 0.15, -0.4) | shoulders | _bar(-0.42, -0.12, 0.42, 0.95)


def _car() -> Outline:
    body = _bar(-0.98, 0, 0.98, 0.45) | _polygon((-0.65, 0), (-0.4, -0.55), (0.35, -0.55), (0.7, 0))
    window = _polygon((-0.42, -0.05), (-0.28, -0.4), (-0.05, -0.4), (-0.05, -0.05)) | _polygon(
        (0.1, -0.05), (0.1, -0.4), (0.25, -0.4), (0.45, -0.05)
    )
    return (body & ~window) | _ellipse(-0.5, 0.5, 0.27, 0.27) | _ellipse(0.5, 0.5, 0.27, 0.27)


def _cat() -> Outline:
    ear = [(0.68, 0.05), (0.68, -0.9), (0.05, -0.4)]
    ears = _polygon(*ear) | _polygon(*((-x, y) for x, y in ear))
    eyes = _ellipse(-0.28, 0.02, 0.13, 0.1) | _ellipse(0.28, 0.02, 0.13, 0.1)
    nose = _polygon((-0.1, 0.25), (0.1, 0.25), (0, 0.42))
    return (_ellipse(0, 0.15, 0.75, 0.65) | ears) & ~eyes & ~nose


def _clock() -> Outline:
    hands = _bar(-0.09, -0.68, 0.09, 0.09) | _bar(-0.09, -0.09, 0.55, 0.09)
    feet = _polygon((-0.6, 0.5), (-0.8, 0.98), (-0.3, 0.8)) | _polygon(
        (0.6, 0.5), (0.8, 0.98), (0.3, 0.8)
    )
    return (_ellipse(0, -0.05, 0.88, 0.88) & ~hands) | feet


def _drum() -> Outline:
    body = _bar(-0.8, -0.15, 0.8, 0.65) | _ellipse(0, 0.65, 0.8, 0.28)
    rim = _ellipse(0, -0.15, 0.8, 0.28) & ~_ellipse(0, -0.15, 0.62, 0.16)
    inside = _ellipse(0, -0.15, 0.8, 0.28)
    sticks = _polygon((-0.95, -0.95), (-0.8, -0.98), (-0.05, -0.2), (-0.2, -0.15)) | _polygon(
        (0.95, -0.95), (0.8, -0.98), (0.05, -0.2), (0.2, -0.15)
    )
    return (body & ~inside) | rim | sticks


def _fish() -> Outline:
    tail = _polygon((-0.4, 0), (-1, -0.55), (-0.8, 0), (-1, 0.55))
    return (_ellipse(0.2, 0, 0.78, 0.48) | tail) & ~_ellipse(0.62, -0.12, 0.11, 0.11)


def _flag() -> Outline:
    cloth = _polygon((-0.72, -0.92), (0.95, -0.75), (0.6, -0.35), (0.95, 0.1), (-0.72, 0.15))
    return _bar(-0.9, -0.98, -0.72, 0.98) | cloth


def _lamp() -> Outline:
    shade = _polygon((-0.35, -0.92), (0.35, -0.92), (0.8, -0.1), (-0.8, -0.1))
    return shade | _bar(-0.09, -0.1, 0.09, 0.75) | _bar(-0.5, 0.72, 0.5, 0.95)


def _tree() -> Outline:
    crown = (
        _ellipse(0, -0.5, 0.5, 0.46)
        | _ellipse(-0.42, -0.1, 0.48, 0.4)
        | _ellipse(0.42, -0.1, 0.48, 0.4)
    )
    return crown | _bar(-0.14, 0.1, 0.14, 0.98)


def _house() -> Outline:
    front = _bar(-0.72, -0.1, 0.72, 0.92) | _polygon((-0.98, -0.08), (0, -0.92), (0.98, -0.08))
    door = _bar(-0.5, 0.3, -0.12, 0.92)
    return front & ~door & ~_bar(0.15, 0.15, 0.5, 0.5)


def _cup() -> Outline:
    handle = _ellipse(0.45, 0.05, 0.48, 0.42) & ~_ellipse(0.45, 0.05, 0.26, 0.22)
    return handle | _polygon((-0.85, -0.6), (0.45, -0.6), (0.3, 0.75), (-0.7, 0.75))


def _key() -> Outline:
    ring = _ellipse(-0.55, 0, 0.44, 0.44) & ~_ellipse(-0.55, 0, 0.2, 0.2)
    return ring | _bar(-0.15, -0.11, 0.97, 0.11) | _bar(0.5, 0, 0.66, 0.5) | _bar(0.8, 0, 0.96, 0.4)


def _balloon() -> Outline:
    string: Outline = (np.abs(_X - 0.1 * np.sin(_Y * 8)) < 0.05) & _below(0.4)
    knot = _polygon((-0.15, 0.52), (0.15, 0.52), (0, 0.3))
    return _ellipse(0, -0.28, 0.58, 0.7) | knot | string


def _rocket() -> Outline:
    body = _polygon((0, -0.98), (0.28, -0.55), (0.28, 0.5), (-0.28, 0.5), (-0.28, -0.55))
    fin = [(0.28, 0), (0.75, 0.65), (0.28, 0.5)]
    fins = _polygon(*fin) | _polygon(*((-x, y) for x, y in fin))
    flame = _polygon((-0.2, 0.55), (0.2, 0.55), (0, 0.98))
    return (body & ~_ellipse(0, -0.3, 0.14, 0.14)) | fins | flame


def _snake() -> Outline:
    bends = 0.42 * np.sin(_X * 4.6)
    body: Outline = (np.abs(_Y - bends) < 0.19) & (np.abs(_X) < 0.88)
    return body | _ellipse(0.82, -0.25, 0.18, 0.2)


def _umbrella() -> Outline:
    scallops = (
        _ellipse(-0.64, 0, 0.32, 0.2) | _ellipse(0, 0, 0.32, 0.2) | _ellipse(0.64, 0, 0.32, 0.2)
    )
    hook = (_ellipse(0.17, 0.72, 0.24, 0.24) & ~_ellipse(0.17, 0.72, 0.1, 0.1)) & _below(0.7)
    canopy = _ellipse(0, 0, 0.96, 0.85) & ~_below(0) & ~scallops
    return canopy | _bar(-0.07, -0.97, 0.07, 0.75) | hook


def _guitar() -> Outline:
    body = _ellipse(0, 0.52, 0.58, 0.45) | _ellipse(0, 0, 0.42, 0.36)
    neck = _bar(-0.09, -0.85, 0.09, 0) | _bar(-0.2, -0.98, 0.2, -0.72)
    return (body & ~_ellipse(0, 0.32, 0.18, 0.18)) | neck


def _robot() -> Outline:
    head = _bar(-0.42, -0.8, 0.42, -0.22) & ~_bar(-0.27, -0.62, -0.07, -0.42)
    head &= ~_bar(0.07, -0.62, 0.27, -0.42)
    body = _bar(-0.55, -0.12, 0.55, 0.55) | _bar(-0.12, -0.3, 0.12, -0.1)
    legs = _bar(-0.45, 0.5, -0.13, 0.98) | _bar(0.13, 0.5, 0.45, 0.98)
    arms = _bar(-0.92, -0.08, -0.65, 0.4) | _bar(0.65, -0.08, 0.92, 0.4)
    return head | body | legs | arms | _bar(-0.05, -0.98, 0.05, -0.8)


def _hammer() -> Outline:
    claw = _polygon((-0.3, -0.85), (-0.98, -0.45), (-0.3, -0.5))
    return _bar(-0.35, -0.88, 0.75, -0.42) | claw | _bar(-0.13, -0.42, 0.13, 0.97)


def _bee() -> Outline:
    wings = _ellipse(-0.2, -0.42, 0.28, 0.42) | _ellipse(0.32, -0.42, 0.28, 0.42)
    stripes = _bar(-0.42, -1, -0.24, 1) | _bar(-0.02, -1, 0.16, 1)
    body = _ellipse(0, 0.28, 0.75, 0.42)
    return (body & ~stripes) | (wings & ~body) | _ellipse(0.75, 0.2, 0.24, 0.24)


OUTLINES: dict[Kind, Callable[[], Outline]] = {
    Kind.BALL: _ball,
    Kind.BELL: _bell,
    Kind.BIRD: _bird,
    Kind.BOAT: _boat,
    Kind.BOTTLE: _bottle,
    Kind.CAR: _car,
    Kind.CAT: _cat,
    Kind.CLOCK: _clock,
    Kind.DRUM: _drum,
    Kind.FISH: _fish,
    Kind.FLAG: _flag,
    Kind.LAMP: _lamp,
    Kind.TREE: _tree,
    Kind.HOUSE: _house,
    Kind.CUP: _cup,
    Kind.KEY: _key,
    Kind.BALLOON: _balloon,
    Kind.ROCKET: _rocket,
    Kind.SNAKE: _snake,
    Kind.UMBRELLA: _umbrella,
    Kind.GUITAR: _guitar,
    Kind.ROBOT: _robot,
    Kind.HAMMER: _hammer,
    Kind.BEE: _bee,
}

TURNS = 8
"""A turning thing is drawn at this many angles."""


@cache
def _outline(kind: Kind) -> Outline:
    return OUTLINES[kind]()


@lru_cache(maxsize=8192)
def silhouette(kind: Kind, size: int, turn: int = 0) -> np.ndarray:
    """How much of each pixel of a square of ``size`` a thing covers, from 0 to 1 [size, size, 1].

    ``turn`` is in steps of 360 / ``TURNS`` degrees.
    """
    angle = 2 * np.pi * turn / TURNS
    fine = max(1, GRID // size) * size
    axis = (np.arange(fine) + 0.5) / fine * 2 - 1
    x, y = np.meshgrid(axis, axis)
    columns = _grid_places(x * np.cos(angle) + y * np.sin(angle))
    rows = _grid_places(y * np.cos(angle) - x * np.sin(angle))
    points = _outline(kind)[rows, columns].astype(np.float32)
    per_pixel = fine // size
    covered: np.ndarray = points.reshape(size, per_pixel, size, per_pixel).mean(axis=(1, 3))
    return covered[:, :, None]


def _grid_places(coordinates: np.ndarray) -> NDArray[np.int64]:
    return np.clip(((coordinates + 1) / 2 * GRID).astype(np.int64), 0, GRID - 1)


@lru_cache(maxsize=1024)
def painted(texture: Texture, size: int) -> np.ndarray:
    """How much of each pixel is painted in the second colour, from 0 to 1 [size, size, 1]."""
    fine = 4 * size
    axis = (np.arange(fine) + 0.5) / fine
    x, y = np.meshgrid(axis, axis)
    points = _PATTERNS[texture](x, y).astype(np.float32)
    covered: np.ndarray = points.reshape(size, 4, size, 4).mean(axis=(1, 3))
    return covered[:, :, None]


Coordinates: TypeAlias = NDArray[np.float64]


def _plain(x: Coordinates, y: Coordinates) -> Outline:
    return np.zeros(x.shape, dtype=bool)


def _striped(x: Coordinates, y: Coordinates) -> Outline:
    return (y * 3.5) % 1 < 0.45


def _dotted(x: Coordinates, y: Coordinates) -> Outline:
    return ((x * 3.5) % 1 - 0.5) ** 2 + ((y * 3.5) % 1 - 0.5) ** 2 < 0.1


def _checked(x: Coordinates, y: Coordinates) -> Outline:
    painted: Outline = (np.floor(x * 4) + np.floor(y * 4)) % 2 == 0
    return painted


_PATTERNS: dict[Texture, Callable[[Coordinates, Coordinates], Outline]] = {
    Texture.PLAIN: _plain,
    Texture.STRIPED: _striped,
    Texture.DOTTED: _dotted,
    Texture.CHECKED: _checked,
}

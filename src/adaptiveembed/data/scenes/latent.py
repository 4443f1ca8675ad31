"""What a scene is before anyone sees, hears or describes it: facts, as small whole numbers.

Scene number i of a seed is computed from i and the seed alone. Items come in three kinds, in
random order, with the shares of the settings:

* *distinct* scenes stand in a rare setting: setting and main thing tell them apart;
* *fine* scenes stand in a common setting, and their things tell them apart;
* *twins* stand in crowds: the members of a crowd share the setting, the things and nearly all their
  details, and differ in one to three facts that can be seen (in crowds that have outgrown eight
  members, one more) and in a few that can be heard.

A collection that grows gets new crowds, and more members of the old ones: each time the number of
twins doubles, half of the new ones join crowds that there were. So in a corpus of any size crowds
have about eight members, the oldest several times as many, spread over all later numbers.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cache, lru_cache
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

from adaptiveembed.data.scenes.draws import Draws, Stream, permuted
from adaptiveembed.data.scenes.settings import LARGEST_CORPUS, ScenesSettings, check_seed
from adaptiveembed.errors import SettingError

Value = TypeVar("Value")
Fact: TypeAlias = Any
"""The value of a fact: a small whole number, or the order of a scene."""


class SceneKind(StrEnum):
    """How much it takes to tell a scene apart."""

    DISTINCT = "distinct"
    FINE = "fine"
    TWIN = "twin"


class Ground(IntEnum):
    """What everything stands on."""

    GRASS = 0
    SAND = 1
    WATER = 2
    SNOWFIELD = 3
    ROAD = 4
    TILES = 5
    PLANKS = 6
    ROCK = 7


class Skyline(IntEnum):
    """What stands far away."""

    OPEN = 0
    MOUNTAINS = 1
    HILLS = 2
    HOUSES = 3
    TOWERS = 4
    FOREST = 5
    BRIDGE = 6
    CLIFF = 7


class Weather(IntEnum):
    """What the sky does."""

    CLEAR = 0
    CLOUDS = 1
    RAIN = 2
    SNOW = 3
    FOG = 4
    STORM = 5


class Daytime(IntEnum):
    """When it is."""

    DAWN = 0
    DAY = 1
    DUSK = 2
    NIGHT = 3


class Kind(IntEnum):
    """What a thing is."""

    BALL = 0
    BELL = 1
    BIRD = 2
    BOAT = 3
    BOTTLE = 4
    CAR = 5
    CAT = 6
    CLOCK = 7
    DRUM = 8
    FISH = 9
    FLAG = 10
    LAMP = 11
    TREE = 12
    HOUSE = 13
    CUP = 14
    KEY = 15
    BALLOON = 16
    ROCKET = 17
    SNAKE = 18
    UMBRELLA = 19
    GUITAR = 20
    ROBOT = 21
    HAMMER = 22
    BEE = 23


class Colour(IntEnum):
    """The colour of a thing."""

    RED = 0
    BLUE = 1
    YELLOW = 2
    PURPLE = 3
    GREEN = 4
    ORANGE = 5
    WHITE = 6
    PINK = 7
    BROWN = 8
    TURQUOISE = 9
    BLACK = 10
    GREY = 11


class Texture(IntEnum):
    """What is painted on a thing."""

    PLAIN = 0
    STRIPED = 1
    DOTTED = 2
    CHECKED = 3


class Size(IntEnum):
    """How large a thing is."""

    SMALL = 0
    MEDIUM = 1
    LARGE = 2


class Action(IntEnum):
    """How a thing moves, which only a video shows."""

    REST = 0
    LEFT = 1
    RIGHT = 2
    BOUNCE = 3
    GROW = 4
    SHRINK = 5
    SPIN = 6
    BLINK = 7


class Pitch(IntEnum):
    """How high a thing sounds."""

    LOW = 0
    MIDDLE = 1
    HIGH = 2


class Contour(IntEnum):
    """How the sound of a thing goes."""

    STEADY = 0
    RISING = 1
    FALLING = 2
    TREMBLING = 3


ROWS, COLUMNS = 3, 4
PLACES = ROWS * COLUMNS
"""Places for things, row by row from the upper left."""
MOST = 3
"""Most copies of a thing, and most repetitions of its sound."""
FEWEST_THINGS, MOST_THINGS = 3, 5

KINDS, ACTIONS = tuple(Kind), tuple(Action)
LOOKS: dict[str, tuple[Fact, ...]] = {
    "colour": tuple(Colour),
    "place": tuple(range(PLACES)),
    "texture": tuple(Texture),
    "size": tuple(Size),
    "copies": tuple(range(1, MOST + 1)),
}
"""The facts that a picture shows of a thing, with their values."""
SOUNDS: dict[str, tuple[Fact, ...]] = {
    "pitch": tuple(Pitch),
    "repeats": tuple(range(1, MOST + 1)),
    "contour": tuple(Contour),
}
"""The facts that a sound tells of a thing, with their values."""


class Setting(NamedTuple):
    """The coarse facts that things stand in; seen as a backdrop, heard as a background."""

    ground: Ground
    skyline: Skyline
    weather: Weather
    daytime: Daytime


class Thing(NamedTuple):
    """One thing of a scene: what it is, how it looks, what it does, how it sounds."""

    kind: Kind
    colour: Colour
    texture: Texture
    size: Size
    copies: int  # 1 to MOST
    place: int  # 0 to PLACES - 1
    action: Action
    pitch: Pitch
    repeats: int  # 1 to MOST
    contour: Contour


@dataclass(frozen=True)
class Scene:
    """One scene. Two scenes are equal if all their facts are, whatever their numbers.

    The first thing is the main one; things are heard in ``order``.
    """

    setting: Setting
    things: tuple[Thing, ...]
    order: tuple[int, ...]
    number: int = field(compare=False)
    seed: int = field(compare=False)
    kind: SceneKind = field(compare=False)
    crowd: int | None = field(default=None, compare=False)

    @property
    def main(self) -> Thing:
        return self.things[0]


DEFAULTS = ScenesSettings()


def scenes(
    num: int, seed: int = 0, start: int = 0, settings: ScenesSettings = DEFAULTS
) -> Iterator[Scene]:
    """The ``num`` scenes from number ``start`` on."""
    return (scene(number, seed, settings) for number in range(start, start + num))


def scene(number: int, seed: int = 0, settings: ScenesSettings = DEFAULTS) -> Scene:
    """Scene ``number`` of a seed; no other scene has to be made for it."""
    check_seed(seed)
    if not 0 <= number < LARGEST_CORPUS:
        raise SettingError(
            f"scene {number} was asked for; scenes are numbered from 0 to {LARGEST_CORPUS - 1}"
        )
    twin = _twin_number(number, seed, settings.twin_share)
    if twin is not None:
        return _twin(number, seed, twin, settings)
    draws = Draws(seed, Stream.FACTS, number)
    others = settings.distinct_share / (1 - settings.twin_share)
    if draws.chance(others):
        return _alone(number, seed, SceneKind.DISTINCT, _rare_setting(draws, seed), draws)
    common = _common_setting(draws, seed, settings.popularity_exponent)
    return _alone(number, seed, SceneKind.FINE, common, draws)


def _alone(number: int, seed: int, kind: SceneKind, setting: Setting, draws: Draws) -> Scene:
    things = _things(draws)
    return Scene(setting, things, _order(draws, len(things)), number, seed, kind)


# Settings.

COMMON_SETTINGS = 48
"""Settings in which fine scenes and twins stand; all others are rare."""
NUM_SETTINGS = len(Ground) * len(Skyline) * len(Weather) * len(Daytime)


@cache
def _settings_by_popularity(seed: int) -> tuple[Setting, ...]:
    every = (
        Setting(ground, skyline, weather, daytime)
        for ground in Ground
        for skyline in Skyline
        for weather in Weather
        for daytime in Daytime
    )
    return tuple(Draws(seed, Stream.POPULARITY, 0).shuffled(tuple(every)))


@cache
def _popularity(exponent: float) -> tuple[float, ...]:
    """How likely a common setting of at most each rank is."""
    weights = [1 / rank**exponent for rank in range(1, COMMON_SETTINGS + 1)]
    total = sum(weights)
    return tuple(one / total for one in accumulate(weights))


def _common_setting(draws: Draws, seed: int, exponent: float) -> Setting:
    rank = bisect(_popularity(exponent), draws.fraction(), hi=COMMON_SETTINGS - 1)
    return _settings_by_popularity(seed)[rank]


def _rare_setting(draws: Draws, seed: int) -> Setting:
    rank = COMMON_SETTINGS + draws.below(NUM_SETTINGS - COMMON_SETTINGS)
    return _settings_by_popularity(seed)[rank]


# Things.


def _things(draws: Draws) -> tuple[Thing, ...]:
    """Things of different kinds at different places."""
    number = FEWEST_THINGS + draws.below(MOST_THINGS - FEWEST_THINGS + 1)
    kinds = _different(draws, KINDS, number)
    places = _different(draws, range(PLACES), number)
    return tuple(_thing(draws, *each) for each in zip(kinds, places, strict=True))


def _thing(draws: Draws, kind: Kind, place: int) -> Thing:
    return Thing(
        kind=kind,
        colour=draws.one_of(LOOKS["colour"]),
        texture=draws.one_of(LOOKS["texture"]),
        size=draws.one_of(LOOKS["size"]),
        copies=draws.one_of(LOOKS["copies"]),
        place=place,
        action=draws.one_of(ACTIONS),
        pitch=draws.one_of(SOUNDS["pitch"]),
        repeats=draws.one_of(SOUNDS["repeats"]),
        contour=draws.one_of(SOUNDS["contour"]),
    )


def _different(draws: Draws, values: Sequence[Value], number: int) -> list[Value]:
    """This many of the values, none twice."""
    left = list(values)
    return [left.pop(draws.below(len(left))) for _ in range(number)]


def _order(draws: Draws, number: int) -> tuple[int, ...]:
    return tuple(draws.shuffled(range(number)))


# Which items are twins, and of which crowd.

BLOCK_BITS = 10
"""Twins are spread evenly over blocks of 1,024 numbers, at random places within each."""


def _twin_number(number: int, seed: int, share: float) -> int | None:
    """How many twins come before this item, if it is one."""
    block, within = divmod(number, 1 << BLOCK_BITS)
    place = (block << BLOCK_BITS) + permuted(within, BLOCK_BITS, _order_key(seed, block))
    before = int(place * share)
    return before if int((place + 1) * share) > before else None


@lru_cache(maxsize=2048)
def _order_key(seed: int, number: int) -> int:
    return Draws(seed, Stream.ORDER, number).word()


class Member(NamedTuple):
    """Which member of which crowd a twin is."""

    crowd: int
    place: int


FIRST_CROWDS_BITS = 4
"""The first 128 twins stand in sixteen crowds; at each doubling there are twice as many."""
CROWD_BITS = 3
"""Each time the number of twins has doubled, the average crowd has eight members."""


def member(twin: int, seed: int) -> Member:
    """The crowd of a twin and its place there; no two twins have both in common."""
    first_bits = FIRST_CROWDS_BITS + CROWD_BITS
    doublings = (twin >> first_bits).bit_length()
    # the twins since the last doubling, and the crowds they are dealt to
    bits = first_bits + max(doublings - 1, 0)
    start = (1 << bits) if doublings else 0
    crowd_bits = FIRST_CROWDS_BITS + doublings
    key = _order_key(seed, LARGEST_CORPUS + doublings)
    dealt, crowd = divmod(permuted(twin - start, bits, key), 1 << crowd_bits)
    return Member(crowd, _members_before(crowd, doublings) + dealt)


def _members_before(crowd: int, doublings: int) -> int:
    """Members that the crowd had at the last doubling."""
    born = (crowd >> FIRST_CROWDS_BITS).bit_length()
    full, half = 1 << CROWD_BITS, 1 << (CROWD_BITS - 1)
    if doublings == born:
        return 0
    return full + half * (doublings - 1) if born == 0 else half * (doublings - born)


# What the members of a crowd share, and where they differ.


class Varied(NamedTuple):
    """A fact that differs within a crowd: which thing's, and the values that it takes.

    The fact ``"order"`` belongs to the scene, whatever ``thing`` is.
    """

    thing: int
    fact: str
    values: tuple[Fact, ...]


class Crowd(NamedTuple):
    """A scene that all members resemble, and the facts in which they differ."""

    setting: Setting
    things: tuple[Thing, ...]
    order: tuple[int, ...]
    seen: tuple[Varied, ...]
    heard: tuple[Varied, ...]
    moving: Varied


RADICES = ((8,), (3, 3), (2, 2, 2))
"""How many values each of the one, two or three facts takes in which a crowd differs to the eye:
eight members need them all."""


@cache
def _looks_with(radix: int) -> tuple[str, ...]:
    """The looks of which a thing can take this many values while the others keep their places."""
    free = {"place": PLACES - MOST_THINGS + 1}
    return tuple(fact for fact, values in LOOKS.items() if free.get(fact, len(values)) >= radix)


@lru_cache(maxsize=4096)
def crowd_of(number: int, seed: int, exponent: float) -> Crowd:
    """The crowd with this number."""
    draws = Draws(seed, Stream.CROWDS, number)
    setting = _common_setting(draws, seed, exponent)
    things = _things(draws)
    order = _order(draws, len(things))
    return Crowd(
        setting,
        things,
        order,
        _seen_differences(draws, things),
        _heard_differences(draws, things, order),
        Varied(draws.below(len(things)), "action", tuple(draws.shuffled(ACTIONS))[:3]),
    )


def _seen_differences(draws: Draws, things: tuple[Thing, ...]) -> tuple[Varied, ...]:
    """One to three facts that tell eight members apart, and a colour for those that come later."""
    radices = draws.one_of(RADICES)
    facts = _different(draws, _looks_with(radices[0]), len(radices))
    chosen = [draws.below(len(things)) for _ in facts]
    differences = [
        Varied(thing, fact, tuple(draws.shuffled(_values(things, thing, fact)))[:radix])
        for thing, fact, radix in zip(chosen, facts, radices, strict=True)
    ]
    coloured = {one.thing for one in differences if one.fact == "colour"}
    other = draws.one_of([thing for thing in range(len(things)) if thing not in coloured])
    return (*differences, Varied(other, "colour", tuple(draws.shuffled(LOOKS["colour"]))))


def _values(things: tuple[Thing, ...], thing: int, fact: str) -> tuple[Fact, ...]:
    """The values that a fact of one thing may take beside the other things."""
    taken = {other.place for place, other in enumerate(things) if place != thing}
    values = LOOKS[fact]
    return tuple(one for one in values if one not in taken) if fact == "place" else values


def _heard_differences(
    draws: Draws, things: tuple[Thing, ...], order: tuple[int, ...]
) -> tuple[Varied, ...]:
    """Facts of two things and the order, in the order in which growing crowds need them."""
    facts = [
        Varied(thing, fact, tuple(draws.shuffled(values)))
        for thing in _different(draws, range(len(things)), 2)
        for fact, values in SOUNDS.items()
    ]
    turned = (*order[1:], order[0])
    return tuple(draws.shuffled([*facts, Varied(0, "order", (order, turned))]))


def _twin(number: int, seed: int, twin: int, settings: ScenesSettings) -> Scene:
    number_of_crowd, place = member(twin, seed)
    crowd = crowd_of(number_of_crowd, seed, settings.popularity_exponent)
    things, order = list(crowd.things), crowd.order
    action = crowd.moving.values[place % len(crowd.moving.values)]
    changes = [*_values_at(crowd.seen, place), *_values_at(crowd.heard, place)]
    for varied, value in (*changes, (crowd.moving, action)):
        if varied.fact == "order":
            order = value
        else:
            things[varied.thing] = things[varied.thing]._replace(**{varied.fact: value})
    return Scene(crowd.setting, tuple(things), order, number, seed, SceneKind.TWIN, number_of_crowd)


def _values_at(differences: tuple[Varied, ...], place: int) -> Iterator[tuple[Varied, Fact]]:
    """The value of each fact at this place of a crowd: the digits of it, the first one fastest."""
    for varied in differences:
        place, digit = divmod(place, len(varied.values))
        yield varied, varied.values[digit]


def crowd_capacity(crowd: Crowd) -> int:
    """Most members that the crowd's facts tell apart."""
    return min(prod(len(one.values) for one in facts) for facts in (crowd.seen, crowd.heard))

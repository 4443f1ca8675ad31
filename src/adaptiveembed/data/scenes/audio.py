"""A scene as a sound: its things are heard one after the other over what the place sounds like."""

from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptiveembed.data.media import Audio
from adaptiveembed.data.scenes.draws import Draws, Stream
from adaptiveembed.data.scenes.latent import (
    MOST,
    MOST_THINGS,
    Contour,
    Daytime,
    Ground,
    Kind,
    Pitch,
    Scene,
    Setting,
    Skyline,
    Thing,
    Weather,
)
from adaptiveembed.data.scenes.settings import ScenesSettings

Samples: TypeAlias = NDArray[np.float32]
"""Sound, float32 [samples]."""


class Voice(NamedTuple):
    """How a thing sounds."""

    frequency: float
    """The pitch in the middle, in hertz."""
    partials: tuple[tuple[float, float], ...]
    """Multiples of the frequency, and how loud each is."""
    noise: float
    """Share that is noise around the frequency rather than tones."""
    attack: float
    """Seconds until it is loudest."""
    decay: float
    """Seconds in which it then falls to a third."""
    flutter: float = 0.0
    """How often a second it is interrupted."""


ONE = ((1.0, 1.0),)
SUSTAINED = 10.0

VOICES = {
    Kind.BALL: Voice(130, ONE, 0.3, 0.005, 0.06),
    Kind.BELL: Voice(700, ((1.0, 1.0), (2.76, 0.6), (5.4, 0.3)), 0.0, 0.003, 0.15),
    Kind.BIRD: Voice(1800, ONE, 0.0, 0.02, 0.12, flutter=18),
    Kind.BOAT: Voice(180, ((1.0, 1.0), (2.0, 0.7), (3.0, 0.5)), 0.0, 0.03, SUSTAINED),
    Kind.BOTTLE: Voice(1500, ((1.0, 1.0), (1.6, 0.7)), 0.0, 0.002, 0.03),
    Kind.CAR: Voice(95, ((1.0, 1.0), (2.0, 0.8), (3.0, 0.6), (4.0, 0.5)), 0.3, 0.05, SUSTAINED, 25),
    Kind.CAT: Voice(550, ((1.0, 1.0), (2.0, 0.8), (3.0, 0.4)), 0.0, 0.09, 0.15),
    Kind.CLOCK: Voice(1300, ONE, 0.6, 0.002, SUSTAINED, flutter=9),
    Kind.DRUM: Voice(90, ((1.0, 1.0), (1.6, 0.5)), 0.15, 0.003, 0.09),
    Kind.FISH: Voice(900, ONE, 1.0, 0.01, 0.07),
    Kind.FLAG: Voice(300, ONE, 1.0, 0.01, SUSTAINED, flutter=13),
    Kind.LAMP: Voice(120, ((2.0, 1.0), (4.0, 0.8), (6.0, 0.5)), 0.0, 0.02, SUSTAINED),
    Kind.TREE: Voice(1400, ONE, 1.0, 0.08, 0.2, flutter=5),
    Kind.HOUSE: Voice(240, ((1.0, 1.0), (1.5, 0.6), (2.2, 0.6)), 0.2, 0.08, 0.1, flutter=35),
    Kind.CUP: Voice(1050, ((1.0, 1.0), (1.9, 0.6), (2.7, 0.5)), 0.1, 0.002, 0.12, flutter=15),
    Kind.KEY: Voice(1900, ((1.0, 1.0), (1.17, 0.9)), 0.0, 0.002, 0.12, flutter=20),
    Kind.BALLOON: Voice(600, ONE, 0.9, 0.001, 0.015),
    Kind.ROCKET: Voice(500, ONE, 1.0, 0.16, 0.05),
    Kind.SNAKE: Voice(1900, ONE, 1.0, 0.03, SUSTAINED),
    Kind.UMBRELLA: Voice(1600, ONE, 0.9, 0.002, SUSTAINED, flutter=26),
    Kind.GUITAR: Voice(330, ((1.0, 1.0), (1.5, 0.8), (2.0, 0.7), (3.0, 0.3)), 0.0, 0.003, 0.14),
    Kind.ROBOT: Voice(1000, ((1.0, 1.0), (3.0, 0.33)), 0.0, 0.005, SUSTAINED),
    Kind.HAMMER: Voice(420, ((1.0, 1.0), (2.3, 0.5)), 0.3, 0.001, 0.025),
    Kind.BEE: Voice(
        210, ((1.0, 0.7), (2.0, 1.0), (3.0, 0.9), (5.0, 0.5)), 0.1, 0.04, SUSTAINED, 40
    ),
}

PITCHES = {Pitch.LOW: 0.6, Pitch.MIDDLE: 1.0, Pitch.HIGH: 1.65}
GLIDES = {
    Contour.STEADY: (1.0, 1.0),
    Contour.RISING: (0.75, 1.25),
    Contour.FALLING: (1.25, 0.75),
    Contour.TREMBLING: (1.0, 1.0),
}
"""From which to which multiple of its pitch a sound goes."""
TREMBLE = 14.0
"""How often a second a trembling sound goes up and down."""


class Ambience(NamedTuple):
    """A sound that goes on: noise around a frequency, in waves."""

    frequency: float
    width: float
    """How far the noise reaches from the frequency, as a share of it."""
    waves: float
    """How often a second it swells."""
    depth: float
    """How far it sinks between, from 0 to 1."""


SILENCE = None

GROUND_AMBIENCE = {
    Ground.GRASS: Ambience(1500, 0.25, 0.75, 0.6),
    Ground.SAND: Ambience(2900, 0.2, 0.5, 0.9),
    Ground.WATER: Ambience(500, 0.3, 1.5, 0.8),
    Ground.SNOWFIELD: Ambience(220, 0.3, 2.0, 0.9),
    Ground.ROAD: Ambience(110, 0.3, 0.25, 0.4),
    Ground.TILES: Ambience(750, 0.2, 5.0, 0.6),
    Ground.PLANKS: Ambience(350, 0.05, 1.0, 1.0),
    Ground.ROCK: Ambience(1900, 0.02, 1.25, 1.0),
}
SKYLINE_AMBIENCE = {
    Skyline.OPEN: SILENCE,
    Skyline.MOUNTAINS: Ambience(270, 0.15, 0.5, 0.8),
    Skyline.HILLS: Ambience(620, 0.03, 1.75, 1.0),
    Skyline.HOUSES: Ambience(430, 0.25, 4.0, 0.9),
    Skyline.TOWERS: Ambience(140, 0.03, 0.25, 0.2),
    Skyline.FOREST: Ambience(2500, 0.1, 6.0, 0.9),
    Skyline.BRIDGE: Ambience(900, 0.1, 3.5, 1.0),
    Skyline.CLIFF: Ambience(1250, 0.05, 0.75, 1.0),
}
WEATHER_AMBIENCE = {
    Weather.CLEAR: SILENCE,
    Weather.CLOUDS: Ambience(350, 0.5, 0.25, 0.7),
    Weather.RAIN: Ambience(2300, 0.5, 11.0, 0.3),
    Weather.SNOW: Ambience(170, 0.15, 0.25, 0.2),
    Weather.FOG: Ambience(160, 0.02, 0.5, 1.0),
    Weather.STORM: Ambience(75, 0.5, 1.0, 0.9),
}
DAYTIME_AMBIENCE = {
    Daytime.DAWN: Ambience(3300, 0.04, 9.0, 1.0),
    Daytime.DAY: Ambience(800, 0.5, 0.25, 0.1),
    Daytime.DUSK: Ambience(2800, 0.02, 16.0, 1.0),
    Daytime.NIGHT: Ambience(480, 0.02, 0.75, 1.0),
}

PAUSE = 1.1
"""From one repetition to the next, in lengths of a sound."""
EVENT_LEVEL = 0.3
"""Loudness of a sound of 1, so that nothing has to be cut."""
FAINT = 0.01
"""Loudness of the hiss of the microphone."""


def audio(scene: Scene, settings: ScenesSettings) -> Audio:
    """The scene as a sound. Samples are whole multiples of 2^-15, which files of 16 bits keep."""
    draws = Draws(scene.seed, Stream.AUDIO, scene.number)
    length = round(settings.seconds * settings.rate)
    samples = draws.noise(length) * np.float32(FAINT)
    _add_background(samples, scene.setting, settings, draws)
    slot = length // len(scene.things)
    for turn, thing in enumerate(scene.order):
        begin = turn * slot
        samples[begin : begin + slot] += _event(scene.things[thing], slot, settings, draws)
    steps = np.clip(np.round(samples * 2**15), -(2**15), 2**15 - 1)
    return Audio(steps.astype(np.float32) * np.float32(2.0**-15), settings.rate)


def _add_background(
    samples: Samples, setting: Setting, settings: ScenesSettings, draws: Draws
) -> None:
    tables = GROUND_AMBIENCE, SKYLINE_AMBIENCE, WEATHER_AMBIENCE, DAYTIME_AMBIENCE
    for table, fact in zip(tables, setting, strict=True):
        start, level = draws.below(len(samples)), _level(settings, draws)
        ambience = table[fact]  # type: ignore[index]
        if ambience is not SILENCE:
            loop = _loop(ambience, len(samples), settings.rate)
            level *= EVENT_LEVEL * settings.background_level
            samples[start:] += level * loop[: len(samples) - start]
            samples[:start] += level * loop[len(samples) - start :]


def _event(thing: Thing, slot: int, settings: ScenesSettings, draws: Draws) -> Samples:
    """A thing that sounds as often as it does, somewhere within its slot [slot]."""
    length = int(settings.seconds * settings.rate / (MOST_THINGS * (MOST + 0.5)))
    sound = _sound(thing.kind, thing.pitch, thing.contour, length, settings.rate)
    level = np.float32(EVENT_LEVEL * _level(settings, draws))
    step = int(PAUSE * length)
    first = draws.below(slot - step * thing.repeats)
    event = np.zeros(slot, dtype=np.float32)
    for begin in range(first, first + step * thing.repeats, step):
        event[begin : begin + length] = level * sound
    return event


def _level(settings: ScenesSettings, draws: Draws) -> float:
    return 1 + draws.within(settings.level_jitter)


@lru_cache(maxsize=1024)
def _sound(kind: Kind, pitch: Pitch, contour: Contour, length: int, rate: int) -> Samples:
    """One sound of a thing, at most 1 [length]."""
    voice = VOICES[kind]
    time = np.arange(length) / rate
    phase = _phase(voice.frequency * PITCHES[pitch], contour, time, rate)
    highest = voice.frequency * PITCHES[pitch] * max(GLIDES[contour])
    tones = sum(
        (
            loud * np.sin(ratio * phase)
            for ratio, loud in voice.partials
            if ratio * highest < 0.48 * rate
        ),
        start=np.zeros(length),
    )
    rough = _smooth_noise(kind, length, rate) * np.sin(phase)
    wave = (1 - voice.noise) * _loudest_one(tones) + voice.noise * _loudest_one(rough)
    return _loudest_one(wave * _envelope(voice, time)).astype(np.float32)


def _phase(
    frequency: float, contour: Contour, time: NDArray[np.float64], rate: int
) -> NDArray[np.float64]:
    begin, end = GLIDES[contour]
    multiples = np.linspace(begin, end, len(time))
    if contour is Contour.TREMBLING:
        multiples = multiples + 0.15 * np.sin(2 * np.pi * TREMBLE * time)
    return 2 * np.pi * np.cumsum(frequency * multiples) / rate


def _envelope(voice: Voice, time: NDArray[np.float64]) -> NDArray[np.float64]:
    rising = np.minimum(time / voice.attack, 1)
    falling = np.exp(-np.maximum(time - voice.attack, 0) / voice.decay)
    # the last part of every sound fades, or it would end with a click
    fading = np.minimum((time[-1] - time) / (0.1 * time[-1]), 1)
    # a voice that does not flutter has a cosine of 1 throughout
    flutter = 0.5 + 0.5 * np.cos(2 * np.pi * voice.flutter * time)
    envelope: NDArray[np.float64] = rising * falling * fading
    return envelope * flutter**2


def _smooth_noise(kind: Kind, length: int, rate: int) -> NDArray[np.float64]:
    """Slow noise: times a tone, it is noise around that tone."""
    width = max(2, rate // 1200)
    white = Draws(0, Stream.TEXTURES, 500 + kind).noise(length + width - 1)
    return np.convolve(white, np.full(width, 1 / width), mode="valid")


def _loudest_one(wave: NDArray[np.float64]) -> NDArray[np.float64]:
    return wave / max(float(np.abs(wave).max(initial=0.0)), 1e-9)


@cache
def _loop(ambience: Ambience, length: int, rate: int) -> Samples:
    """The ambience, as often as it goes round, of mean square 1 [length]."""
    draws = Draws(0, Stream.TEXTURES, 600 + round(ambience.frequency * 10 + ambience.waves))
    spectrum = np.fft.rfft(draws.noise(length))
    away = np.fft.rfftfreq(length, 1 / rate) / ambience.frequency - 1
    noise = np.fft.irfft(spectrum * np.exp(-((away / ambience.width) ** 2)), length)
    # whole waves, so that nothing jumps where the loop closes
    waves = max(1, round(ambience.waves * length / rate))
    swell = 0.5 - 0.5 * np.cos(2 * np.pi * waves * np.arange(length) / length)
    shaped = noise * (1 - ambience.depth + ambience.depth * swell**2)
    loop: Samples = (shaped / np.sqrt(np.mean(shaped**2))).astype(np.float32)
    return loop

"""How scenes are made: shares, rates, sizes and noise."""

from dataclasses import dataclass, fields

from adaptiveembed.errors import SettingError

LARGEST_SEED = 2**63 - 1
"""The same limit as everywhere else, where torch's signed integers set it."""

LARGEST_CORPUS = 1_000_000
"""Items of one seed; up to here the members of every crowd differ by construction."""


def _require_shares(settings: object, names: tuple[str, ...]) -> None:
    for name in names:
        if not 0 <= getattr(settings, name) <= 1:
            raise SettingError(f"{name} is {getattr(settings, name)}; give a share from 0 to 1")


def _require_at_least(settings: object, least: float, names: tuple[str, ...]) -> None:
    for name in names:
        if not least <= getattr(settings, name) < float("inf"):
            raise SettingError(f"{name} is {getattr(settings, name)}; give a number >= {least:g}")


@dataclass(frozen=True)
class Telling:
    """At which rate a speaker mentions each sort of fact."""

    setting: float
    """The ground, the skyline, the weather and the time of day, each on its own."""
    main: float
    """The main thing, at all."""
    others: float
    """Each of the other things, at all."""
    details: float
    """Each detail of a thing that is mentioned: its colour, its place, how it sounds ..."""

    def __post_init__(self) -> None:
        _require_shares(self, tuple(field.name for field in fields(self)))


_SHARES = (
    "distinct_share",
    "twin_share",
    "common_word_rate",
    "vague_rate",
    "error_rate",
    "place_jitter",
    "size_jitter",
    "light_jitter",
    "level_jitter",
    "query_share",
)
_AMOUNTS = ("most_clutter", "pixel_noise", "background_level")


@dataclass(frozen=True)
class ScenesSettings:
    """How scenes are made. The reasons stand in ``docs/decisions/scenes.md``."""

    distinct_share: float = 0.35
    """Share of the items that their coarse fact, setting and main thing, tells apart."""
    twin_share: float = 0.35
    """Share of the items that stand in a crowd of near-twins; the rest is told apart by details."""
    popularity_exponent: float = 1.0
    """How uneven the popularity of common settings is; 1 is Zipf's law, 0 makes them equal."""

    distinct_telling: Telling = Telling(setting=0.95, main=0.98, others=0.55, details=0.4)
    """A speaker says what suffices, and here the coarse fact does."""
    fine_telling: Telling = Telling(setting=0.8, main=0.95, others=0.8, details=0.65)
    """The setting is ordinary, so more is said of the things."""
    twin_telling: Telling = Telling(setting=0.7, main=0.95, others=0.9, details=0.8)
    """Who has seen the like before says what differs, and less of what does not."""
    common_word_rate: float = 0.6
    """Rate of the most common word for a fact; its synonyms share the rest."""
    vague_rate: float = 0.06
    """Rate at which a colour or a name is vague, as in "something dark" or "an animal"."""
    error_rate: float = 0.02
    """Rate at which a detail is told wrongly."""

    image_size: int = 96
    """Height and width of a picture in pixels."""
    frame_size: int = 64
    """Height and width of a video in pixels."""
    frames: int = 8
    """Frames of a video."""
    frames_per_second: float = 4.0
    """Frames shown in a second of a video."""
    seconds: float = 4.0
    """Length of a sound."""
    rate: int = 8000
    """Samples of a second of sound."""

    place_jitter: float = 0.03
    """How far things stand from the middle of their place, as a share of the picture."""
    size_jitter: float = 0.12
    """How much larger or smaller than its kind of size a thing is, as a share."""
    light_jitter: float = 0.15
    """How much lighter or darker than usual a picture is, as a share."""
    most_clutter: int = 4
    """Most specks of a picture, which no text mentions."""
    pixel_noise: float = 12.0
    """Largest error of a pixel, of 255."""
    background_level: float = 0.12
    """Loudness of the background beside a sound of 1."""
    level_jitter: float = 0.4
    """How much louder or softer than usual each sound is, as a share."""

    query_share: float = 1 / 6
    """Share of a written corpus, its last items, that is the query split."""

    def __post_init__(self) -> None:
        _require_shares(self, _SHARES)
        _require_at_least(self, 0.0, ("popularity_exponent", *_AMOUNTS))
        _require_at_least(self, 16.0, ("image_size", "frame_size"))
        _require_at_least(self, 1.0, ("frames",))
        _require_at_least(self, 4000.0, ("rate",))
        _require_at_least(self, 1.0, ("seconds",))
        if not 0 < self.frames_per_second < float("inf"):
            raise SettingError(
                f"frames_per_second is {self.frames_per_second}; give a number above 0"
            )
        if self.distinct_share + self.twin_share > 1:
            raise SettingError(
                f"distinct_share is {self.distinct_share} and twin_share is {self.twin_share}; "
                f"together they can be at most 1"
            )


def check_seed(seed: int) -> None:
    """Refuse a seed that no generator takes."""
    if not 0 <= seed <= LARGEST_SEED:
        raise SettingError(f"seed is {seed}; give a whole number from 0 to {LARGEST_SEED}")

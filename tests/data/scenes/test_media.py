"""Pictures, videos and sounds show every fact that is theirs, and no others."""

from dataclasses import replace

import numpy as np
import pytest

from adaptiveembed.data.scenes import scene_media
from adaptiveembed.data.scenes.latent import (
    LOOKS,
    PLACES,
    SOUNDS,
    Action,
    Colour,
    Kind,
    Pitch,
    Skyline,
    Texture,
    Weather,
    scene,
    scenes,
)
from adaptiveembed.data.scenes.settings import LARGEST_CORPUS, ScenesSettings
from adaptiveembed.data.scenes.silhouettes import OUTLINES, painted, silhouette
from adaptiveembed.data.scenes.video import moved, pose
from adaptiveembed.structure.direction import Modality

MEDIA = (Modality.IMAGE, Modality.VIDEO, Modality.AUDIO)
SMALL = ScenesSettings(image_size=48, frame_size=32, frames=4, seconds=2.0, most_clutter=0)
SETTING_FACTS = ("ground", "skyline", "weather", "daytime")
SEEN = (Modality.IMAGE, Modality.VIDEO)
FACTS = {
    **{fact: (values, SEEN) for fact, values in LOOKS.items()},
    "kind": (tuple(Kind), MEDIA),
    "action": (tuple(Action), (Modality.VIDEO,)),
    **{fact: (values, (Modality.AUDIO,)) for fact, values in SOUNDS.items()},
}
"""Every fact of a thing, its values, and the media that show it."""


def content(media):
    return {"image": "pixels", "video": "frames", "audio": "samples"}[media.modality.value]


def array(one, modality, settings=SMALL):
    media = scene_media(one, modality, settings)
    return getattr(media, content(media))


def with_fact(one, place, fact, value):
    things = list(one.things)
    things[place] = things[place]._replace(**{fact: value})
    return replace(one, things=tuple(things))


@pytest.mark.parametrize("modality", MEDIA)
def test_media_are_the_same_whenever_they_are_made(modality):
    first = [array(one, modality) for one in scenes(4)]
    again = [array(scene(number), modality) for number in (3, 2, 1, 0)]
    for one, same in zip(first, reversed(again), strict=True):
        np.testing.assert_array_equal(one, same)


def test_media_have_the_sizes_of_the_settings():
    one = scene(5)
    settings = ScenesSettings(
        image_size=40, frame_size=24, frames=3, frames_per_second=2.5, rate=4000
    )
    image, video, audio = (scene_media(one, modality, settings) for modality in MEDIA)
    assert (image.pixels.shape, image.pixels.dtype) == ((40, 40, 3), np.uint8)
    assert (video.frames.shape, video.frames.dtype) == ((3, 24, 24, 3), np.uint8)
    assert video.frames_per_second == 2.5
    assert (audio.samples.shape, audio.samples.dtype, audio.rate) == ((16_000,), np.float32, 4000)


@pytest.mark.parametrize(
    "settings",
    [
        ScenesSettings(image_size=16, frame_size=16, frames=1, seconds=1.0, rate=4000),
        ScenesSettings(image_size=131, frame_size=65, frames=9, seconds=1.37, rate=16_000),
    ],
)
def test_the_smallest_and_odd_sizes_work(settings):
    for one in scenes(30):
        for modality in MEDIA:
            assert np.isfinite(array(one, modality, settings)).all()


def test_sounds_are_never_cut_and_are_heard():
    for one in scenes(60):
        samples = array(one, Modality.AUDIO)
        assert 0.05 < np.abs(samples).max() < 1
        np.testing.assert_array_equal(samples * 2**15, np.round(samples * 2**15))


def test_pictures_use_light_and_dark():
    pixels = np.stack([array(one, Modality.IMAGE) for one in scenes(20)])
    assert pixels.std() > 40
    assert pixels.min() == 0
    assert pixels.max() == 255


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_of_a_thing_changes_exactly_the_media_that_show_it(fact):
    values, shown = FACTS[fact]
    for one in scenes(6, start=40):
        value = getattr(one.things[0], fact)
        other = with_fact(one, 0, fact, values[(values.index(value) + 1) % len(values)])
        for modality in MEDIA:
            same = np.array_equal(array(one, modality), array(other, modality))
            assert same == (modality not in shown), (fact, modality)


@pytest.mark.parametrize("place", range(4))
def test_a_fact_of_the_setting_changes_every_medium(place):
    for one in scenes(6, start=70):
        values = tuple(type(one.setting[place]))
        other = values[(one.setting[place] + 1) % len(values)]
        changed = replace(one, setting=one.setting._replace(**{SETTING_FACTS[place]: other}))
        for modality in MEDIA:
            assert not np.array_equal(array(one, modality), array(changed, modality))


def test_the_order_is_heard_and_not_seen():
    one = scene(8)
    turned = replace(one, order=one.order[::-1])
    for modality in MEDIA:
        same = np.array_equal(array(one, modality), array(turned, modality))
        assert same == (modality is not Modality.AUDIO)


def test_equal_facts_of_other_numbers_look_and_sound_a_little_different():
    one = scene(8)
    for modality in MEDIA:
        assert not np.array_equal(array(one, modality), array(replace(one, number=9), modality))


def test_a_large_thing_covers_more_than_a_small_one():
    settings = replace(SMALL, size_jitter=0.0, place_jitter=0.0, pixel_noise=0.0, light_jitter=0.0)
    one = with_fact(with_fact(scene(8), 0, "copies", 1), 0, "place", 5)
    changed = []
    for size in LOOKS["size"]:
        here = with_fact(one, 0, "size", size)
        gone = array(
            with_fact(here, 0, "colour", Colour((here.main.colour + 1) % 12)),
            Modality.IMAGE,
            settings,
        )
        changed.append((array(here, Modality.IMAGE, settings) != gone).any(axis=-1).sum())
    assert changed == sorted(changed)
    assert changed[2] > 2 * changed[0]


def test_every_kind_has_an_outline_of_its_own():
    assert set(OUTLINES) == set(Kind)
    shapes = [silhouette(kind, 24).ravel() for kind in Kind]
    for place, one in enumerate(shapes):
        assert 0.1 < one.mean() < 0.9
        for other in shapes[:place]:
            assert np.abs(one - other).mean() > 0.05


def test_outlines_cover_pixels_from_not_at_all_to_wholly():
    for size in (5, 13, 64, 150):
        cover = silhouette(Kind.BALL, size)
        assert cover.shape == (size, size, 1)
        assert cover.min() < 0.03
        assert cover.max() == 1


def test_a_full_turn_is_no_turn():
    np.testing.assert_array_equal(silhouette(Kind.KEY, 32, 0), silhouette(Kind.KEY, 32, 8))
    assert np.abs(silhouette(Kind.KEY, 32, 2) - silhouette(Kind.KEY, 32, 0)).mean() > 0.05


def test_patterns_differ_and_plain_is_unpainted():
    patterns = [painted(texture, 20) for texture in Texture]
    assert not patterns[Texture.PLAIN].any()
    assert all(0.1 < pattern.mean() < 0.7 for pattern in patterns[1:])


@pytest.mark.parametrize("action", Action)
def test_things_move_as_their_action_says(action):
    start = pose(scene(8).things[0], ScenesSettings(), _draws())
    first, last = (moved(start, action, time, frame) for time, frame in ((0.0, 0), (1.0, 7)))
    middle = moved(start, action, 0.3, 3)
    assert (last.x > first.x) == (action is Action.RIGHT)
    assert (last.x < first.x) == (action is Action.LEFT)
    assert (middle.y < first.y - 0.05) == (action is Action.BOUNCE)
    assert (last.width > first.width) == (action is Action.GROW)
    assert (last.width < first.width) == (action is Action.SHRINK)
    assert (middle.turn != first.turn) == (action is Action.SPIN)
    assert (not middle.shown) == (action is Action.BLINK)


def _draws():
    from adaptiveembed.data.scenes.draws import Draws, Stream

    return Draws(0, Stream.VIDEO, 0)


def test_rain_falls_and_nothing_else_moves_where_things_rest():
    one = scene(8)
    still = replace(one, things=tuple(thing._replace(action=Action.REST) for thing in one.things))
    quiet = replace(SMALL, pixel_noise=0.0)

    def motion(weather):
        shown = replace(still, setting=still.setting._replace(weather=weather))
        frames = array(shown, Modality.VIDEO, quiet)
        return np.abs(np.diff(frames.astype(int), axis=0)).mean()

    assert motion(Weather.CLEAR) == 0
    assert motion(Weather.RAIN) > 0.5


def test_high_things_sound_higher_than_low_ones():
    clear = scene(8).setting._replace(skyline=Skyline.OPEN, weather=Weather.CLEAR)
    one = replace(scene(8), setting=clear)
    quiet = ScenesSettings(background_level=0.0)

    def frequency(pitch):
        things = tuple(thing._replace(kind=Kind.ROBOT, pitch=pitch) for thing in one.things)
        power = np.abs(np.fft.rfft(array(replace(one, things=things), Modality.AUDIO, quiet))) ** 2
        return np.argmax(power) / 4

    low, middle, high = (frequency(pitch) for pitch in Pitch)
    assert low < 0.8 * middle < 0.8 * 0.8 * high


def test_a_thing_sounds_once_for_each_repetition():
    quiet = ScenesSettings(background_level=0.0)
    one = replace(scene(8), things=scene(8).things[:1], order=(0,))
    for repeats in SOUNDS["repeats"]:
        drum = one.main._replace(kind=Kind.DRUM, repeats=repeats)
        samples = np.abs(array(replace(one, things=(drum,)), Modality.AUDIO, quiet))
        loud = samples.reshape(-1, 400).max(axis=1) > 0.1
        assert (np.diff(loud.astype(int), prepend=0) == 1).sum() == repeats


@pytest.mark.parametrize("modality", MEDIA)
def test_the_last_item_of_the_largest_corpus_is_made_like_any_other(modality):
    assert array(scene(LARGEST_CORPUS - 1), modality).shape == array(scene(0), modality).shape


def test_places_stand_in_a_grid():
    settings = ScenesSettings(place_jitter=0.0)
    poses = [
        pose(scene(8).main._replace(place=place), settings, _draws()) for place in range(PLACES)
    ]
    assert len({(one.x, one.y) for one in poses}) == PLACES
    assert all(0.1 < one.x < 0.9 and 0.1 < one.y < 0.9 for one in poses)

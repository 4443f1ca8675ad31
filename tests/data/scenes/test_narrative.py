"""Narratives tell what their medium shows, at the rates of the settings, in several wordings."""

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from adaptiveembed.data.scenes import words
from adaptiveembed.data.scenes.latent import (
    Action,
    Colour,
    Contour,
    Daytime,
    Ground,
    Kind,
    Pitch,
    SceneKind,
    Size,
    Skyline,
    Texture,
    Weather,
    scenes,
)
from adaptiveembed.data.scenes.narrative import FEWEST_SENTENCES, MOST_SENTENCES, narrative, plural
from adaptiveembed.data.scenes.settings import ScenesSettings, Telling
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality

MEDIA = (Modality.IMAGE, Modality.VIDEO, Modality.AUDIO)
ALL = Telling(setting=1.0, main=1.0, others=1.0, details=1.0)
PLAIN = ScenesSettings(
    distinct_telling=ALL,
    fine_telling=ALL,
    twin_telling=ALL,
    common_word_rate=1.0,
    vague_rate=0.0,
    error_rate=0.0,
)
"""Everything is told, in the common words, without errors."""


@pytest.fixture(scope="module")
def corpus():
    return list(scenes(450, seed=2))


def number_of_sentences(text):
    return text.count(".")


def mentions(text, wordings):
    return any(wording in text for wording in wordings)


@pytest.mark.parametrize("medium", MEDIA)
def test_a_narrative_is_the_same_whenever_it_is_told(corpus, medium):
    first = [narrative(one, medium, ScenesSettings()) for one in corpus[:20]]
    again = [narrative(one, medium, ScenesSettings()) for one in reversed(corpus[:20])]
    assert first == again[::-1]


@pytest.mark.parametrize("medium", MEDIA)
def test_narratives_have_three_to_eight_sentences_and_hardly_ever_repeat(corpus, medium):
    texts = [narrative(one, medium, ScenesSettings()) for one in corpus]
    lengths = {number_of_sentences(text) for text in texts}
    assert lengths == set(range(FEWEST_SENTENCES, MOST_SENTENCES + 1))
    assert len(set(texts)) > 0.99 * len(texts)


def test_a_speaker_who_tells_all_of_a_picture_tells_every_look(corpus):
    for one in corpus[:100]:
        text = narrative(one, Modality.IMAGE, PLAIN).lower()
        for thing in one.things:
            for wordings in (words.KINDS[thing.kind], words.COLOURS[thing.colour]):
                assert wordings[0] in text
            assert words.TEXTURES[thing.texture][0] in text
            assert words.SIZES[thing.size][0] in text
        assert words.GROUNDS[one.setting.ground][0] in text
        assert words.SKYLINES[one.setting.skyline][0] in text
        assert f"{words.WEATHERS[one.setting.weather][0]} " in text


def test_actions_are_told_of_videos_and_sounds_of_sounds(corpus):
    for one in corpus[:100]:
        image, video, audio = (narrative(one, medium, PLAIN) for medium in MEDIA)
        for thing in one.things:
            action = words.ACTIONS[thing.action][0]
            cry = words.CRIES[thing.kind][0]
            assert (action in image, action in video, action in audio) == (False, True, False)
            assert (cry in image, cry in video, cry in audio) == (False, False, True)
            assert words.REPEATS[thing.repeats][0] in audio


def test_a_speaker_who_tells_all_of_a_sound_tells_the_order(corpus):
    for one in corpus[:50]:
        sentences = narrative(one, Modality.AUDIO, PLAIN).lower().split(". ")
        for turn, thing in enumerate(one.order[:-1]):
            kind = words.KINDS[one.things[thing].kind][0]
            (told,) = [each for each in sentences if f" {kind} " in f" {each} "]
            assert told.startswith(words.ORDINALS[turn][0])


@pytest.mark.parametrize("kind", SceneKind)
def test_facts_are_mentioned_about_as_often_as_the_settings_say(corpus, kind):
    settings = ScenesSettings(vague_rate=0.0, error_rate=0.0)
    told = [
        (one, narrative(one, Modality.IMAGE, settings).lower())
        for one in corpus
        if one.kind is kind
    ]
    telling = getattr(settings, f"{kind.value}_telling")
    ground = np.mean([mentions(text, words.GROUNDS[one.setting.ground]) for one, text in told])
    main = np.mean([mentions(text, words.KINDS[one.main.kind]) for one, text in told])
    assert ground == pytest.approx(telling.setting, abs=0.08)
    assert main == pytest.approx(telling.main, abs=0.06)
    details = [
        mentions(text, words.TEXTURES[one.main.texture])
        for one, text in told
        # another thing of the same texture would speak for it
        if [thing.texture for thing in one.things].count(one.main.texture) == 1
    ]
    assert np.mean(details) == pytest.approx(telling.details * telling.main, abs=0.16)


def test_twins_are_told_in_more_detail_than_distinct_scenes(corpus):
    def told(kind):
        texts = [
            (narrative(one, Modality.IMAGE, ScenesSettings()), len(one.things))
            for one in corpus
            if one.kind is kind
        ]
        colours = [wording for wordings in words.COLOURS.values() for wording in wordings]
        return np.mean(
            [sum(f" {each} " in text for each in colours) / many for text, many in texts]
        )

    assert told(SceneKind.TWIN) > 1.5 * told(SceneKind.DISTINCT)


def test_length_does_not_tell_the_kind(corpus):
    """Guessing the likelier of two kinds by the number of sentences is right in few more cases."""
    counts = {kind: Counter() for kind in (SceneKind.DISTINCT, SceneKind.TWIN)}
    for one in corpus:
        if one.kind in counts:
            counts[one.kind][
                number_of_sentences(narrative(one, Modality.IMAGE, ScenesSettings()))
            ] += 1
    shares = [{n: counter[n] / counter.total() for n in range(3, 9)} for counter in counts.values()]
    guessed = sum(max(share[n] for share in shares) for n in range(3, 9)) / 2
    assert guessed < 0.7


def test_vague_words_and_errors_come_at_their_rates(corpus):
    vague = replace(PLAIN, vague_rate=1.0)
    wrong = replace(PLAIN, error_rate=1.0)
    for one in corpus[:50]:
        text = narrative(one, Modality.IMAGE, vague)
        assert not any(f" {words.KINDS[thing.kind][0]} " in text for thing in one.things)
        assert mentions(text, words.VAGUE_KINDS)
        assert mentions(text, words.VAGUE_COLOURS)
        sentences = narrative(one, Modality.IMAGE, wrong).lower().split(". ")
        name = words.KINDS[one.main.kind][0]
        (told,) = [each for each in sentences if f" {name} " in f" {each} ".replace("s ", " ")]
        assert f" {words.COLOURS[one.main.colour][0]} " not in told


def test_every_fact_has_words_of_its_own():
    tables = {
        "GROUNDS": Ground, "SKYLINES": Skyline, "WEATHERS": Weather, "DAYTIMES": Daytime,
        "KINDS": Kind, "COLOURS": Colour, "TEXTURES": Texture, "SIZES": Size, "ACTIONS": Action,
        "CRIES": Kind, "PITCHES": Pitch, "CONTOURS": Contour,
    }  # fmt: skip
    for name, values in tables.items():
        table = getattr(words, name)
        assert set(table) == set(values)
        wordings = [wording for each in table.values() for wording in each]
        assert len(set(wordings)) == len(wordings)
        assert all(2 <= len(each) <= 4 for each in table.values())


def test_vague_words_cover_every_kind_and_colour_once():
    for classes, values in ((words.VAGUE_KINDS, Kind), (words.VAGUE_COLOURS, Colour)):
        members = [value for each in classes.values() for value in each]
        assert sorted(members) == sorted(values)


@pytest.mark.parametrize(
    ("noun", "many"),
    [("fish", "fish"), ("boat", "boats"), ("flask", "flasks"), ("toy", "toys"), ("city", "cities")],
)
def test_nouns_have_their_plural(noun, many):
    assert plural(noun) == many


def test_narratives_of_the_first_version_stay_as_they_are():
    texts = "\n".join(
        narrative(one, medium, ScenesSettings()) for one in scenes(100, seed=1) for medium in MEDIA
    )
    assert hashlib.sha256(texts.encode()).hexdigest()[:16] == TEXTS_OF_VERSION_1


TEXTS_OF_VERSION_1 = "f4cfea9158fd9d4b"


def test_a_narrative_of_a_text_is_refused(corpus):
    with pytest.raises(SettingError, match=r"narrative of text .* image, video, audio"):
        narrative(corpus[0], Modality.TEXT, ScenesSettings())

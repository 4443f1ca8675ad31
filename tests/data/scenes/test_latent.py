"""Scenes are a function of seed and number; kinds, crowds and shares are as described."""

import hashlib
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from adaptiveembed.data.scenes.latent import (
    COMMON_SETTINGS,
    FEWEST_THINGS,
    LOOKS,
    MOST_THINGS,
    NUM_SETTINGS,
    PLACES,
    SOUNDS,
    SceneKind,
    crowd_capacity,
    crowd_of,
    member,
    scene,
    scenes,
)
from adaptiveembed.data.scenes.settings import LARGEST_CORPUS, ScenesSettings
from adaptiveembed.errors import SettingError

MANY = 100_000


@pytest.fixture(scope="module")
def corpus():
    return list(scenes(1500, seed=5))


def of_kind(corpus, kind):
    return [one for one in corpus if one.kind is kind]


def looks(one):
    return tuple(
        (place, fact, getattr(thing, fact))
        for place, thing in enumerate(one.things)
        for fact in LOOKS
    )


def differences(one, other, facts=LOOKS):
    return sum(
        getattr(mine, fact) != getattr(theirs, fact)
        for mine, theirs in zip(one.things, other.things, strict=True)
        for fact in facts
    )


def test_a_scene_is_the_same_whenever_it_is_made(corpus):
    for number in (1499, 0, 700):
        assert scene(number, seed=5) == corpus[number]
    assert list(scenes(3, seed=5, start=100)) == corpus[100:103]
    assert scene(0, seed=6) != corpus[0]


def test_a_scene_is_equal_to_another_with_the_same_facts(corpus):
    one = corpus[0]
    assert one == type(one)(one.setting, one.things, one.order, 7, 8, SceneKind.FINE)


def test_a_hundred_thousand_scenes_all_differ():
    # in a process of its own, where nothing checks the types of every draw
    count = f"from adaptiveembed.data.scenes.latent import scenes; print(len(set(scenes({MANY}))))"
    counted = subprocess.run([sys.executable, "-c", count], capture_output=True, check=True)
    assert int(counted.stdout) == MANY


def test_kinds_have_the_shares_of_the_settings(corpus):
    counts = Counter(one.kind for one in corpus)
    assert counts[SceneKind.TWIN] == pytest.approx(0.35 * 1500, abs=20)
    assert counts[SceneKind.DISTINCT] == pytest.approx(0.35 * 1500, abs=70)


@pytest.mark.parametrize("kind", SceneKind)
def test_a_corpus_can_be_of_one_kind(kind):
    settings = ScenesSettings(
        distinct_share=float(kind is SceneKind.DISTINCT), twin_share=float(kind is SceneKind.TWIN)
    )
    assert {one.kind for one in scenes(200, settings=settings)} == {kind}


def test_things_of_a_scene_differ_in_kind_and_place(corpus):
    for one in corpus:
        assert FEWEST_THINGS <= len(one.things) <= MOST_THINGS
        assert len({thing.kind for thing in one.things}) == len(one.things)
        assert len({thing.place for thing in one.things}) == len(one.things)
        assert sorted(one.order) == list(range(len(one.things)))


def test_every_value_of_every_fact_occurs(corpus):
    things = [thing for one in corpus for thing in one.things]
    for fact, values in {**LOOKS, **SOUNDS}.items():
        assert {getattr(thing, fact) for thing in things} == set(values)
    assert {thing.place for thing in things} == set(range(PLACES))


def test_rare_settings_are_rare_and_common_ones_common(corpus):
    rare = {one.setting for one in of_kind(corpus, SceneKind.DISTINCT)}
    fine = Counter(one.setting for one in of_kind(corpus, SceneKind.FINE))
    assert not rare & set(fine)
    assert len(rare) > (NUM_SETTINGS - COMMON_SETTINGS) / 5
    # the first of 48 has 1 / (1 + 1/2 + ... + 1/48) = 22 % under Zipf's law
    assert fine.most_common(1)[0][1] / fine.total() == pytest.approx(0.22, abs=0.06)


def test_equal_popularity_is_a_setting():
    settings = ScenesSettings(distinct_share=0.0, twin_share=0.0, popularity_exponent=0.0)
    counts = Counter(one.setting for one in scenes(1000, settings=settings))
    assert len(counts) == COMMON_SETTINGS
    assert max(counts.values()) < 45


def test_setting_and_main_thing_tell_nearly_all_distinct_scenes_apart(corpus):
    coarse = Counter((one.setting, one.main.kind) for one in corpus)
    distinct = of_kind(corpus, SceneKind.DISTINCT)
    alone = sum(coarse[one.setting, one.main.kind] == 1 for one in distinct)
    assert alone / len(distinct) > 0.95


def test_members_of_a_crowd_differ_in_few_looks_and_in_some(corpus):
    crowds = defaultdict(list)
    for one in of_kind(corpus, SceneKind.TWIN):
        crowds[one.crowd].append(one)
    for members in crowds.values():
        for one, other in pairwise(members):
            assert one.setting == other.setting
            assert [thing.kind for thing in one.things] == [thing.kind for thing in other.things]
            assert 1 <= differences(one, other) <= 4
            assert looks(one) != looks(other)


def test_most_members_of_young_crowds_differ_in_one_to_three_looks(corpus):
    crowds = defaultdict(list)
    for one in of_kind(corpus, SceneKind.TWIN):
        crowds[one.crowd].append(one)
    counts = Counter(
        differences(one, other)
        for members in crowds.values()
        for place, one in enumerate(members)
        for other in members[place + 1 :]
    )
    assert sum(counts[number] for number in (1, 2, 3)) / counts.total() > 0.95


def test_members_of_a_crowd_sound_different(corpus):
    crowds = defaultdict(list)
    for one in of_kind(corpus, SceneKind.TWIN):
        crowds[one.crowd].append((*(getattr(t, f) for t in one.things for f in SOUNDS), one.order))
    for members in crowds.values():
        assert len(set(members)) == len(members)


def test_no_two_twins_are_the_same_member_of_a_crowd():
    places = [member(twin, seed=3) for twin in range(5000)]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("twins", [128, 500, 4096])
def test_crowds_have_eight_members_on_the_average_in_a_corpus_of_any_size(twins):
    crowds = Counter(member(twin, seed=1).crowd for twin in range(twins))
    # just before a doubling it is eight; while new crowds fill, between four and eight
    assert 4 <= twins / len(crowds) <= 8


def test_crowds_are_spread_over_all_numbers():
    early = {member(twin, seed=1).crowd for twin in range(1700)}
    late = [member(twin, seed=1).crowd for twin in range(1700, 2048)]
    assert sum(crowd in early for crowd in late) / len(late) > 0.9


def test_half_of_the_twins_after_a_doubling_join_crowds_that_there_were():
    before = {member(twin, seed=1).crowd for twin in range(1024)}
    after = [member(twin, seed=1).crowd for twin in range(1024, 2048)]
    assert sum(crowd in before for crowd in after) == len(after) / 2


def test_facts_are_enough_for_every_member_of_the_largest_corpus():
    most = max(member(twin, seed=2).place for twin in range(0, LARGEST_CORPUS, 997))
    assert all(crowd_capacity(crowd_of(crowd, 2, 1.0)) > most for crowd in range(100))


def test_scenes_of_the_first_version_stay_as_they_are():
    facts = repr([(one.setting, one.things, one.order, one.crowd) for one in scenes(300, seed=1)])
    assert hashlib.sha256(facts.encode()).hexdigest()[:16] == FACTS_OF_VERSION_1


FACTS_OF_VERSION_1 = "ed8a66a5afebd9c6"


@pytest.mark.parametrize("number", [-1, LARGEST_CORPUS])
def test_a_number_outside_the_largest_corpus_is_refused(number):
    with pytest.raises(SettingError, match=rf"scene {number} was asked for; .* from 0 to 999999"):
        scene(number)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_generator_takes_is_refused(seed):
    with pytest.raises(SettingError, match=f"seed is {seed}"):
        scene(0, seed)

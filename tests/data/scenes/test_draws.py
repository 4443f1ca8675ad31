"""Draws depend on their key alone, and permutations lose nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.data.scenes.draws import Draws, Stream, permuted

FACTS, CROWDS = Stream.FACTS, Stream.CROWDS
KEYS = st.integers(0, 2**64 - 1)


def row(seed, stream, number, length=100):
    draws = Draws(seed, stream, number)
    return [draws.word() for _ in range(length)]


def test_equal_keys_give_equal_rows_and_every_part_of_the_key_counts():
    assert row(1, Stream.FACTS, 2) == row(1, Stream.FACTS, 2)
    assert (
        len(
            {
                tuple(row(*key))
                for key in [(1, FACTS, 2), (2, FACTS, 2), (1, CROWDS, 2), (1, FACTS, 3)]
            }
        )
        == 4
    )


def test_the_words_are_those_of_every_release():
    assert row(0, Stream.FACTS, 0, 1) == row(0, Stream.FACTS, 0)[:1] == [12807720813412446274]


@given(KEYS, st.integers(1, 10))
def test_a_permutation_takes_every_number_exactly_once(key, bits):
    assert sorted(permuted(value, bits, key) for value in range(2**bits)) == list(range(2**bits))


def test_permutations_of_different_keys_differ():
    orders = {tuple(permuted(value, 5, key) for value in range(32)) for key in range(1, 200, 2)}
    assert len(orders) > 90


@given(KEYS.map(lambda seed: seed >> 1), st.integers(1, 1000))
def test_draws_stay_within_their_limits(seed, end):
    draws = Draws(seed, Stream.IMAGE, 5)
    assert 0 <= draws.below(end) < end
    assert 0 <= draws.fraction() < 1
    assert -0.5 <= draws.within(0.5) <= 0.5
    assert np.all((draws.fractions(9) >= 0) & (draws.fractions(9) < 1))
    assert np.all(np.abs(draws.noise(3, 5)) <= 1)


@pytest.mark.parametrize("end", [2, 3, 7])
def test_whole_numbers_are_equally_likely(end):
    draws = Draws(3, Stream.FACTS, 0)
    counts = np.bincount([draws.below(end) for _ in range(3000)], minlength=end)
    assert np.all(np.abs(counts / 3000 - 1 / end) < 0.04)


def test_a_shuffle_keeps_what_it_shuffles():
    draws = Draws(3, Stream.FACTS, 0)
    assert sorted(draws.shuffled(range(20))) == list(range(20))
    assert {tuple(draws.shuffled("ab")) for _ in range(50)} == {("a", "b"), ("b", "a")}


def test_noise_reaches_both_ends_and_has_no_leaning():
    noise = Draws(1, Stream.AUDIO, 1).noise(20_001)
    assert (noise.min(), noise.max()) == (-1, 1)
    assert abs(noise.mean()) < 0.02

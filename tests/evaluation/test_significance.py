import numpy as np
import pytest

from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError
from adaptiveembed.evaluation.significance import compare, compare_means


def generator():
    return np.random.default_rng(0)


def test_equal_methods_do_not_differ():
    values = np.linspace(0, 1, 50)
    found = compare(values, values, generator(), draws=100)
    assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_a_gain_on_every_query_is_as_sure_as_the_number_of_draws_allows():
    values = np.linspace(0, 0.5, 40)
    found = compare(values + 0.1, values, generator(), draws=999)
    assert found.difference == pytest.approx(0.1)
    assert found.p_value == pytest.approx(2 / 1000)
    assert found.low == pytest.approx(0.1)


def test_exchanging_the_methods_changes_only_the_sign():
    values = np.random.default_rng(1).random((2, 80))
    there, back = (compare(*pair, generator(), draws=500) for pair in (values, values[::-1]))
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_value == pytest.approx(back.p_value)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


def test_the_interval_is_that_of_the_normal_law_for_many_queries():
    values = np.random.default_rng(2).normal(0.02, 1, 4000)
    found = compare(values, np.zeros(4000), generator(), draws=4000)
    half = 1.96 * values.std() / np.sqrt(4000)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.06)


def test_chance_is_called_significant_about_as_often_as_the_level_says():
    rng = np.random.default_rng(3)
    found = [
        compare(rng.random(60), rng.random(60), generator(), draws=400).p_value for _ in range(300)
    ]
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.1


def test_directions_are_drawn_together():
    values = np.random.default_rng(4).random(100)
    opposite = compare_means([values, -values], [np.zeros(100)] * 2, generator(), draws=200)
    assert opposite.low == opposite.high == 0


def test_many_draws_are_made_in_parts(monkeypatch):
    values = np.random.default_rng(5).random(30)
    monkeypatch.setattr("adaptiveembed.evaluation.significance.NUMBERS_AT_ONCE", 100)
    assert compare(values, values / 2, generator(), draws=50).draws == 50


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [(np.ones(3), np.ones(4), ShapeError), (np.ones(0), np.ones(0), EmptyBatchError)],
)
def test_values_that_do_not_pair_up_are_refused(first, second, error):
    with pytest.raises(error):
        compare(first, second, generator())


def test_no_draw_is_refused():
    with pytest.raises(SettingError, match="at least once"):
        compare(np.ones(3), np.ones(3), generator(), draws=0)

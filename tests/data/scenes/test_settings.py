"""A setting that cannot work is refused by its name and value."""

import pytest

from adaptiveembed.data.scenes.settings import ScenesSettings, Telling
from adaptiveembed.errors import SettingError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("distinct_share", -0.1),
        ("twin_share", 1.5),
        ("popularity_exponent", -1.0),
        ("common_word_rate", 2.0),
        ("vague_rate", float("nan")),
        ("error_rate", -1.0),
        ("image_size", 8),
        ("frame_size", 15),
        ("frames", 0),
        ("frames_per_second", 0.0),
        ("seconds", 0.5),
        ("rate", 100),
        ("pixel_noise", -1.0),
        ("background_level", float("inf")),
        ("most_clutter", -1),
        ("query_share", 1.1),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name_and_value(name, value):
    with pytest.raises(SettingError, match=f"{name} is {value}"):
        ScenesSettings(**{name: value})


def test_shares_that_add_up_to_more_than_one_are_refused():
    with pytest.raises(SettingError, match=r"distinct_share is 0.7 and twin_share is 0.6"):
        ScenesSettings(distinct_share=0.7, twin_share=0.6)


def test_a_rate_of_telling_that_is_no_share_is_refused():
    with pytest.raises(SettingError, match="details is 3"):
        Telling(setting=1.0, main=1.0, others=1.0, details=3.0)

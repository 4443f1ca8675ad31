"""Settings of the embedder refuse what cannot work, and are read from recipes."""

from dataclasses import fields

import pytest

from adaptiveembed.errors import SettingError
from adaptiveembed.pipeline.settings import read_settings, to_table
from adaptiveembed.representation.settings import (
    EmbedderSettings,
    GlobalPosition,
    StateNormalisation,
)


def test_the_defaults_are_those_of_a_laptop():
    settings = EmbedderSettings()
    assert (settings.dim, settings.width, settings.layers, settings.heads) == (256, 256, 2, 4)
    assert settings.global_position is GlobalPosition.ALIGNED
    assert settings.group_layout.sizes == (4, 4)


def test_a_recipe_sets_every_field():
    table = to_table(EmbedderSettings()) | {
        "global_position": "learned",
        "states": "layer",
        "layout": "3+5",
        "shared": True,
        "dropout": 0,
    }
    assert set(table) == {field.name for field in fields(EmbedderSettings)}
    read = read_settings(EmbedderSettings, table)
    assert read.global_position is GlobalPosition.LEARNED
    assert read.states is StateNormalisation.LAYER
    assert read.group_layout.sizes == (3, 5)
    assert read_settings(EmbedderSettings, to_table(read)) == read


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dim": 0}, "dim is 0; give at least 1"),
        ({"layers": -1}, "layers is -1; give at least 1"),
        ({"cross_attention_frequency": 0}, "cross_attention_frequency is 0; give at least 1"),
        ({"width": 10, "heads": 4}, "width is 10 and heads is 4; choose a width that is a mult"),
        ({"dropout": 1.0}, "dropout is 1.0; give a share from 0 to below 1"),
        ({"dropout": float("nan")}, "dropout is nan; give a share"),
        ({"state_dropout": -0.1}, "state_dropout is -0.1; give a share"),
        ({"query_scale": 0.0}, "query_scale is 0.0; give a number above 0"),
        ({"weight_scale": -1.0}, "weight_scale is -1.0; give a number above 0"),
        ({"layout": "4-4"}, "group sizes are written as whole numbers joined by"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(wrong, message):
    with pytest.raises(SettingError, match=message):
        EmbedderSettings(**wrong)

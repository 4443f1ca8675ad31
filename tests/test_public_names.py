"""The public names are listed once, in `__init__.pyi`, and each of them is there."""

from importlib import import_module

import pytest

import adaptiveembed


@pytest.mark.parametrize("name", adaptiveembed.__all__)
def test_every_public_name_resolves_to_what_its_home_defines(name):
    thing = getattr(adaptiveembed, name)
    home = adaptiveembed._HOMES[name]
    assert thing is getattr(import_module(home), name)
    assert thing.__module__ == home


def test_the_list_is_what_a_star_import_gives():
    names: dict[str, object] = {}
    exec("from adaptiveembed import *", names)
    assert {name for name in names if not name.startswith("__")} == set(adaptiveembed.__all__)


def test_an_unknown_name_is_refused_by_name():
    with pytest.raises(AttributeError, match="no attribute 'sets1m'"):
        adaptiveembed.sets1m  # noqa: B018 - the access is the test

"""Tiny checkpoints, made once for the whole run, when a test first asks for one."""

import pytest

from adaptiveembed.encoders.user import load_encoder
from tests.encoders.pretrained.checkpoints import MAKERS, kind_of, quiet


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The folder of a tiny checkpoint by its name; nobody writes into it."""
    made = {}

    def folder_of(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("checkpoints") / name
            made[name].mkdir()
            with quiet():
                MAKERS[name](made[name])
        return made[name]

    return folder_of


@pytest.fixture(scope="session")
def load(checkpoint):
    """The encoder of a tiny checkpoint, by its public name."""
    loaded = {}

    def by_name(name, modality, options=""):
        whole = f"{kind_of(name)}:{checkpoint(name)}{options}"
        encoder = load_encoder(whole, modality)
        return loaded.setdefault(whole, encoder)  # kept in use, so that it is loaded once

    return by_name

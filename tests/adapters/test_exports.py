"""What an export says of itself is read back, and nothing else passes for one."""

from dataclasses import replace

import pytest
import torch

from adaptiveembed.adapters.exports import Origin, Stated, model_fingerprint
from adaptiveembed.adapters.libraries import library
from adaptiveembed.errors import GalleryFormatError, LayoutMismatchError, SettingError
from adaptiveembed.structure import GroupLayout
from tests.adapters.galleries import LAYOUT, ORIGIN, exported
from tests.adapters.models import small_model

STATED = Stated(ORIGIN, 7, 6, "float16")


def test_metadata_is_read_back():
    assert Stated.by(exported(dtype=torch.float16), "model-1") == STATED
    assert Stated.read("here", STATED.metadata()) == STATED
    assert all(isinstance(each, str) for each in STATED.metadata().values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "here holds other of version 1, needed are adaptiveembed.candidates"),
        ({"version": "2"}, "of version 2, needed are"),
        ({"layout": "two"}, "here is damaged .*'two'"),
        ({"items": "many"}, "here is damaged .*'many'"),
        ({"dtype": "int8"}, "here holds int8; known are float32, float16"),
    ],
)
def test_metadata_that_says_something_else_is_refused(change, message):
    with pytest.raises(GalleryFormatError, match=message):
        Stated.read("here", STATED.metadata() | change)


def test_metadata_that_lacks_something_is_refused():
    with pytest.raises(GalleryFormatError, match="here holds something else of version unknown"):
        Stated.read("here", {})
    for name in STATED.metadata():
        rest = {key: each for key, each in STATED.metadata().items() if key != name}
        with pytest.raises(GalleryFormatError, match="export the gallery again"):
            Stated.read("here", rest)


def test_parts_hold_no_more_numbers_than_they_may_and_an_item_at_least():
    assert [part.stop - part.start for part in STATED.parts(3 * 5 * 6 + 29)] == [3, 3, 3]
    assert [list(range(7)[part]) for part in STATED.parts(90)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [part.start for part in STATED.parts(1)] == list(range(7))


def test_another_origin_is_refused():
    STATED.require(ORIGIN, "here")
    with pytest.raises(LayoutMismatchError, match=r"here have layout 2\+3, needed is 3\+2"):
        STATED.require(Origin(GroupLayout((3, 2)), "model-1"), "here")
    with pytest.raises(GalleryFormatError, match="fingerprint 'model-1', needed is 'model-2'"):
        STATED.require(Origin(LAYOUT, "model-2"), "here")


def test_the_fingerprint_of_a_model_changes_with_its_weights_and_encoders_only():
    model = small_model()
    assert Origin.of(model) == Origin(model.layout, model_fingerprint(model))
    assert model_fingerprint(small_model()) == model_fingerprint(model)
    others = small_model(seed=1), small_model(encoder="words-2")
    assert len({model_fingerprint(each) for each in (model, *others)}) == 3
    renamed = replace(model, facts=replace(model.facts, figures={"mAP": 1.0}))
    assert model_fingerprint(renamed) == model_fingerprint(model)


def test_a_library_that_is_missing_is_named_with_the_remedy():
    with pytest.raises(SettingError, match=r"nowhere is not.*pip install 'adaptiveembed\[adapt"):
        library("nowhere.to_be_found")
    with pytest.raises(SettingError, match=r"nowhere is not installed; use pip install it$"):
        library("nowhere", install="it")

"""Directions of retrieval."""

import pytest

from adaptiveembed.structure import Direction, Modality


def test_a_direction_prints_as_an_arrow():
    assert str(Direction(Modality.TEXT, Modality.IMAGE)) == "text→image"


def test_reversing_swaps_source_and_target():
    direction = Direction(Modality.AUDIO, Modality.TEXT)
    assert direction.reversed == Direction(source=Modality.TEXT, target=Modality.AUDIO)
    assert direction.reversed.reversed == direction


def test_the_two_directions_are_two_keys():
    direction = Direction(Modality.VIDEO, Modality.TEXT)
    assert len({direction, direction.reversed, Direction(Modality.VIDEO, Modality.TEXT)}) == 2


@pytest.mark.parametrize("name", ["text", "image", "video", "audio"])
def test_a_modality_is_its_name(name):
    assert Modality(name) == name

import numpy as np
import pytest
import torch

from adaptiveembed.errors import EmptyBatchError, ShapeError, UnknownIdError
from adaptiveembed.structure.encoded import EncodedMedia, Features
from adaptiveembed.structure.views import ChosenFeatures, JoinedFeatures


def encoded(num, states, width=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, states + 1, (num,), generator=generator)
    mask = torch.arange(states) < lengths[:, None]
    hidden = torch.randn(num, states, width, generator=generator) * mask[..., None]
    return EncodedMedia(torch.randn(num, width, generator=generator), hidden, mask)


def assert_same(one, other):
    states = min(one.mask.shape[1], other.mask.shape[1])
    torch.testing.assert_close(one.global_feature, other.global_feature)
    torch.testing.assert_close(one.hidden_states[:, :states], other.hidden_states[:, :states])
    assert one.mask[:, :states].equal(other.mask[:, :states])
    assert not one.mask[:, states:].any()
    assert not other.mask[:, states:].any()


def test_chosen_features_are_those_of_the_chosen_items():
    media = encoded(6, 4)
    view = ChosenFeatures(media, np.array([5, 0, 3]))
    assert isinstance(view, Features)
    assert (len(view), view.width) == (3, 3)
    torch.testing.assert_close(view.global_features(), media.global_feature[[5, 0, 3]])
    assert_same(view.read([2, 0]), media.read([3, 5]))


def test_an_item_that_is_not_there_cannot_be_chosen():
    with pytest.raises(UnknownIdError, match="item 6 is not among the 6"):
        ChosenFeatures(encoded(6, 4), np.array([0, 6]))


def test_joined_features_count_through_all_stores():
    parts = (encoded(3, 2, seed=1), encoded(4, 5, seed=2))
    joined = JoinedFeatures(parts)
    assert isinstance(joined, Features)
    assert len(joined) == 7
    torch.testing.assert_close(
        joined.global_features(), torch.cat([each.global_feature for each in parts])
    )


@pytest.mark.parametrize("places", [[0], [6, 1, 3, 0, 4], [5, 5, 2], [2, 1, 0]])
def test_items_of_several_stores_are_read_in_the_order_asked_for(places):
    parts = (encoded(3, 2, seed=1), encoded(4, 5, seed=2))
    alone = [parts[0].read([one]) if one < 3 else parts[1].read([one - 3]) for one in places]
    found = JoinedFeatures(parts).read(places)
    assert len(found) == len(places)
    for row, one in enumerate(alone):
        assert_same(found.read([row]), one)


def test_stores_of_different_widths_are_not_joined():
    with pytest.raises(ShapeError, match="widths 3, 4"):
        JoinedFeatures((encoded(2, 2), encoded(2, 2, width=4)))
    with pytest.raises(EmptyBatchError):
        JoinedFeatures(())

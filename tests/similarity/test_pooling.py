"""Hierarchical pooling, beside its literal twin and beside scipy's trees."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from adaptiveembed.errors import NotFiniteError, NotNormalizedError, SettingError
from adaptiveembed.similarity.pooling import cut, pooled, ward_tree
from adaptiveembed.similarity.ragged import RaggedSets
from tests.reference.pooling import pooled as literal
from tests.similarity.sets import unit_sets
from tests.similarity.test_ragged import scattered

COUNTS = (2, 4, 8)


def raw(items, size, dim, seed=0):
    """Vectors of any length in a few bundles, as those of a picture or a text lie."""
    generator = torch.Generator().manual_seed(seed)
    bundles = torch.randn(items, 3, dim, generator=generator)
    chosen = bundles[:, torch.randint(3, (size,), generator=generator)]
    return chosen + 0.7 * torch.randn(items, size, dim, generator=generator)


def ragged(items, size, dim, seed=0):
    return scattered(raw(items, size, dim, seed), torch.Generator().manual_seed(seed))


def full(vectors):
    return RaggedSets(vectors, torch.ones(vectors.shape[:2]).bool())


def scipy_pooled(vectors, count):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = np.arange(len(unit))
    if len(unit) > count:
        labels = fcluster(linkage(unit, "ward"), count, "maxclust")
    firsts = sorted({int(np.argmax(labels == label)) for label in labels})
    means = np.stack([unit[labels == labels[first]].mean(axis=0) for first in firsts])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_four_vectors_by_hand():
    # Angles of 0, 10, 90 and 130 degrees: the first two are nearest, then the last two.
    angles = torch.tensor([0.0, 10.0, 90.0, 130.0]).deg2rad()
    found = pooled(full(torch.stack([angles.cos(), angles.sin()], dim=1)[None]), 2)
    expected = torch.tensor([5.0, 110.0]).deg2rad()
    close(found.vectors[0], torch.stack([expected.cos(), expected.sin()], dim=1))


@given(
    st.integers(1, 4), st.integers(1, 10), st.integers(2, 6), st.integers(1, 5), st.integers(0, 99)
)
def test_every_item_is_pooled_as_by_the_literal_twin(items, size, dim, count, seed):
    sets = ragged(items, size, dim, seed)
    found = pooled(sets, count)
    for item in range(items):
        expected = literal(sets.vectors[item][sets.mask[item]], count)
        assert found.mask[item].tolist() == [place < len(expected) for place in range(count)]
        close(found.vectors[item][found.mask[item]], expected)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("size", [3, 40, 200])
def test_larger_items_are_pooled_as_by_scipy(count, size):
    sets = ragged(6, size, 24, seed=size)
    found = pooled(sets, count)
    for item in range(len(sets)):
        vectors = sets.vectors[item][sets.mask[item]].double().numpy()
        close(found.vectors[item][found.mask[item]], scipy_pooled(vectors, count))


def test_a_chain_of_neighbours_is_pooled_as_by_scipy():
    # Every vector's nearest is the next one: hardly any two are each other's nearest.
    angles = torch.linspace(0, 1.5, 60, dtype=torch.float64) ** 1.5
    chain = torch.stack([angles.cos(), angles.sin()], dim=1)[None]
    for count in COUNTS:
        close(pooled(full(chain), count).vectors[0], scipy_pooled(chain[0].numpy(), count))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_pooled_vectors_are_unit_vectors_of_the_given_type(dtype):
    found = pooled(full(raw(3, 20, 16).to(dtype)), 4)
    assert found.vectors.dtype == dtype
    lengths = torch.linalg.vector_norm(found.vectors.double(), dim=-1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=0, atol=1e-2)


def test_an_item_depends_neither_on_the_others_nor_on_padding_nor_on_the_budget():
    sets = ragged(7, 30, 12)
    together = pooled(sets, 4).vectors
    assert torch.allclose(pooled(sets, 4, memory_budget=1).vectors, together, atol=1e-6)
    turned = RaggedSets(sets.vectors.flip(0), sets.mask.flip(0))
    assert torch.allclose(pooled(turned, 4).vectors.flip(0), together, atol=1e-6)
    for item in range(len(sets)):
        alone = full(sets.vectors[item][sets.mask[item]][None])
        assert torch.allclose(pooled(alone, 4).vectors[0], together[item], atol=1e-6)


def test_few_vectors_are_kept_and_the_rest_is_padding_of_zeros():
    vectors = 3 * unit_sets(1, 3, 8)
    found = pooled(full(vectors), 4)
    assert found.mask.tolist() == [[True, True, True, False]]
    close(found.vectors[0], torch.cat([vectors[0] / 3, torch.zeros(1, 8)]))


def test_equal_vectors_merge_first_and_weigh_as_often_as_they_are_there():
    east, north = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    found = pooled(full(torch.stack([east, north, east, east])[None]), 2)
    close(found.vectors[0], torch.stack([east, north]))
    one = pooled(full(torch.stack([east, north, east, east])[None]), 1)
    close(one.vectors[0, 0], torch.tensor([3.0, 1.0]) / 10**0.5)


def test_vectors_that_are_all_alike_have_a_tree():
    alike = torch.ones(2, 17, 5)
    found = pooled(full(alike), 3)
    assert found.mask.all()
    close(found.vectors, torch.full((2, 3, 5), 5**-0.5))


def test_heights_are_half_the_squares_of_those_of_scipy():
    unit = unit_sets(1, 25, 6, dtype=torch.float64)
    tree = ward_tree(unit, torch.ones(1, 25).bool())
    heights = tree.heights[0].sort().values[:-1]
    close(heights, linkage(unit[0].numpy(), "ward")[:, 2] ** 2 / 2)


def test_cuts_are_nested():
    unit, mask = unit_sets(4, 30, 6, dtype=torch.float64), torch.ones(4, 30).bool()
    tree = ward_tree(unit, mask)
    finer = cut(tree, mask, 30)
    for count in range(29, 0, -1):
        coarser = cut(tree, mask, count)
        assert [len(row.unique()) for row in coarser] == [count] * 4
        assert torch.equal(coarser.gather(1, finer), coarser)
        finer = coarser


def test_what_cannot_be_pooled_is_refused():
    vectors = raw(3, 4, 5)
    with pytest.raises(SettingError, match="at least 1 vector, got 0"):
        pooled(full(vectors), 0)
    broken = vectors.clone()
    broken[2, 1, 0] = float("inf")
    with pytest.raises(NotFiniteError, match="item 2 holds NaN or infinity"):
        pooled(full(broken), 2, memory_budget=1)
    broken[2, 1] = 0
    with pytest.raises(NotNormalizedError, match="vector 1 of item 2 has length 0"):
        pooled(full(broken), 2, memory_budget=1)
    opposed = torch.stack([vectors[0, 0], -vectors[0, 0]])[None]
    with pytest.raises(NotNormalizedError, match="no direction; leave the item out, or pool"):
        pooled(full(opposed), 1)

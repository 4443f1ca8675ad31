"""Sets of unit vectors, easy and adversarial, for the laws that hold for all of them."""

import numpy as np
import torch
from hypothesis import strategies as st


def unit_sets(items, capacity, dim, *, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randn(items, capacity, dim, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(raw, dim=-1).to(dtype)


def random_vectors(rng, shape):
    return rng.standard_normal(shape)


def copied_vectors(rng, shape):
    """Every item is one of three."""
    return random_vectors(rng, (min(3, shape[0]), *shape[1:]))[
        rng.integers(3, size=shape[0]) % shape[0]
    ]


def nearly_equal_vectors(rng, shape):
    """All sets within a few units of 1e-7 of one another: the screen cannot tell them apart."""
    return random_vectors(rng, (1, *shape[1:])) + 1e-7 * rng.integers(-2, 3, size=shape)


def equal_vectors(rng, shape):
    return np.broadcast_to(random_vectors(rng, (1, 1, shape[2])), shape)


def one_hot_vectors(rng, shape):
    """Signed axes: cosines are -1, 0 and 1, and almost every assignment is a tie."""
    signs = rng.choice([-1.0, 1.0], size=shape[:2])
    return signs[..., None] * np.eye(shape[2])[rng.integers(shape[2], size=shape[:2])]


def opposed_vectors(rng, shape):
    """A narrow cone and its opposite: half of all similarities are close to -1."""
    signs = rng.choice([-1.0, 1.0], size=(shape[0], 1, 1))
    return signs * (3 + 0.1 * random_vectors(rng, shape))


KINDS = {
    "random": random_vectors,
    "copied": copied_vectors,
    "nearly equal": nearly_equal_vectors,
    "equal": equal_vectors,
    "one-hot": one_hot_vectors,
    "opposed": opposed_vectors,
}


def sets_of_kind(kind, items, capacity, dim, seed=0):
    """Unit vectors [items, capacity, dim] in float32."""
    vectors = KINDS[kind](np.random.default_rng(seed), (items, capacity, dim))
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return torch.from_numpy(unit.astype(np.float32))


@st.composite
def two_batches(draw, max_capacity=8, max_items=20, dtype=torch.float32):
    """Query sets and gallery sets of one capacity and dimension."""
    kind, seed = draw(st.sampled_from(sorted(KINDS))), draw(st.integers(0, 99))
    capacity, dim = draw(st.integers(1, max_capacity)), draw(st.integers(1, 20))
    queries, gallery = draw(st.integers(1, max_items)), draw(st.integers(1, max_items))
    sets = sets_of_kind(kind, queries + gallery, capacity, dim, seed).to(dtype)
    return sets[:queries], sets[queries:]


@st.composite
def aligned_batches(draw, max_capacity=8, max_items=20, dtype=torch.float32):
    """As many query sets as gallery sets."""
    queries, gallery = draw(two_batches(max_capacity, max_items, dtype))
    pairs = min(len(queries), len(gallery))
    return queries[:pairs], gallery[:pairs]


@st.composite
def coarse_matrices(draw, max_size=8, max_pairs=20):
    """Square matrices [pairs, size, size] of few values with exact sums, so that ties abound."""
    size, pairs = draw(st.integers(1, max_size)), draw(st.integers(1, max_pairs))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    values = draw(st.sampled_from([(0.0,), (0.0, 1.0), (-1.0, -0.5, 0.0, 0.25, 1.0)]))
    return torch.from_numpy(rng.choice(values, size=(pairs, size, size)).astype(np.float32))

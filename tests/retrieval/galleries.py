"""Galleries with queries for them, easy and adversarial."""

from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import torch
from hypothesis import strategies as st

from adaptiveembed.retrieval import Gallery
from adaptiveembed.structure import CAES, CandidateSets, GroupLayout, every_prefix
from tests.similarity.sets import KINDS, sets_of_kind

LAYOUTS = [GroupLayout(sizes) for sizes in ((4, 4), (8,), (3, 5), (1,))]


@dataclass(frozen=True)
class World:
    """A gallery and queries of its own kind."""

    gallery: Gallery
    queries: CAES


def ids_of(items):
    return tuple(f"item {number}" for number in range(items))


def make_gallery(vectors, layout):
    """A gallery of vectors [items, positions, dim], which may be of no items at all."""
    rows = np.ascontiguousarray(vectors.numpy().transpose(1, 0, 2))
    return Gallery(ids_of(len(vectors)), rows, layout)


def make_world(kind, items, queries, layout, dim, *, seed=0, dtype=torch.float32, selections=None):
    """Queries and items drawn alike; selections are taken in turn, by default every one."""
    vectors = sets_of_kind(kind, items + queries, layout.num_candidates, dim, seed).to(dtype)
    nodes = selections or every_prefix(layout).nodes
    asked = CandidateSets(vectors[items:], layout)
    chosen = tuple(islice(cycle(nodes), queries))
    return World(make_gallery(vectors[:items], layout), CAES(asked, chosen))


def without_screen(gallery):
    """The same gallery on a processor that has no product of bytes."""
    bare = Gallery(gallery.ids, gallery.rows, gallery.layout)
    bare.__dict__["screen"] = None
    return bare


@st.composite
def worlds(draw, max_items=60, max_queries=24, max_dim=40):
    layout = draw(st.sampled_from(LAYOUTS))
    nodes = every_prefix(layout).nodes
    chosen = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=4, unique=True))
    return make_world(
        draw(st.sampled_from(sorted(KINDS))),
        draw(st.integers(0, max_items)),
        draw(st.integers(1, max_queries)),
        layout,
        draw(st.integers(1, max_dim)),
        seed=draw(st.integers(0, 99)),
        dtype=draw(st.sampled_from([torch.float32, torch.float16])),
        selections=chosen,
    )

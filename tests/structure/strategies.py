"""Layouts, selections and candidate sets for the laws that hold for all of them."""

import torch
from hypothesis import strategies as st

from adaptiveembed.structure import CAES, CandidateSets, GroupLayout, Selection


def layouts(max_groups=3, max_size=4):
    sizes = st.lists(st.integers(1, max_size), min_size=1, max_size=max_groups)
    return sizes.map(tuple).map(GroupLayout)


@st.composite
def selections(draw, layout):
    lengths = draw(st.tuples(*(st.integers(0, size) for size in layout.sizes)).filter(any))
    return Selection(layout, lengths)


@st.composite
def candidate_sets(draw, layout=None, dtype=torch.float32):
    chosen = layout or draw(layouts())
    shape = (draw(st.integers(1, 6)), chosen.num_candidates, draw(st.integers(1, 5)))
    return random_candidates(shape[0], chosen, shape[2], seed=draw(st.integers(0, 99)), dtype=dtype)


@st.composite
def caes_of_any_layout(draw):
    candidates = draw(candidate_sets())
    size = len(candidates)
    chosen = draw(st.lists(selections(candidates.layout), min_size=size, max_size=size))
    return CAES(candidates, tuple(chosen))


def random_candidates(num_items, layout, dim, *, seed=0, dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randn(num_items, layout.num_candidates, dim, generator=generator)
    return CandidateSets.normalized(raw.to(device=device, dtype=dtype), layout)

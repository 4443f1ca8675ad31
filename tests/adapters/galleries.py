"""Galleries to export, and what another system makes of them."""

import numpy as np
import torch

from adaptiveembed.adapters.exports import Origin
from adaptiveembed.structure import GroupLayout
from tests.retrieval.galleries import make_gallery
from tests.similarity.sets import unit_sets

LAYOUT = GroupLayout((2, 3))
ORIGIN = Origin(LAYOUT, "model-1")


def exported(items=7, dtype=torch.float32, dim=6):
    vectors = unit_sets(items, LAYOUT.num_candidates, dim, dtype=dtype)
    return make_gallery(vectors, LAYOUT)


def same(found, expected):
    """Ids, order, layout and every bit."""
    return (
        found.ids == expected.ids
        and found.layout == expected.layout
        and found.rows.dtype == expected.rows.dtype
        and np.array_equal(found.rows.view(np.uint8), expected.rows.view(np.uint8))
    )

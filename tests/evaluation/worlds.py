"""Small retrieval tasks for the tests of this folder."""

import numpy as np
import torch

from adaptiveembed.evaluation.protocol import RetrievalTask, full_gallery
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.groups import GroupLayout

LAYOUT = GroupLayout((2, 2))
TEXT_TO_IMAGE = Direction(Modality.TEXT, Modality.IMAGE)


def noisy_pairs(num_items, seed=0, layout=LAYOUT, dim=6):
    """Two modalities of the same items, each with noise as strong as the meaning."""
    generator = torch.Generator().manual_seed(seed)
    shape = (num_items, layout.num_candidates, dim)
    meaning, *noise = (torch.randn(shape, generator=generator) for _ in range(3))
    first, second = (CandidateSets.normalized(meaning + one, layout) for one in noise)
    return first, second


def both_directions(num_items=20, num_queries=8, seed=0):
    """The two full-gallery tasks of such pairs."""
    ids = [f"i{item}" for item in range(num_items)]
    return full_gallery(ids, *noisy_pairs(num_items, seed), ids[-num_queries:], TEXT_TO_IMAGE)


def several_positives(num_items=15, seed=0):
    """A task in which queries have two, one and three positives, in no order."""
    queries, items = noisy_pairs(num_items, seed)
    gallery = Gallery.from_candidates(tuple(f"i{item}" for item in range(num_items)), items)
    positives = np.array([[4, 0, -1], [7, -1, -1], [2, 9, 1]], dtype=np.int64)
    return RetrievalTask(TEXT_TO_IMAGE, ("q0", "q1", "q2"), queries[:3], gallery, positives)

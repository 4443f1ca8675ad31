"""How alike two embedding sets are: pure functions of tensors, and the compiled kernels under them.

May import structure, errors and shapes.
"""

from adaptiveembed.similarity.assignment import MAX_CAPACITY, best_assignment
from adaptiveembed.similarity.bounds import lower_bound, upper_bound
from adaptiveembed.similarity.maxsim import (
    maxsim_matrix,
    maxsim_pairs,
    mean_maxsim_matrix,
    responses,
)
from adaptiveembed.similarity.pooling import pooled
from adaptiveembed.similarity.ragged import RaggedSets, ragged_maxsim_matrix
from adaptiveembed.similarity.setsim import (
    setsim_assignment,
    setsim_matrices,
    setsim_matrix,
    setsim_pairs,
)
from adaptiveembed.similarity.tiling import MEMORY_BUDGET, ScoreTile, score_tiles

__all__ = [
    "MAX_CAPACITY",
    "MEMORY_BUDGET",
    "RaggedSets",
    "ScoreTile",
    "best_assignment",
    "lower_bound",
    "maxsim_matrix",
    "maxsim_pairs",
    "mean_maxsim_matrix",
    "pooled",
    "ragged_maxsim_matrix",
    "responses",
    "score_tiles",
    "setsim_assignment",
    "setsim_matrices",
    "setsim_matrix",
    "setsim_pairs",
    "upper_bound",
]

"""What brackets SetSim without solving an assignment: search rules most pairs out by it."""

import torch

from adaptiveembed.shapes import AssignmentTotals, Cosines
from adaptiveembed.similarity.assignment import require_square


def lower_bound(cosines: Cosines) -> AssignmentTotals:
    """The mean of the identity assignment: SetSim is at least this."""
    require_square(cosines)
    return cosines.diagonal(dim1=-2, dim2=-1).mean(-1)


def upper_bound(cosines: Cosines) -> AssignmentTotals:
    """The smaller of the two mean maxima: SetSim is at most this.

    A bijection takes one entry of each row and of each column.
    """
    require_square(cosines)
    return torch.minimum(cosines.amax(-1).mean(-1), cosines.amax(-2).mean(-1))

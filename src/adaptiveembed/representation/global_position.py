"""Where position 0 comes from: the global feature, mapped as R2 says, as a unit vector."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adaptiveembed.errors import SettingError
from adaptiveembed.representation.alignment import (
    FeaturePairs,
    LinearMap,
    principal_matrix,
    second_moment,
)
from adaptiveembed.representation.settings import GlobalPosition
from adaptiveembed.shapes import BatchFeatures, PositionVectors, Vectors

SMALLEST_LENGTH = 1e-12
"""A vector shorter than this has no direction that rounding leaves."""


def unit_vectors(vectors: Vectors) -> Vectors:
    """The vectors divided by their lengths; half kinds become float32.

    Vectors of no length become one fixed vector: what nothing is known about scores alike.
    """
    exact = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    lengths = torch.linalg.vector_norm(exact, dim=-1, keepdim=True)
    anyway = torch.full_like(exact, exact.shape[-1] ** -0.5)
    return torch.where(
        lengths < SMALLEST_LENGTH, anyway, exact / lengths.clamp(min=SMALLEST_LENGTH)
    )


class PaddedFeature(nn.Module):
    """The global feature itself, with zeros behind it up to ``dim``; it has no parameters."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, features: BatchFeatures) -> PositionVectors:
        padding = self.dim - features.shape[1]
        return nn.functional.pad(unit_vectors(features), (0, padding))


class FixedMap(nn.Module):
    """A linear map that was fitted once; it is kept in the model and never trained."""

    mean: Tensor
    matrix: Tensor

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("matrix", torch.zeros(width, dim))

    def fit(self, fitted: LinearMap) -> None:
        """Take over a fitted map."""
        self.mean.copy_(fitted.mean)
        self.matrix.copy_(fitted.matrix)

    def forward(self, features: BatchFeatures) -> PositionVectors:
        with torch.autocast(features.device.type, enabled=False):
            return unit_vectors((features - self.mean) @ self.matrix)


class ProjectedFeature(nn.Module):
    """A learned linear map of the global feature."""

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, dim, bias=False)

    def forward(self, features: BatchFeatures) -> PositionVectors:
        return unit_vectors(self.linear(features))


def empty_position(kind: GlobalPosition, width: int, dim: int) -> nn.Module | None:
    """What makes position 0 from features of this width, before it is fitted or trained.

    None if the Q-Former makes it.
    """
    match kind:
        case GlobalPosition.LEARNED:
            return None
        case GlobalPosition.PROJECTED:
            return ProjectedFeature(width, dim)
        case GlobalPosition.FROZEN if width <= dim:
            return PaddedFeature(dim)
        case _:
            return FixedMap(width, dim)


def require_one_space(widths: Sequence[int]) -> None:
    """Refuse to take features as they are when they cannot be of one space."""
    if len(set(widths)) > 1:
        raise SettingError(
            f"global_position is frozen and the features have widths "
            f"{' and '.join(map(str, widths))}, so that they share no space; "
            f"use global_position = aligned"
        )


def shared_narrowing(
    pairs: FeaturePairs, dim: int, matryoshka_widths: Sequence[int] = ()
) -> LinearMap:
    """One map for both sides of a shared space, from its width to ``dim``.

    Features are cut off where the encoder declares that width, and else projected by a PCA of both
    sides together: two maps would tear their space apart.
    """
    width = pairs.source.shape[1]
    if dim in matryoshka_widths:
        matrix = torch.eye(width, dim, dtype=torch.float64)
    else:
        moment = second_moment(pairs.source) + second_moment(pairs.target)
        matrix = principal_matrix(moment, dim)
    return LinearMap(matrix.new_zeros(width), matrix)

"""Closed-form maps of global features: regularised CCA, and PCA about the origin (R2).

Pure functions. Everything is computed in float64 from second moments, which are summed a few rows
at a time, so that the features of a large training split are never converted as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.errors import EmptyBatchError, NotFiniteError, SettingError, ShapeError
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.metrics.ranks import ranks_of_positives
from adaptiveembed.shapes import (
    GlobalFeatures,
    MapMatrix,
    MapMean,
    MappedFeatures,
    SecondMoments,
)

ROWS_AT_ONCE = 4096
"""Rows that are converted to float64 in one go."""

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""What regularisation is chosen from, as shares of the mean variance of a direction."""

MIN_PAIRS = 3
"""Two pairs lie on a line in any space: every direction of theirs is perfectly correlated."""


SAFE_RIDGE = 0.1
"""The regularisation where there are too few pairs to choose it on."""

HELD_OUT_SHARE, MOST_HELD_OUT, FEWEST_HELD_OUT = 0.1, 2_000, 5
"""How many pairs are held out to choose the regularisation, where no validation pairs are given."""


@dataclass(frozen=True, eq=False)
class FeaturePairs:
    """Global features of at least three pairs: row i of both sides is pair i."""

    source: Tensor  # [pairs, source width]; not a named shape: the errors below say what to do
    target: Tensor  # [pairs, target width]
    names: tuple[str, str] = ("source", "target")
    """What errors call the sides."""

    def __post_init__(self) -> None:
        _require_pairs(self)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Tensor) -> "FeaturePairs":
        return FeaturePairs(self.source[rows], self.target[rows], self.names)


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Features less a mean, times a matrix."""

    mean: MapMean
    matrix: MapMatrix

    def __call__(self, features: GlobalFeatures) -> MappedFeatures:
        """The features of each row in the new space."""
        return (features.to(self.mean) - self.mean) @ self.matrix


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two maps into one space, whose directions stand by descending correlation.

    Every direction is already shrunk by its correlation, the singular value of the whitened
    covariance, which lies in [0, 1].
    """

    source: LinearMap
    target: LinearMap
    correlations: Tensor  # [directions]
    ridge: float


class Spectrum(NamedTuple):
    """The directions in which features vary, and their variances, in descending order."""

    variances: Tensor  # [rank], float64
    directions: Tensor  # [width, rank]


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Means and covariances of two features over the same pairs, float64."""

    source_mean: Tensor  # [source width]
    target_mean: Tensor  # [target width]
    source: Tensor  # [source width, source width]
    target: Tensor  # [target width, target width]
    cross: Tensor  # [source width, target width]
    names: tuple[str, str] = ("source", "target")

    @cached_property
    def source_spectrum(self) -> Spectrum:
        return spectrum(self.source, self.source_mean)

    @cached_property
    def target_spectrum(self) -> Spectrum:
        return spectrum(self.target, self.target_mean)


def pair_moments(pairs: FeaturePairs) -> PairMoments:
    """The moments of both sides, and between them."""
    source, target = pairs.source, pairs.target
    means = mean_of(source), mean_of(target)
    sums = _zeros(source, source), _zeros(target, target), _zeros(source, target)
    for rows in _parts(len(source)):
        left, right = source[rows].double() - means[0], target[rows].double() - means[1]
        for total, one, other in zip(sums, (left, right, left), (left, right, right), strict=True):
            total.addmm_(one.T, other)
    of_source, of_target, cross = (total / len(source) for total in sums)
    return PairMoments(*means, of_source, of_target, cross, pairs.names)


def mean_of(features: GlobalFeatures) -> Tensor:
    """The mean row, float64."""
    total = features.new_zeros(features.shape[1], dtype=torch.float64)
    for rows in _parts(len(features)):
        total += features[rows].double().sum(dim=0)
    return total / len(features)


def second_moment(features: GlobalFeatures) -> SecondMoments:
    """The mean of every product of two numbers of a row: the covariance about the origin."""
    total = _zeros(features, features)
    for rows in _parts(len(features)):
        part = features[rows].double()
        total.addmm_(part.T, part)
    return total / len(features)


def spectrum(covariance: SecondMoments, mean: Tensor) -> Spectrum:
    """The directions of a covariance, without those whose variance is rounding alone."""
    variances, directions = (each.flip(-1) for each in torch.linalg.eigh(covariance))
    power = float(covariance.trace() + mean.square().sum())
    rank = int((variances > _ROUNDING * len(mean) * power).sum())
    return Spectrum(variances[:rank], directions[:, :rank])


def canonical_maps(moments: PairMoments, dim: int, ridge: float) -> Alignment:
    """Regularised canonical correlation analysis into ``dim`` dimensions.

    It has as many directions as ``dim`` and both ranks allow; the rest of the matrices is zero.
    ``ridge`` is added to every variance, as a share of the mean variance of that side.
    """
    _require_ridge(ridge)
    whiten_source = _whitening(moments.source_spectrum, ridge, moments.names[0])
    whiten_target = _whitening(moments.target_spectrum, ridge, moments.names[1])
    whitened = whiten_source.T @ moments.cross @ whiten_target
    left, correlations, right = torch.linalg.svd(whitened, full_matrices=False)
    found = correlations[:dim].clamp(max=1)
    return Alignment(
        LinearMap(moments.source_mean, _shrunk(whiten_source @ left, found, dim)),
        LinearMap(moments.target_mean, _shrunk(whiten_target @ right.T, found, dim)),
        found,
        ridge,
    )


def fitted_alignment(
    pairs: FeaturePairs, dim: int, validation: FeaturePairs | None = None, seed: int = 0
) -> Alignment:
    """A regularised CCA of all pairs, its regularisation chosen on pairs that it did not see.

    Without validation pairs, some of the pairs are held out for the choice alone.
    """
    moments = pair_moments(pairs)
    if validation is not None:
        return canonical_maps(moments, dim, chosen_ridge(moments, dim, validation))
    num_held_out = min(MOST_HELD_OUT, int(HELD_OUT_SHARE * len(pairs)))
    if num_held_out < FEWEST_HELD_OUT:
        return canonical_maps(moments, dim, SAFE_RIDGE)
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed))
    held_out, others = pairs[order[:num_held_out]], pairs[order[num_held_out:]]
    return canonical_maps(moments, dim, chosen_ridge(pair_moments(others), dim, held_out))


def chosen_ridge(
    moments: PairMoments, dim: int, judges: FeaturePairs, ridges: Sequence[float] = RIDGES
) -> float:
    """The regularisation under which pairs that are not in the moments find one another best.

    Best is the greatest mAP, mean of both directions; ties go to the stronger regularisation.
    """
    if not ridges:
        raise SettingError("no regularisation to choose from; give at least one, for example 0.1")
    scores = {ridge: _score(canonical_maps(moments, dim, ridge), judges) for ridge in ridges}
    return max(scores, key=lambda ridge: (scores[ridge], ridge))


def paired_precision(source: MappedFeatures, target: MappedFeatures) -> float:
    """The mAP at which row i of one side finds row i of the other by cosine, mean of both sides."""
    sides = [torch.nn.functional.normalize(side.float(), dim=-1) for side in (source, target)]
    return float(np.mean([_precision(*sides), _precision(*reversed(sides))]))


def principal_matrix(moment: SecondMoments, dim: int) -> MapMatrix:
    """The map onto the ``dim`` directions that keep most of all inner products.

    PCA about the origin: nothing is subtracted, since cosines are what is to be kept.
    """
    if dim > len(moment):
        raise SettingError(
            f"features of width {len(moment)} cannot be narrowed to {dim}; pad them instead"
        )
    directions: Tensor = torch.linalg.eigh(moment).eigenvectors
    return directions.flip(-1)[:, :dim]


_ROUNDING = torch.finfo(torch.float64).eps


def _score(alignment: Alignment, judges: FeaturePairs) -> float:
    return paired_precision(alignment.source(judges.source), alignment.target(judges.target))


def _whitening(side: Spectrum, ridge: float, name: str) -> Tensor:
    """The map to uncorrelated features of variance 1, or less by what the ridge adds."""
    if not len(side.variances):
        raise SettingError(
            f"the global features of the {name} are all the same, so that nothing can be aligned "
            f"with them; look for the cause in the encoder, or use global_position = learned"
        )
    return side.directions * (side.variances + ridge * side.variances.mean()).rsqrt()


def _shrunk(directions: Tensor, correlations: Tensor, dim: int) -> Tensor:
    """The first directions times their correlations, filled up with zeros to ``dim``."""
    used = directions[:, : len(correlations)] * correlations
    return torch.nn.functional.pad(used, (0, dim - used.shape[1]))


def _precision(queries: Tensor, gallery: Tensor) -> float:
    precisions = [
        average_precision(
            ranks_of_positives(
                (queries[rows] @ gallery.T).numpy(),
                np.arange(len(gallery))[rows, None],
            )
        )
        for rows in _parts(len(queries))
    ]
    return float(np.concatenate(precisions).mean())


def _zeros(rows: Tensor, columns: Tensor) -> Tensor:
    return rows.new_zeros((rows.shape[1], columns.shape[1]), dtype=torch.float64)


def _parts(count: int) -> list[slice]:
    starts = range(0, count, ROWS_AT_ONCE)
    return [slice(start, min(start + ROWS_AT_ONCE, count)) for start in starts]


def _require_pairs(pairs: FeaturePairs) -> None:
    source, target = tuple(pairs.source.shape), tuple(pairs.target.shape)
    if len(source) != 2 or len(target) != 2 or source[0] != target[0]:
        raise ShapeError(
            f"pairs need source features [pairs, width] and as many target features, got {source} "
            f"and {target}; row i of both is pair i"
        )
    if source[0] < MIN_PAIRS:
        raise EmptyBatchError(
            f"an alignment needs at least {MIN_PAIRS} pairs, got {source[0]}; "
            f"give more pairs, or use global_position = learned"
        )
    for name, side in zip(pairs.names, (pairs.source, pairs.target), strict=True):
        wrong = ~torch.isfinite(side).all(dim=1)
        if wrong.any():
            raise NotFiniteError(
                f"the {name} feature of pair {int(wrong.nonzero()[0])} holds NaN or infinity; look "
                f"for the cause in what encoded it, or leave the pair out"
            )


def _require_ridge(ridge: float) -> None:
    if not 0 <= ridge < float("inf"):
        raise SettingError(f"the regularisation is {ridge}; give a number of 0 or more")

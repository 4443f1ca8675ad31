"""Regularised CCA as its definition is written: inverse square roots and one decomposition."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.float64]


def covariance(left: Array, right: Array) -> Array:
    """The mean over the rows of the products of what is left of them without their mean."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for one, other in zip(left, right, strict=True):
        total += np.outer(one - left.mean(axis=0), other - right.mean(axis=0))
    return total / len(left)


def regularised(own: Array, ridge: float) -> Array:
    """A covariance of full rank with a share of its mean variance added to every direction."""
    return own + ridge * np.trace(own) / len(own) * np.eye(len(own))


def canonical(source: Array, target: Array, dim: int, ridge: float) -> tuple[Array, Array, Array]:
    """The two shrunk matrices and the correlations of features whose covariances are invertible."""
    roots = [
        np.linalg.inv(scipy.linalg.sqrtm(regularised(covariance(side, side), ridge)).real)
        for side in (source, target)
    ]
    left, correlations, right = np.linalg.svd(roots[0] @ covariance(source, target) @ roots[1])
    kept = min(dim, len(correlations))
    shrink = np.diag(correlations[:kept])
    return (
        roots[0] @ left[:, :kept] @ shrink,
        roots[1] @ right.T[:, :kept] @ shrink,
        correlations[:kept],
    )

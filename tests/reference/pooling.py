"""Hierarchical pooling, item by item and merging by merging, in float64."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def ward_clusters(vectors: ArrayLike, count: int) -> list[list[int]]:
    """The clusters of unit vectors when no more than ``count`` are left, by first member."""
    vectors = np.asarray(vectors, np.float64)
    clusters = [[place] for place in range(len(vectors))]
    while len(clusters) > count:
        one, other = min(
            combinations(range(len(clusters)), 2),
            key=lambda pair: (
                spread(vectors, clusters[pair[0]] + clusters[pair[1]])
                - spread(vectors, clusters[pair[0]])
                - spread(vectors, clusters[pair[1]])
            ),
        )
        clusters[one] += clusters.pop(other)
    return sorted(sorted(each) for each in clusters)


def spread(vectors: Array, cluster: list[int]) -> float:
    """The sum of the squared distances of a cluster's vectors from their mean."""
    members = vectors[cluster]
    return float(((members - members.mean(axis=0)) ** 2).sum())


def pooled(vectors: ArrayLike, count: int) -> Array:
    """The mean directions of the clusters of one item's vectors."""
    unit = np.array([each / np.sqrt(each @ each) for each in np.asarray(vectors, np.float64)])
    means = [unit[cluster].mean(axis=0) for cluster in ward_clusters(unit, count)]
    return np.array([mean / np.sqrt(mean @ mean) for mean in means])

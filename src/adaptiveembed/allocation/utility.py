"""Marginal utilities of expansions (Sec. 3.2): what training samples gain, from their ranks.

They are targets of training only: no policy sees them. An expansion is one edge of the space (R9),
standardised among all expansions of its step over the whole training set of a direction (R10).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.errors import SettingError, ShapeError
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.shapes import (
    EdgeUtilities,
    NodeValues,
    PerQuery,
    Ranks,
    RankTable,
    StateUtilities,
)
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.space import SelectionSpace


class UtilityKind(StrEnum):
    """How good a ranking is, of which an expansion's utility is the difference."""

    AVERAGE_PRECISION = "average-precision"
    """AP in the gallery, as in the paper."""
    LOG_RANK = "log-rank"
    """Minus the logarithm of the positive's rank: far positives count like near ones. Ours."""
    SUB_GALLERIES = "sub-galleries"
    """AP expected when only some of the other items are there, mean over several shares. Ours."""


class UtilityGallery(StrEnum):
    """Among which training items a sample is ranked, where several datasets are one training."""

    OWN = "own"
    """Those of its own dataset: what it is evaluated among (R21)."""
    JOINT = "joint"
    """Those of all datasets."""


@dataclass(frozen=True)
class UtilitySettings:
    """What an expansion is worth to the sample that it is made for."""

    kind: UtilityKind = UtilityKind.AVERAGE_PRECISION
    """``average-precision`` as in the paper; ``log-rank`` and ``sub-galleries`` hear less of the
    luck of single items."""
    gallery: UtilityGallery = UtilityGallery.OWN
    """With several datasets, whose training items a sample is ranked among: ``own`` or ``joint``.
    Thresholds and results are of each item's own dataset in either case."""
    center: bool = True
    """Whether an average expansion is worth as much as stopping, as in the paper; false leaves the
    sign of a utility as it is."""
    epsilon: float = 1e-8
    """Added to the deviation that utilities are divided by."""
    shares: tuple[float, ...] = (1.0, 0.1, 0.01)
    """For ``sub-galleries``: which shares of the other items are kept, each in turn."""

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise SettingError(f"epsilon is {self.epsilon}; give a small positive number")
        if not self.shares or not all(0 < share <= 1 for share in self.shares):
            raise SettingError(f"shares are {self.shares}; give at least one, above 0 and up to 1")


@dataclass(frozen=True)
class UtilityScale:
    """What is taken from utilities, and what they are divided by, at every step of a space."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]


def training_utilities(
    gallery: Gallery,
    queries: CandidateSets,
    positives: np.ndarray,  # not a named shape: rank_table says what to do
    space: SelectionSpace,
    settings: UtilitySettings | None = None,
) -> EdgeUtilities:
    """The marginal utility of every expansion for every query, in one pass over the gallery.

    Not standardised yet: that takes the whole training set of a direction at once, which may come
    from several galleries.
    """
    ranks = rank_table(gallery, queries, positives, space.nodes)
    return marginal_utility(node_values(ranks, settings), space)


def node_values(ranks: RankTable, settings: UtilitySettings | None = None) -> NodeValues:
    """How good each sample's ranking is under every selection; more is better."""
    settings = settings or UtilitySettings()
    if settings.kind is UtilityKind.LOG_RANK:
        return minus_log_rank(ranks)
    if settings.kind is UtilityKind.SUB_GALLERIES:
        parts = [sub_gallery_precision(ranks, share) for share in settings.shares]
        return np.asarray(np.mean(parts, axis=0))
    return average_precision(ranks)


def marginal_utility(values: NodeValues, space: SelectionSpace) -> EdgeUtilities:
    """Delta: what every expansion gains, the value at its target less the value at its source."""
    _require_rows("values", values, len(space), "nodes")
    sources = [space.index(edge.source) for edge in space.edges]
    targets = [space.index(edge.target) for edge in space.edges]
    return np.asarray(values[targets] - values[sources])


def utility_scale(
    utilities: EdgeUtilities, space: SelectionSpace, settings: UtilitySettings | None = None
) -> UtilityScale:
    """Mean and deviation over all samples and all expansions of each step."""
    settings = settings or UtilitySettings()
    _require_rows("utilities", utilities, len(space.edges), "expansions")
    steps = _steps(space)
    parts = [utilities[steps == step] for step in range(steps.max() + 1)]
    # A step without an expansion of its own has nothing to scale.
    means = [float(part.mean()) if settings.center and part.size else 0.0 for part in parts]
    deviations = [float(part.std()) if part.size else 0.0 for part in parts]
    return UtilityScale(tuple(means), tuple(each + settings.epsilon for each in deviations))


def standardized_utility(
    utilities: EdgeUtilities, space: SelectionSpace, scale: UtilityScale
) -> EdgeUtilities:
    """R~ of every expansion: its utility less the mean of its step, divided by the deviation."""
    _require_rows("utilities", utilities, len(space.edges), "expansions")
    steps = _steps(space)
    means, deviations = (np.array(each)[steps] for each in (scale.means, scale.deviations))
    return np.asarray((utilities - means[:, None]) / deviations[:, None])


def state_utilities(utilities: EdgeUtilities, space: SelectionSpace) -> StateUtilities:
    """Every sample's utility of every action at every state; 0 for STOP and where none is."""
    _require_rows("utilities", utilities, len(space.edges), "expansions")
    actions = Actions(space)
    table = torch.zeros(utilities.shape[1], *actions.admissible.shape)
    edges = torch.arange(len(space.edges))
    table[:, actions.sources, 1 + edges] = torch.from_numpy(utilities.T).float()
    return table


def minus_log_rank(ranks: Ranks) -> PerQuery:
    """Minus the logarithm of a positive's rank among the other items, mean over the positives."""
    return _mean(-np.log(_ranks_among_others(ranks)), ranks)


def sub_gallery_precision(ranks: Ranks, share: float) -> PerQuery:
    r"""The reciprocal rank expected when each other item is kept with probability ``share``.

    Of :math:`r - 1` items before a positive, X stay, binomially distributed, and
    :math:`E[1 / (1 + X)] = (1 - (1 - p)^r) / (r p)`. Several positives are taken one by one, as if
    each were the only one, and averaged. With a single positive and share 1 it is the AP.
    """
    places = _ranks_among_others(ranks)
    with np.errstate(divide="ignore"):  # the logarithm of 0, where every item is kept
        gone = np.log1p(-np.float64(share))
    return _mean(-np.expm1(places * gone) / (places * share), ranks)


def _ranks_among_others(ranks: Ranks) -> np.ndarray:
    """The rank of each positive among the items that are not relevant; filling gives 1."""
    places = np.arange(ranks.shape[-1])
    return np.where(ranks > 0, ranks - places, 1)


def _mean(terms: np.ndarray, ranks: Ranks) -> PerQuery:
    return np.asarray(np.mean(terms, axis=-1, where=ranks > 0, dtype=np.float64))


def _steps(space: SelectionSpace) -> np.ndarray:
    """The step at which each expansion is decided."""
    return np.array([space.step_of(edge.source) for edge in space.edges])


def _require_rows(name: str, table: np.ndarray, needed: int, of_what: str) -> None:
    if len(table) != needed:
        raise ShapeError(
            f"{name} have {len(table)} rows and the space has {needed} {of_what}; "
            f"make the rank table with all of space.nodes"
        )

"""Which training pairs are for what: Stage I, the policy, and validation (R13, R14)."""

from dataclasses import dataclass

import numpy as np

from adaptiveembed.errors import TrainingError
from adaptiveembed.pipeline.paired import PairedFeatures
from adaptiveembed.pipeline.recipe import SplitSettings

FEWEST_VALIDATION = 2
"""A validation set of one pair has no order to judge."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows of the training split, each kind ascending."""

    representation: np.ndarray
    """What Stage I learns from, and what the bank is made of."""
    policy: np.ndarray
    """Whose utilities teach the policy: kept from Stage I, or the same rows."""
    validation: np.ndarray
    """On which everything is chosen; never trained on."""

    @property
    def all(self) -> np.ndarray:
        """The whole training split, which is the gallery of training."""
        return np.unique(np.concatenate([self.representation, self.policy, self.validation]))

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs there are for each purpose, for records."""
        return {
            "representation": len(self.representation),
            "policy": len(self.policy),
            "validation": len(self.validation),
        }


def training_rows(data: PairedFeatures, settings: SplitSettings) -> TrainingRows:
    """The training split divided by the settings; equal seeds and rows give equal parts."""
    rows = np.random.default_rng(settings.seed).permutation(data.training)
    validation = min(round(settings.validation_share * len(rows)), settings.validation_limit)
    policy = round(settings.policy_share * len(rows))
    first, second, rest = np.split(rows, [validation, validation + policy])
    if len(first) < FEWEST_VALIDATION or len(rest) < 2:
        raise TrainingError(
            f"{data.name} have {len(rows)} pairs to train on, which gives {len(first)} for "
            f"validation and {len(rest)} for Stage I; give more pairs of split 'train', or change "
            f"splits.validation_share"
        )
    held = rest if settings.policy_share == 0 else second
    return TrainingRows(np.sort(rest), np.sort(held), np.sort(first))

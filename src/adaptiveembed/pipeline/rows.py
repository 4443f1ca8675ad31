"""Which training pairs are for what: Stage I, the policy, and validation (R13, R14)."""

from dataclasses import dataclass

import numpy as np

from adaptiveembed.data.splits import SplitSettings, folds, split_source
from adaptiveembed.errors import SettingError, TrainingError
from adaptiveembed.pipeline.paired import PairedFeatures


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
    """The training split divided by the settings; the order of the pairs changes nothing."""
    rows = data.training
    try:
        split = split_source([data.ids[row] for row in rows], settings)
    except SettingError as error:
        raise TrainingError(
            f"{data.name} have {len(rows)} pairs of split 'train': {error}"
        ) from error
    return TrainingRows(rows[split.representation], rows[split.policy], rows[split.validation])


def fold_rows(
    data: PairedFeatures, rows: TrainingRows, settings: SplitSettings
) -> tuple[TrainingRows, ...]:
    """For every fold, Stage I on the other folds and the policy on this one."""
    learned = rows.representation
    fold_of = folds([data.ids[row] for row in learned], settings.folds, settings.seed)
    return tuple(
        TrainingRows(learned[fold_of != fold], learned[fold_of == fold], rows.validation)
        for fold in range(settings.folds)
    )

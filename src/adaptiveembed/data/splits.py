"""Which pairs of the source training split train, which choose, and which teach the policy.

Readings R13 and R14. A pair is placed by a hash of its id, so that the order of a manifest changes
nothing and a pair that is added moves few others. Whatever is held out stays in the gallery.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adaptiveembed.errors import SettingError
from adaptiveembed.shapes import ItemArray
from adaptiveembed.structure.ids import distinct_ids

FEWEST = 2
"""Pairs that every part needs: with one alone, there is nothing to tell it from."""


@dataclass(frozen=True)
class SplitSettings:
    """What of the training split is kept from Stage I."""

    validation_share: float = 0.05
    """The share of training pairs on which everything is chosen (R14)."""
    validation_limit: int = 5000
    """The most pairs that validation takes."""
    policy_share: float = 0.0
    """The share of training pairs that Stage I never sees, and whose utilities teach the policy
    (R13); 0: utilities are those of Stage I's own pairs, as the paper is read. On small data those
    are known by heart and teach nothing."""
    seed: int = 0
    """Which pairs these are."""
    folds: int = 1
    """Parts that Stage I is also trained without, one after another, so that every pair teaches
    the policy by an embedder that never saw it, and none is kept from the one that is deployed;
    1: no such trainings. Ours; for little data, in place of ``policy_share``."""

    def __post_init__(self) -> None:
        for name in ("validation_share", "policy_share"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)}; give a share below 1")
        if self.validation_share == 0:
            raise SettingError(
                "validation_share is 0; thresholds are set on validation pairs, so hold some out"
            )
        if self.validation_share + self.policy_share >= 1:
            raise SettingError(
                f"validation_share {self.validation_share} and policy_share {self.policy_share} "
                f"leave nothing to Stage I; give less than 1 in all"
            )
        if self.folds < 1:
            raise SettingError(f"folds is {self.folds}; give 1 for none, or at least 2")
        if self.folds > 1 and self.policy_share > 0:
            raise SettingError(
                f"folds is {self.folds} and policy_share is {self.policy_share}; with folds every "
                f"pair teaches the policy, so set policy_share to 0"
            )
        if self.validation_limit < FEWEST:
            raise SettingError(
                f"validation_limit is {self.validation_limit}; give at least {FEWEST}"
            )


@dataclass(frozen=True, eq=False)
class SourceSplit:
    """Places of the source training pairs, each part in ascending order."""

    representation: ItemArray
    """What Stage I is trained on."""
    policy: ItemArray
    """What utilities come from: pairs held out from Stage I, or the same pairs."""
    validation: ItemArray
    """What chooses and sets the thresholds."""


def split_source(ids: Sequence[str], settings: SplitSettings | None = None) -> SourceSplit:
    """The parts of the source training split; equal arguments give equal parts."""
    settings = settings or SplitSettings()
    ids, seed = distinct_ids(ids), settings.seed
    wanted = _count(len(ids), settings.validation_share, "validation_share")
    validation = hashed_order(ids, seed, "validation")[: min(wanted, settings.validation_limit)]
    held = _count(len(ids), settings.policy_share, "policy_share") if settings.policy_share else 0
    order = hashed_order(ids, seed, "policy")
    policy = order[~np.isin(order, validation)][:held]
    representation = np.setdiff1d(np.arange(len(ids)), np.concatenate([validation, policy]))
    if len(representation) < FEWEST:
        raise SettingError(
            f"{len(ids)} pairs leave {len(representation)} to train on beside {len(validation)} "
            f"for validation and {held} for the policy; add pairs"
        )
    policy = np.sort(policy) if held else representation
    return SourceSplit(representation, policy, np.sort(validation))


def folds(ids: Sequence[str], num_folds: int, seed: int = 0) -> ItemArray:
    """The fold of each pair, from 0; folds differ by at most one pair in size."""
    ids = distinct_ids(ids)
    if not 2 <= num_folds <= len(ids) // FEWEST:
        raise SettingError(
            f"{num_folds} folds of {len(ids)} pairs were asked for; give from 2 folds to "
            f"{len(ids) // FEWEST}, {FEWEST} pairs each"
        )
    result = np.empty(len(ids), np.int64)
    result[hashed_order(ids, seed, "folds")] = np.arange(len(ids)) % num_folds
    return result


def hashed_order(ids: Sequence[str], seed: int, purpose: str) -> ItemArray:
    """The places of the ids in an order that only ids, seed and purpose decide.

    Of more ids, those that were there before stand in the same order as before.
    """
    salt = hashlib.blake2b(f"{seed} {purpose}".encode(), digest_size=16).digest()
    hashes = [_hash(each, salt) for each in ids]
    return np.array(sorted(range(len(ids)), key=hashes.__getitem__), np.int64)


def _hash(item_id: str, salt: bytes) -> bytes:
    content = item_id.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16, key=salt).digest()


def _count(pairs: int, share: float, name: str) -> int:
    """So many pairs are the share, rounded."""
    count = round(share * pairs)
    if count < FEWEST:
        raise SettingError(
            f"{name} {share} of {pairs} pairs is {count} and at least {FEWEST} are needed; add "
            f"pairs or raise {name}"
        )
    return count

"""How many pairs there are, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adaptiveembed.data.pairs import Manifest
    from adaptiveembed.pipeline.paired import PairedFeatures


def pair_counts(pairs: PairedFeatures) -> str:
    """Of what modalities encoded pairs are, and how many of each split."""
    return f"{pairs.direction}, {len(pairs.training):,} to train on, {len(pairs.queries):,} queries"


def split_counts(manifest: Manifest) -> str:
    """How many pairs of a manifest each split has."""
    counts = [f"{len(manifest.split(name)):,} {name}" for name in manifest.splits]
    return ", ".join(counts) or "no splits"

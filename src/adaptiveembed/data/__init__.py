"""Inputs: where candidate sets and media come from.

May import ``structure`` and what lies below it; knows nothing of galleries and measures.
"""

from adaptiveembed.data.synthetic import SyntheticSettings, synthetic_pairs

__all__ = ["SyntheticSettings", "synthetic_pairs"]

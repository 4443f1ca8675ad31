"""Galleries, exact search and rank tables, for selections that are given.

May import similarity, metrics, structure, errors and shapes. Knows selections, never policies.
"""

from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.ragged_ranks import maxsim_ranks
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.retrieval.ranking import Hit, Ranking, Rankings
from adaptiveembed.retrieval.search import score_gallery, search

__all__ = [
    "Gallery",
    "Hit",
    "Ranking",
    "Rankings",
    "maxsim_ranks",
    "rank_table",
    "score_gallery",
    "search",
]

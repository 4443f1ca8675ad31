"""Who gets how much: allocators turn candidate sets into a selection per item (Stage II).

``bank`` and ``feedback`` make what a policy reads, ``policy`` says how probable every action is,
``mua`` walks by that, and ``adaptive`` is all of it as one allocator; ``utility`` and ``upo`` are
what a policy learns by, ``thresholds`` what it is tuned by. May import ``retrieval`` and what lies
below it; ``retrieval`` never knows of allocators.
"""

from adaptiveembed.allocation.adaptive import AdaptiveAllocator, Decision, Explanation
from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.fixed import FixedAllocator
from adaptiveembed.allocation.oracle import OracleAllocator, oracle_choice

__all__ = [
    "AdaptiveAllocator",
    "Allocator",
    "Decision",
    "Explanation",
    "FixedAllocator",
    "OracleAllocator",
    "RetrievalBank",
    "oracle_choice",
]

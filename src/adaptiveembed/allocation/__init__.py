"""Who gets how much: allocators turn candidate sets into a selection per item (Stage II).

May import ``retrieval`` and what lies below it; ``retrieval`` never knows of allocators.
"""

from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.allocation.fixed import FixedAllocator
from adaptiveembed.allocation.oracle import OracleAllocator, oracle_choice

__all__ = ["Allocator", "FixedAllocator", "OracleAllocator", "oracle_choice"]

"""Work shared among threads: kernels release the interpreter, so plain threads keep every core busy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Part], Result], parts: Sequence[Part], num_threads: int
) -> list[Result]:
    """The results of all parts, in their order."""
    if num_threads == 1 or len(parts) < 2:
        return [work(part) for part in parts]
    return list(_pool(os.getpid(), num_threads).map(work, parts))


def even_parts(count: int, num_parts: int, multiple: int) -> list[slice]:
    """Slices that cover `count`, at most `num_parts`, each but the last a multiple long."""
    size = -(-count // (num_parts * multiple)) * multiple
    return (
        [slice(start, min(start + size, count)) for start in range(0, count, size)] if count else []
    )


@lru_cache(maxsize=4)
def _pool(_process: int, num_threads: int) -> ThreadPoolExecutor:
    # A forked child inherits no threads: the process is part of the key.
    return ThreadPoolExecutor(num_threads, thread_name_prefix="adaptiveembed")

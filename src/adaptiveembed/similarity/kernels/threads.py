"""Work shared among threads: kernels release the interpreter, so plain threads keep cores busy."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

PARTS_PER_THREAD = 4
"""More parts than threads: a core that is busy with something else takes fewer of them."""

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Part], Result], parts: Sequence[Part], num_threads: int
) -> list[Result]:
    """The results of all parts, in their order."""
    if num_threads == 1 or len(parts) < 2:
        return [work(part) for part in parts]
    return list(_pool(os.getpid(), num_threads).map(work, parts))


def even_parts(count: int, num_threads: int, multiple: int) -> list[slice]:
    """Slices that cover `count`: each but the last of one length, a multiple of the multiple."""
    size = -(-count // (PARTS_PER_THREAD * num_threads * multiple)) * multiple
    return [slice(start, min(start + size, count)) for start in range(0, count, size or 1)]


@lru_cache(maxsize=4)
def _pool(_process: int, num_threads: int) -> ThreadPoolExecutor:
    # A forked child inherits no threads: the process is part of the key.
    return ThreadPoolExecutor(num_threads, thread_name_prefix="adaptiveembed")

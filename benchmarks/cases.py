"""What is measured. Ours is the public function, on the tensors that a user has."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from adaptiveembed import (
    CAES,
    PAPER_LAYOUT,
    CandidateSets,
    Gallery,
    Selection,
    every_prefix,
    rank_table,
    search,
    setsim_matrix,
)
from adaptiveembed.similarity.assignment import best_assignment, best_total
from benchmarks.allocation import allocations
from benchmarks.encoding import encoding
from benchmarks.feature_store import feature_batches
from benchmarks.timing import Contenders, Result, against_fastest, interleaved
from benchmarks.training_step import training_steps

QUERIES, ITEMS, SEARCHED, TOP = 64, 20_000, 100_000, 10
ROUNDS = 9

CAPACITIES = {1: (1, 0), 2: (1, 1), 4: (2, 2), 8: (4, 4)}
"""A selection of each capacity that is compared."""


def all_pairs() -> Iterator[Result]:
    """(a) SetSim of all pairs beside the float32 product that feeds it."""
    for dim in (256, 1024):
        for capacity in CAPACITIES:
            queries, gallery = unit_sets(QUERIES, capacity, dim), unit_sets(ITEMS, capacity, dim)
            contenders: Contenders = {
                "setsim_matrix": lambda q=queries, g=gallery: setsim_matrix(q, g)
            }
            contenders |= products(queries.flatten(0, 1), gallery.flatten(0, 1))
            goal = "1.15" if capacity <= 4 else {256: "1.6", 1024: "1.25"}[dim]
            setting = f"{QUERIES} x {ITEMS:,}, k={capacity}, d={dim}"
            seconds = interleaved(contenders, ROUNDS)
            yield against_fastest("a all pairs / product", setting, f"<= {goal}", seconds)


def top_ten() -> Iterator[Result]:
    """(b) Exact top-10 beside the product of the same vectors, which search itself never forms."""
    candidates = CandidateSets(unit_sets(SEARCHED, 8, 256), PAPER_LAYOUT)
    gallery = Gallery.from_candidates([str(item) for item in range(SEARCHED)], candidates)
    del candidates
    for count in (QUERIES, 1):
        queries = CandidateSets(unit_sets(count, 8, 256), PAPER_LAYOUT)
        for capacity, lengths in CAPACITIES.items():
            selection = Selection(PAPER_LAYOUT, lengths)
            caes = CAES(queries, (selection,) * count)
            left = queries.vectors[:, list(selection.positions)].flatten(0, 1)
            rows = gallery.rows[list(selection.positions)]
            right = torch.from_numpy(rows.reshape(-1, gallery.dim))
            contenders: Contenders = {"search": lambda c=caes: search(gallery, c, TOP)} | products(
                left, right
            )
            goal = "<= 0.7" if count > 1 else "report"
            setting = f"{count} x {SEARCHED:,}, k={capacity}, d=256"
            seconds = interleaved(contenders, 5)
            yield against_fastest("b top-10 / product", setting, goal, seconds)


def assignments() -> Iterator[Result]:
    """(c) Assignment alone, on one thread: matrices of cosines in, columns out."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for size in CAPACITIES:
        cosines = torch.rand(ITEMS, size, size, generator=generator()) * 2 - 1
        contenders: Contenders = {"best_assignment": lambda c=cosines: best_assignment(c)}
        contenders |= solvers(cosines)
        result = against_fastest(
            "c assignment / best peer",
            f"{ITEMS:,} matrices, k={size}",
            "<= 1/50" if size <= 4 else "<= 1/25",
            interleaved(contenders, 5),
        )
        yield result
    torch.set_num_threads(threads)


def numba() -> Iterator[Result]:
    """(c) The same program in Numba, on one thread, totals alone: why kernels are written as IR."""
    from benchmarks.numba_lanes import best_totals  # noqa: PLC0415

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for size in CAPACITIES:
        cosines = torch.rand(ITEMS, size, size, generator=generator()) * 2 - 1
        array, totals = cosines.numpy(), np.empty(ITEMS, np.float32)
        contenders: Contenders = {
            "best_total": lambda c=cosines: best_total(c),
            "Numba, 160 lanes": lambda a=array, t=totals: best_totals(a, t),
        }
        setting = f"{ITEMS:,} matrices, k={size}"
        seconds = interleaved(contenders, ROUNDS)
        assert torch.equal(torch.from_numpy(totals), best_total(cosines))
        yield against_fastest("c totals / Numba", setting, "report", seconds)
    torch.set_num_threads(threads)


def maxsim_peers() -> Iterator[Result]:
    """(d) SetSim beside the MaxSim of two libraries, on the same shapes."""
    for capacity in CAPACITIES:
        queries, gallery = unit_sets(QUERIES, capacity, 256), unit_sets(ITEMS, capacity, 256)
        contenders: Contenders = {"setsim_matrix": lambda q=queries, g=gallery: setsim_matrix(q, g)}
        for name, peer in maxsims(queries, gallery).items():
            seconds = interleaved(contenders | {name: peer}, 3)
            setting = f"{QUERIES} x {ITEMS:,}, k={capacity}, d=256"
            yield against_fastest(f"d setsim / maxsim of {name}", setting, "< 1", seconds)


def rank_tables() -> Iterator[Result]:
    """(e) Ranks under all twenty selections beside one product of all vectors."""
    queries = CandidateSets(unit_sets(QUERIES, 8, 256), PAPER_LAYOUT)
    gallery = Gallery.from_candidates(
        [str(item) for item in range(ITEMS)], CandidateSets(unit_sets(ITEMS, 8, 256), PAPER_LAYOUT)
    )
    positives = np.arange(QUERIES)[:, None]
    nodes = every_prefix(PAPER_LAYOUT).nodes
    right = torch.from_numpy(gallery.rows.reshape(-1, 256))
    contenders: Contenders = {
        "rank_table": lambda: rank_table(gallery, queries, positives, nodes),
        **products(queries.vectors.flatten(0, 1), right),
    }
    setting = f"{QUERIES} x {ITEMS:,}, 20 selections, d=256"
    seconds = interleaved(contenders, ROUNDS)
    yield against_fastest("e rank table / product", setting, "<= 2", seconds)


CASES: tuple[Callable[[], Iterator[Result]], ...] = (
    all_pairs,
    top_ten,
    assignments,
    numba,
    maxsim_peers,
    rank_tables,
    training_steps,
    allocations,
    feature_batches,
    encoding,
)


def products(left: Tensor, right: Tensor) -> Contenders:
    """The product by two libraries, into memory that is there already: what they do best."""
    out = torch.empty(len(left), len(right))
    first, second, result = left.numpy(), right.numpy(), out.numpy()
    return {
        "numpy product": lambda: np.matmul(first, second.T, out=result),
        "torch product": lambda: torch.matmul(left, right.T, out=out),
    }


def solvers(cosines: Tensor) -> Contenders:
    """Assignment by other libraries, which minimise."""
    import lap  # noqa: PLC0415 - peers are imported where they are measured
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415
    from torch_linear_assignment import batch_linear_assignment  # noqa: PLC0415

    costs = -cosines
    arrays = costs.numpy()
    return {
        "scipy": lambda: [linear_sum_assignment(each)[1] for each in arrays],
        "lapx": lambda: [lap.lapjvx(each, return_cost=False)[1] for each in arrays],
        "lapx batch": lambda: lap.lapjvx_batch(arrays, return_cost=False, n_threads=1),
        "torch-linear-assignment": lambda: batch_linear_assignment(costs),
    }


def maxsims(queries: Tensor, gallery: Tensor) -> Contenders:
    """MaxSim of all pairs by other libraries."""
    import maxsim_cpu  # noqa: PLC0415
    from sentence_transformers.util import maxsim  # noqa: PLC0415

    documents = gallery.numpy()
    return {
        "sentence-transformers": lambda: maxsim(queries, gallery),
        "maxsim-cpu": lambda: [
            maxsim_cpu.maxsim_scores(each, documents) for each in queries.numpy()
        ],
    }


def unit_sets(count: int, capacity: int, dim: int) -> Tensor:
    """Random directions: scores crowd together, which is the hardest case for ruling pairs out."""
    vectors = torch.randn(count, capacity, dim, generator=generator())
    return torch.nn.functional.normalize(vectors, dim=-1)


def generator() -> torch.Generator:
    """The same numbers in every run."""
    return torch.Generator().manual_seed(0)

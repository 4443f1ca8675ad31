"""(h) Adaptive search with its allocation, beside the match of a fixed capacity that costs less."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from adaptiveembed import (
    PAPER_LAYOUT,
    CandidateSets,
    Gallery,
    coarse_to_fine,
    maxsim_matrix,
    search,
)
from adaptiveembed.allocation.adaptive import AdaptiveAllocator
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import policy_inputs
from adaptiveembed.allocation.policy import PolicySettings, action_probabilities, make_policy
from adaptiveembed.allocation.thresholds import threshold_curve
from benchmarks.timing import Contenders, Result, against_fastest, interleaved

BANK, GALLERY, QUERIES, MANY, DIM, TOP = 4096, 100_000, 64, 1000, 256, 10
MEAN_CAPACITY = 2.1
"""What the paper reports on COCO."""

ROUNDS = 7

TILE = 4_000
"""Gallery items whose products the peer holds at a time: few enough to stay in a cache."""

RELUCTANCE = (0.0, 0.0, -1.0, -1.0, -3.0)
"""Added to the logits of the paper's five expansions, so that larger ones are rarer."""


def allocations() -> Iterator[Result]:
    """(h) Feedback, policy and search beside MaxSim of 2 query and 4 gallery vectors (R17)."""
    allocator = adaptive_allocator()
    yield allocation_alone(allocator)
    candidates = CandidateSets(unit_sets(GALLERY, 8, seed=2), PAPER_LAYOUT)
    stored = candidates.vectors[:, :4].contiguous()
    gallery = Gallery.from_candidates([str(item) for item in range(GALLERY)], candidates)
    del candidates
    queries = CandidateSets(unit_sets(QUERIES, 8, seed=3), PAPER_LAYOUT)
    pair = queries.vectors[:, :2].contiguous()
    scores = maxima(pair, stored.transpose(0, 1).contiguous())
    torch.testing.assert_close(scores(), maxsim_matrix(pair, stored))
    contenders: Contenders = {
        "allocate and search": lambda: search(gallery, allocator.allocate(queries), TOP),
        "maxsim_matrix, top 10": lambda: maxsim_matrix(pair, stored).topk(TOP),
        "products and maxima, top 10": lambda: scores().topk(TOP),
    }
    capacity = allocator.allocate(queries).capacities.float().mean()
    seconds = interleaved(contenders, ROUNDS)
    setting = f"{QUERIES} x {GALLERY:,}, bank {BANK:,}, mean k={capacity:.2f}, d={DIM}"
    yield against_fastest("h allocate + match / MetaEmbed (2/4)", setting, "< 1", seconds)


def allocation_alone(allocator: AdaptiveAllocator) -> Result:
    """Allocation of many queries beside the product of all their vectors with all of the bank's."""
    queries = CandidateSets(unit_sets(MANY, 8, seed=3), PAPER_LAYOUT)
    left, right = queries.vectors.flatten(0, 1), allocator.bank.candidates.vectors.flatten(0, 1)
    capacity = allocator.allocate(queries).capacities.float().mean()
    product = torch.empty(len(left), len(right))
    contenders: Contenders = {
        "allocate": lambda: allocator.allocate(queries),
        "product": lambda: torch.matmul(left, right.T, out=product),
    }
    setting = f"{MANY:,} queries, bank {BANK:,}, mean k={capacity:.2f}, d={DIM}"
    return against_fastest(
        "h allocation / product with the bank", setting, "report", interleaved(contenders, ROUNDS)
    )


def adaptive_allocator() -> AdaptiveAllocator:
    """A policy that has learned nothing, at the threshold of the paper's mean capacity."""
    space = coarse_to_fine(PAPER_LAYOUT)
    bank = RetrievalBank(
        tuple(str(item) for item in range(BANK)),
        CandidateSets(unit_sets(BANK, 8, seed=0), PAPER_LAYOUT),
    )
    policy = make_policy(PolicySettings(), space, DIM, depth=50)
    with torch.no_grad():
        policy.get_parameter("head.2.bias")[1:] += torch.tensor(RELUCTANCE)
        seen = policy_inputs(CandidateSets(unit_sets(MANY, 8, seed=1), PAPER_LAYOUT), bank, space)
        probabilities = action_probabilities(policy(seen))
    worthless = torch.zeros(len(space), MANY, dtype=torch.float64).numpy()
    curve = threshold_curve(probabilities, worthless, policy.actions)
    place = int((curve.capacity <= MEAN_CAPACITY).sum()) - 1
    return AdaptiveAllocator(policy, bank, float(curve.thresholds[place]))


def maxima(queries: Tensor, positions: Tensor) -> Callable[[], Tensor]:
    """MaxSim of all pairs, one vector of some gallery items at a time, into memory that is there.

    Of four ways to write it by hand this was the fastest.
    """
    rows, (_, count, _) = queries.flatten(0, 1), positions.shape
    scores = torch.empty(len(queries), count)
    found, product = torch.empty(2, len(rows), TILE).unbind()

    def run() -> Tensor:
        for start in range(0, count, TILE):
            first, *others = positions[:, start : start + TILE]
            torch.matmul(rows, first.T, out=found)
            for stored in others:
                torch.maximum(found, torch.matmul(rows, stored.T, out=product), out=found)
            own = scores[:, start : start + TILE]
            torch.sum(found.view(*queries.shape[:2], TILE), dim=1, out=own)
        return scores

    return run


def unit_sets(count: int, capacity: int, seed: int) -> Tensor:
    """Random directions."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(count, capacity, DIM, generator=generator)
    return torch.nn.functional.normalize(vectors, dim=-1)

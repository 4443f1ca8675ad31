"""Interleaved timing: every contender runs once a round, and their medians are compared."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

Contenders = dict[str, Callable[[], object]]

REST = 0.05
"""Seconds between two measurements: threads that a library keeps spinning after its call go to
sleep, and take no part in the time of the next."""


SHORTEST = 0.02
"""Seconds that a measurement should last: a core that has slept is slow for its first call."""


@dataclass(frozen=True)
class Result:
    """One line of the table: how long ours took, divided by how long the peer took."""

    case: str
    setting: str
    peer: str
    ratio: float
    goal: str
    seconds: dict[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, object]:
        return asdict(self)


def interleaved(contenders: Contenders, rounds: int) -> dict[str, float]:
    """The median seconds of each contender; short calls are repeated within a measurement."""
    repeats = {name: _repeats(run) for name, run in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            time.sleep(REST)
            seconds[name].append(_measured(run, repeats[name]))
    return {name: statistics.median(each) for name, each in seconds.items()}


def _repeats(run: Callable[[], object]) -> int:
    """How many calls fill a measurement; the first call warms up and is not counted."""
    run()
    return max(1, int(SHORTEST / _measured(run, 1)))


def _measured(run: Callable[[], object], repeats: int) -> float:
    """Seconds of one call, as the mean of some in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def against_fastest(case: str, setting: str, goal: str, seconds: dict[str, float]) -> Result:
    """The first contender beside the fastest of the others."""
    ours, *peers = seconds
    peer = min(peers, key=lambda name: seconds[name])
    return Result(case, setting, peer, seconds[ours] / seconds[peer], goal, seconds)

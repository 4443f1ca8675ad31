"""Interleaved timing: every contender runs once a round, and their medians are compared."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

Contenders = dict[str, Callable[[], object]]

REST = 0.05
"""Seconds between two measurements: threads that a library keeps spinning after its call go to
sleep, and take no part in the time of the next."""


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
    """The median seconds of each contender; the first round warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            time.sleep(REST)
            start = time.perf_counter()
            run()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def against_fastest(case: str, setting: str, goal: str, seconds: dict[str, float]) -> Result:
    """The first contender beside the fastest of the others."""
    ours, *peers = seconds
    peer = min(peers, key=lambda name: seconds[name])
    return Result(case, setting, peer, seconds[ours] / seconds[peer], goal, seconds)

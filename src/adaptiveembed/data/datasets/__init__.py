"""The paper's eight benchmarks, from their publishers' annotation files and media to manifests."""

from adaptiveembed.data.datasets.benchmarks import FACTS, Benchmark, Facts
from adaptiveembed.data.datasets.building import Built, build, write
from adaptiveembed.data.datasets.comparing import compared
from adaptiveembed.data.datasets.rules import BuildRules, EventOrder, NarrativeChoice

__all__ = [
    "FACTS",
    "Benchmark",
    "BuildRules",
    "Built",
    "EventOrder",
    "Facts",
    "NarrativeChoice",
    "build",
    "compared",
    "write",
]

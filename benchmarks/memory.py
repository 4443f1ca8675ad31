"""(f) Peak memory of the same work, each piece in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

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
from adaptiveembed.representation.mgcl import MultiGroupContrastiveLoss, group_prefixes
from benchmarks.cases import ITEMS, QUERIES, SEARCHED, TOP, unit_sets
from benchmarks.training_step import step, unit_pairs

MEGABYTE = 1 << 20

BATCH = 2_048
"""The paper's batch of Stage I."""


def peaks() -> Iterator[dict[str, object]]:
    """Megabytes that each piece of work took beyond what was there before it."""
    for name in WORK:
        command = [sys.executable, "-m", "benchmarks.memory", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield json.loads(done.stdout)


def all_pairs() -> Callable[[], object]:
    queries, gallery = unit_sets(QUERIES, 8, 256), unit_sets(ITEMS, 8, 256)
    setsim_matrix(queries[:1], gallery[:16])
    return lambda: setsim_matrix(queries, gallery)


def product() -> Callable[[], object]:
    queries = unit_sets(QUERIES, 8, 256).flatten(0, 1).numpy()
    gallery = unit_sets(ITEMS, 8, 256).flatten(0, 1).numpy()
    return lambda: queries @ gallery.T


def top_ten() -> Callable[[], object]:
    gallery = _gallery(SEARCHED)
    queries = CandidateSets(unit_sets(QUERIES, 8, 256), PAPER_LAYOUT)
    caes = CAES(queries, (Selection.full(PAPER_LAYOUT),) * QUERIES)
    search(gallery, caes[:1], TOP)
    return lambda: search(gallery, caes, TOP)


def rank_tables() -> Callable[[], object]:
    gallery = _gallery(ITEMS)
    queries = CandidateSets(unit_sets(QUERIES, 8, 256), PAPER_LAYOUT)
    nodes, positives = every_prefix(PAPER_LAYOUT).nodes, np.arange(QUERIES)[:, None]
    rank_table(gallery, queries[:1], positives[:1], nodes)
    return lambda: rank_table(gallery, queries, positives, nodes)


def training_step() -> Callable[[], object]:
    mgcl = MultiGroupContrastiveLoss(PAPER_LAYOUT, group_prefixes(PAPER_LAYOUT), temperature=0.03)
    step(mgcl, *unit_pairs(16))()
    return step(mgcl, *unit_pairs(BATCH))


WORK: dict[str, Callable[[], Callable[[], object]]] = {
    f"setsim_matrix, {QUERIES} x {ITEMS:,}, k=8, d=256": all_pairs,
    f"its product alone (numpy), {QUERIES} x {ITEMS:,}": product,
    f"search, {QUERIES} x {SEARCHED:,}, k=8, d=256": top_ten,
    f"rank_table, {QUERIES} x {ITEMS:,}, 20 selections": rank_tables,
    f"mgcl_loss and its gradients, {BATCH:,} pairs, d=256": training_step,
}


def _gallery(items: int) -> Gallery:
    candidates = CandidateSets(unit_sets(items, 8, 256), PAPER_LAYOUT)
    return Gallery.from_candidates([str(item) for item in range(items)], candidates)


def _measure(name: str) -> dict[str, object]:
    work = WORK[name]()
    torch.empty(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
    before = _status("VmRSS")
    work()
    return {"work": name, "megabytes": (_status("VmHWM") - before) / MEGABYTE}


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (each for each in lines if each.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))

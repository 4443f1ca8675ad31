"""The same bits on a narrower processor: the kernels for AVX2, run on whatever this machine is."""

import json
import subprocess
import sys

import llvmlite.binding as llvm
import pytest
import torch

from adaptiveembed.retrieval import Gallery, search
from adaptiveembed.similarity import setsim_matrices, setsim_matrix
from adaptiveembed.structure import CAES, PAPER_LAYOUT, CandidateSets, every_prefix

NARROW = """
import json, sys
import llvmlite.binding as llvm
wide = llvm.get_host_cpu_features()
missing = ("512", "vnni")
narrow = {name: on for name, on in wide.items() if not any(part in name for part in missing)}
features = ",".join(("+" if narrow.get(name) else "-") + name for name in wide)
class Features(dict):
    def flatten(self):
        return features
llvm.get_host_cpu_features = lambda: Features(narrow)
llvm.get_host_cpu_name = lambda: "haswell"
sys.path.insert(0, ".")
from adaptiveembed.similarity.kernels.compiler import has_byte_product, lanes
assert (lanes(), has_byte_product()) == (8, False)
from tests.similarity.test_portability import scores_and_places
json.dump(scores_and_places(), sys.stdout)
"""


def scores_and_places() -> list[list[float]]:
    """What the kernels say about some sets, as exact text."""
    generator = torch.Generator().manual_seed(3)
    sets = torch.randn(1_300, 8, 37, generator=generator)
    candidates = CandidateSets.normalized(sets, PAPER_LAYOUT)
    matrix = setsim_matrix(candidates.vectors[:20, :5], candidates.vectors[:40, :5])
    asking = candidates.vectors[:16].clone().requires_grad_()
    prefixes = setsim_matrices(asking, candidates.vectors[:40], [(0, 1, 2), (0, 1), (4, 5, 6)])
    (gradient,) = torch.autograd.grad((torch.stack(prefixes) ** 2).sum(), asking)
    gallery = Gallery.from_candidates([str(item) for item in range(1_300)], candidates)
    nodes = every_prefix(PAPER_LAYOUT).nodes
    found = search(gallery, CAES(candidates[:20], nodes), 5)
    return [
        matrix.flatten().tolist(),
        torch.stack(prefixes).flatten().tolist(),
        gradient.flatten().tolist(),
        found.scores.flatten().tolist(),
        found.indices.flatten().tolist(),
    ]


@pytest.mark.skipif("avx512f" not in llvm.get_host_cpu_features(), reason="not a wide processor")
def test_a_narrow_processor_without_byte_products_gives_the_same_bits():
    command = [sys.executable, "-c", NARROW]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == scores_and_places()

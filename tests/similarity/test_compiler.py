"""Kernels are compiled once and kept; the folder they are kept in can cost time, never a result."""

import os
import subprocess
import sys

import pytest
import torch

from adaptiveembed.similarity import setsim_matrix

PROGRAM = """
import torch
from adaptiveembed.similarity import setsim_matrix
sets = torch.nn.functional.normalize(torch.arange(120.0).sin().reshape(10, 3, 4), dim=-1)
print(setsim_matrix(sets, sets).numpy().tobytes().hex())
"""


def scores_here():
    sets = torch.nn.functional.normalize(torch.arange(120.0).sin().reshape(10, 3, 4), dim=-1)
    return setsim_matrix(sets, sets).numpy().tobytes().hex()


def scores_of_a_new_process(cache):
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not found.stderr
    return found.stdout.strip()


def kept(cache):
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*.o")}


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory):
    """A cache that one process has filled, and what it printed."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, scores_of_a_new_process(cache)


def test_a_kept_kernel_gives_the_same_bits(filled_cache):
    cache, first = filled_cache
    before = kept(cache)
    assert before
    assert scores_of_a_new_process(cache) == first == scores_here()
    assert kept(cache) == before  # read, not compiled again


def test_nothing_but_whole_kernels_is_left_in_the_cache(filled_cache):
    cache, _ = filled_cache
    assert {path for path in cache.rglob("*") if path.is_file()} == set(kept(cache))


def test_a_folder_that_cannot_be_written_costs_no_result(tmp_path):
    (tmp_path / "adaptiveembed").write_text("in the way")
    assert scores_of_a_new_process(tmp_path) == scores_here()


def test_a_damaged_kernel_is_compiled_again(filled_cache, tmp_path):
    cache, first = filled_cache
    for path in cache.rglob("*.o"):
        copy = tmp_path / path.relative_to(cache)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes()[:-100])
    assert scores_of_a_new_process(tmp_path) == first

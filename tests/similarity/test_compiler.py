"""Kernels are compiled once and kept; the folder they are kept in can cost time, never a result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from adaptiveembed.similarity import setsim_matrix
from adaptiveembed.similarity.kernels.matching import totals_kernel

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


FIRST_CALLS_TOGETHER = """
import sys, threading, torch
from adaptiveembed import setsim_matrix
sys.setswitchinterval(1e-6)
sets = torch.nn.functional.normalize(torch.randn(20, 8, 8), dim=-1)
barrier, wrong = threading.Barrier(8), []
def first_call(capacity):
    part = sets[:, :capacity].contiguous()
    expected = setsim_matrix(part.double(), part.double()).float()
    barrier.wait()
    if not torch.allclose(setsim_matrix(part, part), expected, atol=1e-6):
        wrong.append(capacity)
threads = [threading.Thread(target=first_call, args=(capacity,)) for capacity in range(1, 9)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
"""


def test_threads_that_compile_at_once_get_their_own_kernels(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):  # compiling, then reading what was kept
        command = [sys.executable, "-c", FIRST_CALLS_TOGETHER]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr


def test_without_a_home_kernels_are_compiled_all_the_same(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    totals_kernel.__wrapped__(3)

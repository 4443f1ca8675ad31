"""Several processes, started by torchrun, do what one does."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from adaptiveembed.pipeline.dataset import open_dataset
from tests.pipeline.tiny import ENCODERS, SET, write_corpus

ROOT = Path(__file__).parents[2]
TORCHRUN = sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"
BY_TINY = [part for one in ENCODERS for part in ("--encoder", one)]


def together(*command):
    """A command in two processes; what they print."""
    arguments = [*TORCHRUN, "-m", "adaptiveembed.cli", *map(str, command)]
    done = subprocess.run(
        arguments, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_encode_and_train_what_one_does(call, tmp_path):
    manifest = write_corpus(tmp_path / "own")
    done = together("encode", manifest, "--output", tmp_path / "two", *BY_TINY)
    assert "process 1 of 2: image: 45 encoded, 0 stored before, 0 failed" in done
    assert "process 2 of 2: text: 45 encoded, 0 stored before, 0 failed" in done
    assert done.count("The dataset is in") == 1
    assert call("encode", manifest, "--output", tmp_path / "one", *BY_TINY).status == 0
    one, two = (open_dataset(tmp_path / name).pairs for name in ("one", "two"))
    assert one.ids == two.ids
    for mine, theirs in ((one.source, two.source), (one.target, two.target)):
        np.testing.assert_array_equal(mine.global_features(), theirs.global_features())

    train = ["train", tmp_path / "one", *SET, "--output"]
    told = together(*train, tmp_path / "together")
    assert told.count("The model is in") == 1
    assert call(*train, tmp_path / "alone").status == 0
    weights = [load_file(tmp_path / run / "model" / "embedder.safetensors") for run in RUNS]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], rtol=1e-3, atol=1e-4)


RUNS = "together", "alone"

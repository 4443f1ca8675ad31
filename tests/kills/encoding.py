"""Kill `adaptiveembed encode` at random, go on, and compare with a run that was left in peace.

`python -m tests.kills.encoding --pictures 20000 --kills 5` prints what it did; a test kills a small
one. Each process is killed (SIGKILL) when the store holds a number of items that a seed decides.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from adaptiveembed.data.feature_index import read_index
from adaptiveembed.data.scenes.corpus import write_scenes
from adaptiveembed.errors import FeatureStoreError
from adaptiveembed.pipeline.dataset import open_dataset
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import Features

ROOT = Path(__file__).parents[2]
COMPARED = 1_000
"""Items that are read at a time."""


def kill_and_compare(folder: Path, pictures: int, kills: int, seed: int) -> Iterator[str]:
    """What happened in each run; an assertion fails where the dataset is not as it should be."""
    manifest = write_scenes(folder / "corpus", pictures, Modality.IMAGE, seed)
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    begun = time.monotonic()
    assert _encoding(manifest, undisturbed).wait() == 0
    yield f"undisturbed: {time.monotonic() - begun:.0f} s"
    generator = random.Random(seed)
    for kill in range(kills):
        there = _stored(disturbed)
        target = there + generator.randint(1, max(1, (2 * pictures - there) // (kills - kill + 1)))
        process = _encoding(manifest, disturbed)
        while process.poll() is None and _stored(disturbed) < min(target, 2 * pictures):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        yield f"kill {kill + 1}: {_stored(disturbed):,} of {2 * pictures:,} items there"
    assert _encoding(manifest, disturbed).wait() == 0
    one, other = (open_dataset(place).pairs for place in (undisturbed, disturbed))
    assert one.ids == other.ids
    assert one.splits == other.splits
    _require_same(one.source, other.source)
    _require_same(one.target, other.target)
    yield f"all {len(one):,} pairs are equal, bit for bit"


def _encoding(manifest: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "adaptiveembed.cli", "encode", str(manifest)]
    return subprocess.Popen(
        [*command, "--output", str(folder)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _stored(folder: Path) -> int:
    """Items committed so far, of both sides."""
    total = 0
    for side in (Modality.TEXT, Modality.IMAGE):
        try:
            total += len(read_index(folder / side).ids)
        except FeatureStoreError:  # not begun
            continue
    return total


def _require_same(one: Features, other: Features) -> None:
    for start in range(0, len(one), COMPARED):
        places = range(start, min(start + COMPARED, len(one)))
        mine, theirs = one.read(places), other.read(places)
        assert torch.equal(mine.global_feature, theirs.global_feature)
        assert torch.equal(mine.mask, theirs.mask)
        assert torch.equal(mine.hidden_states, theirs.hidden_states)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kills.encoding", description=__doc__)
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in kill_and_compare(Path(folder), given.pictures, given.kills, given.seed):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

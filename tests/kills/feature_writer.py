"""Kill a feature writer at random bytes, go on, and compare with a store that was left in peace.

`python -m tests.kills.feature_writer --kills 20` prints what it did; a test runs three kills.

The writer is a process of its own that kills itself (SIGKILL) in the middle of writing, after a
number of bytes that a seed decides; the last run is left alone. All the while a reader in this
process looks at the store: what it sees must be a prefix of the undisturbed store, bit for bit, and
what it has opened must never change.
"""

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from adaptiveembed.data import feature_writer
from adaptiveembed.data.feature_index import GLOBAL_FEATURE, HIDDEN_STATES, INDEX
from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.errors import FeatureStoreError
from adaptiveembed.structure.encoded import EncodedMedia

COMMITS, WIDTH, LONGEST = 40, 16, 6


def kill_and_compare(folder: Path, kills: int, seed: int) -> Iterator[str]:
    """What happened in each run; an assertion fails where the store is not as it should be."""
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    write(undisturbed)
    expected = FeatureStore.open(undisturbed)
    generator, readers = random.Random(seed), []
    with _writers(disturbed) as writers:
        for kill in range(kills):
            # never all that is left, so that every run is killed
            left = _size(undisturbed) - _size(disturbed)
            limit = generator.randrange(1, 1 + max(1, left // (kills - kill + 1)))
            code = _watched_run(writers, limit, lambda: _look(disturbed, expected, readers))
            assert code == -signal.SIGKILL, code
            seen = len(readers[-1]) if readers else 0
            yield f"kill {kill + 1} after {limit:,} bytes: {seen} of {len(expected)} items there"
        assert _watched_run(writers, None, lambda: _look(disturbed, expected, readers)) == 0
    for reader in readers:
        _require_prefix(reader, expected)
    _require_same_files(undisturbed, disturbed)
    yield f"{len(readers)} readers saw prefixes of the undisturbed store; all files are equal"


def _size(folder: Path) -> int:
    """Bytes of a store."""
    paths = [folder / name for name in (INDEX, GLOBAL_FEATURE, HIDDEN_STATES)]
    return sum(path.stat().st_size for path in paths if path.exists())


def write(folder: Path, after: int | None = None) -> None:
    """Write every commit that is not there yet; kill this process after so many bytes."""
    if after is not None:
        feature_writer.write_all = _writing_at_most(after)
    with FeatureWriter(folder, "encoder", WIDTH) as writer:
        for number in range(COMMITS):
            encoded = _commit(number)
            ids = [f"item {number}.{place}" for place in range(len(encoded))]
            writer.append(ids, [f"key of {each}" for each in ids], encoded)


def _writing_at_most(limit: int):
    """Like ``write_all``, up to a byte at which the process is killed."""
    written = 0

    def write_all(file, content):
        nonlocal written
        rest = limit - written
        written += file.write(content[:rest])
        if rest < len(content):
            os.kill(os.getpid(), signal.SIGKILL)

    return write_all


def _commit(number: int) -> EncodedMedia:
    generator = torch.Generator().manual_seed(number)
    count = 1 + number % 5
    mask = torch.rand(count, LONGEST, generator=generator) > 0.5
    mask[:, number % LONGEST] = True
    features = torch.randn(count, WIDTH, generator=generator)
    states = torch.randn(count, LONGEST, WIDTH, generator=generator)
    return EncodedMedia(features, states * mask.unsqueeze(-1), mask)


def serve(folder: Path) -> None:
    """For every line of the input, a writer in a process of its own; print how it ended.

    It is forked from this process, because importing torch takes far longer than writing.
    """
    for line in sys.stdin:
        writer = os.fork()
        if writer == 0:
            write(folder, int(line) if line.strip() else None)
            os._exit(0)
        _, status = os.waitpid(writer, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


@contextmanager
def _writers(folder: Path) -> Iterator[subprocess.Popen]:
    """The process that ``serve`` runs in."""
    command = [sys.executable, "-m", "tests.kills.feature_writer", "--serve", str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], **pipes) as process:
        yield process
        process.stdin.close()


def _watched_run(writers: subprocess.Popen, limit: int | None, look: Callable[[], None]) -> int:
    """Run a writer to its end, looking on; how it ended."""
    writers.stdin.write(f"{limit or ''}\n")
    writers.stdin.flush()
    while not select.select([writers.stdout], [], [], 0.001)[0]:
        look()
    look()
    return int(writers.stdout.readline())


def _look(folder: Path, expected: FeatureStore, readers: list[FeatureStore]) -> None:
    try:
        store = FeatureStore.open(folder)
    except FeatureStoreError:
        assert not readers, "a store that was there cannot be opened"
        return
    if not readers or len(store) != len(readers[-1]):
        assert not readers or len(store) > len(readers[-1]), "committed items are gone"
        _require_prefix(store, expected)
        readers.append(store)


def _require_prefix(store: FeatureStore, expected: FeatureStore) -> None:
    count = len(store)
    assert (store.ids, store.keys) == (expected.ids[:count], expected.keys[:count])
    store.verify()
    if count:
        mine, theirs = (one.read(range(count)) for one in (store, expected))
        for name in ("global_feature", "hidden_states", "mask"):
            assert torch.equal(getattr(mine, name), getattr(theirs, name)), name


def _require_same_files(one: Path, other: Path) -> None:
    for name in (INDEX, GLOBAL_FEATURE, HIDDEN_STATES):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        for line in kill_and_compare(Path(folder), given.kills, given.seed):
            print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

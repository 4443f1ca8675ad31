"""(i) Batches of stored features beside copying the same bytes from `numpy.memmap`, all warm."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import torch

from adaptiveembed.data.feature_index import HIDDEN_STATES, NUMBERS, PADDING
from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.structure.encoded import EncodedMedia
from benchmarks.timing import Contenders, Result, against_fastest, interleaved

ITEMS, BATCH, COMMIT, ROUNDS = 8_192, 1_024, 512, 15
WIDTH, FEWEST, MOST = 384, 8, 64

PADDED_ITEMS = 2_048
"""Items of the peer's file of padded features: four times as many would take 800 MB."""

GOAL = "<= 1.25"
"""Four fifths of the speed."""


def feature_batches() -> Iterator[Result]:
    """Random batches of ragged items, as they are stored and as training reads them."""
    setting = f"{BATCH:,} of {ITEMS:,} items, {FEWEST}-{MOST} states, d={WIDTH}"
    with tempfile.TemporaryDirectory() as folder:
        store = write_store(Path(folder) / "store")
        ours: dict[str, Contenders] = {
            "ragged halves": {"read_rows": over_batches(store.read_rows)},
            "padded halves": {"read, halves": over_batches(lambda x: store.read(x, torch.float16))},
            "padded float32": {"read": over_batches(store.read)},
        }
        halves = copies(store)
        floats, there = padded_copies(Path(folder) / "padded.f32")
        # padded batches hold 1.8 times what is stored, and twice that in float32
        for kind, name, peers, goal in (
            ("ragged halves", "them", halves, GOAL),
            ("padded halves", "ragged halves", halves, "report"),
            ("padded float32", "them", floats, GOAL),
            ("padded float32", "them into memory that is there", there, "report"),
            ("padded float32", "ragged halves", halves, "report"),
        ):
            seconds = interleaved(ours[kind] | peers, ROUNDS)
            yield against_fastest(f"i {kind} / copy of {name}", setting, goal, seconds)


def write_store(folder: Path) -> FeatureStore:
    generator = torch.Generator().manual_seed(0)
    with FeatureWriter(folder, "benchmark", WIDTH) as writer:
        for start in range(0, ITEMS, COMMIT):
            counts = torch.randint(FEWEST, MOST + 1, (COMMIT, 1), generator=generator)
            mask = torch.arange(MOST) < counts
            features = torch.randn(COMMIT, WIDTH, generator=generator)
            states = torch.randn(COMMIT, MOST, WIDTH, generator=generator)
            ids = [str(item) for item in range(start, start + COMMIT)]
            writer.append(ids, ids, EncodedMedia(features, states, mask))
    return FeatureStore.open(folder)


def over_batches(read: Callable[[np.ndarray], object]) -> Callable[[], object]:
    """Every call reads the next batch; all contenders read the same ones."""
    generator = np.random.default_rng(0)
    batches = cycle([generator.permutation(ITEMS)[:BATCH] for _ in range(5)])
    return lambda: read(next(batches))


def copies(store: FeatureStore) -> Contenders:
    """The states of a batch copied by NumPy, in three ways."""
    rows = np.memmap(store.folder / HIDDEN_STATES, NUMBERS, "r").reshape(-1, WIDTH)
    counts = store.states_per_item
    firsts = PADDING + np.cumsum(counts) - counts

    def places_of_rows(places: np.ndarray) -> np.ndarray:
        lengths = counts[places]
        before = np.cumsum(lengths) - lengths
        return np.repeat(firsts[places] - before, lengths) + np.arange(lengths.sum())

    def items(places: np.ndarray) -> np.ndarray:
        copied, done = np.empty((int(counts[places].sum()), WIDTH), NUMBERS), 0
        for first, count in zip(firsts[places].tolist(), counts[places].tolist(), strict=True):
            copied[done : done + count] = rows[first : first + count]
            done += count
        return copied

    return {
        "memmap[rows]": over_batches(lambda places: rows[places_of_rows(places)]),
        "memmap.take(rows)": over_batches(lambda places: rows.take(places_of_rows(places), axis=0)),
        "memmap[first:last]": over_batches(items),
    }


def padded_copies(path: Path) -> tuple[Contenders, Contenders]:
    """As many padded float32 states copied by NumPy from a file that holds them so.

    The second is given memory to copy into, as `read` takes up that of batches that are gone.
    """
    shape = (PADDED_ITEMS, MOST, WIDTH)
    np.memmap(path, np.float32, "w+", shape=shape)[:] = 1
    padded = np.memmap(path, np.float32, "r", shape=shape)
    space = np.empty((BATCH, MOST, WIDTH), np.float32)

    def into_space(places: np.ndarray) -> np.ndarray:
        # with mode="raise" NumPy would copy into other memory first
        return padded.take(places % PADDED_ITEMS, axis=0, out=space, mode="clip")

    fresh: Contenders = {
        "memmap[items]": over_batches(lambda places: padded[places % PADDED_ITEMS]),
        "memmap.take(items)": over_batches(
            lambda places: padded.take(places % PADDED_ITEMS, axis=0)
        ),
    }
    return fresh, {"memmap.take(items, out)": over_batches(into_space)}

"""(j) Encoding pictures into a store beside the bare loop that reads and encodes them.

    python -m benchmarks.encoding --pictures 20000

measures as many pictures as are asked for; `make bench` takes fewer.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.reading import content_key, read_media
from adaptiveembed.data.scenes.corpus import write_scenes
from adaptiveembed.encoders.driving import encode_items
from adaptiveembed.encoders.training_free.encoder import TrainingFreeEncoder
from adaptiveembed.structure.direction import Modality
from benchmarks.timing import Contenders, Result, against_fastest, interleaved

PICTURES, BATCH, READERS, ROUNDS = 1_500, 64, 2, 3

GOAL = "<= 1.176"
"""85 in 100 of the speed."""


def encoding() -> Iterator[Result]:
    """Pictures of the built-in corpus by the built-in encoder, keys and commits included."""
    with tempfile.TemporaryDirectory() as folder:
        yield measured(PICTURES, Path(folder), ROUNDS)


def measured(pictures: int, folder: Path, rounds: int) -> Result:
    """Both ways over the same files, with as many threads that read."""
    write_scenes(folder, pictures, Modality.IMAGE)
    files = sorted(folder.rglob("*.png"))
    stores = (folder / f"store-{number}" for number in count())
    contenders: Contenders = {
        "encode_items": lambda: into_store(files, next(stores)),
        "read and encode": lambda: bare_loop(files),
    }
    seconds = interleaved(contenders, rounds)
    setting = f"{pictures:,} pictures, batches of {BATCH}, {READERS} threads that read"
    return against_fastest("j encoding / bare loop", setting, GOAL, seconds)


def into_store(files: Sequence[Path], folder: Path) -> None:
    """As the command `encode` does it: keys, reading ahead, encoding, commits."""
    encoder = TrainingFreeEncoder(Modality.IMAGE)
    items = [(file.stem, content_key(file), partial(read_picture, file)) for file in files]
    with FeatureWriter(folder, encoder.fingerprint, encoder.width) as writer:
        found = encode_items(encoder, items, writer, batch_size=BATCH, readers=READERS)
    assert found.encoded == len(files)


def bare_loop(files: Sequence[Path]) -> None:
    """Nothing but reading, a batch ahead of encoding."""
    encoder = TrainingFreeEncoder(Modality.IMAGE)
    batches = [files[start : start + BATCH] for start in range(0, len(files), BATCH)]
    with ThreadPoolExecutor(READERS) as pool:
        ahead = [pool.submit(read_picture, file) for file in batches[0]]
        for following in [*batches[1:], []]:
            waiting, ahead = ahead, [pool.submit(read_picture, file) for file in following]
            encoder.encode([one.result() for one in waiting])


def read_picture(file: Path) -> object:
    return read_media(file, Modality.IMAGE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoding", description=__doc__)
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(given.pictures, Path(folder), given.rounds)
    for name, seconds in found.seconds.items():
        print(f"{name}: {given.pictures / seconds:.0f} pictures/s")
    print(f"{found.case}: {found.ratio:.3f} of the time, goal {found.goal}")


if __name__ == "__main__":
    main()

"""Build OpenImages at full size from made-up annotations: seconds and memory of the command.

`python -m benchmarks.narratives` makes files with as many narratives and images as the publisher's,
and an empty file for every image. With `--traces` the narratives have traces and times of words, as
in the larger ones of the publisher's files; several gigabytes then.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from adaptiveembed.data.datasets import FACTS, Benchmark
from adaptiveembed.data.datasets.items import Split

FACTS_OF = FACTS[Benchmark.OPENIMAGES]
WORDS, DISTINCT, ANNOTATORS = 40, 1_000, 150
GIGABYTE = 1e9


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        annotations = _write_annotations(folder / "narratives", given.traces)
        _write_media(folder / "media")
        print(f"annotations: {annotations / GIGABYTE:.2f} GB, {given.traces} points of each trace")
        print(_built(folder))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.narratives",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--traces", type=int, default=0, help="points of each trace; 0: no traces")
    parser.add_argument("--folder", type=Path, help="where the files are made, and removed again")
    return parser.parse_args()


def _write_annotations(folder: Path, points: int) -> int:
    """Write all narratives; their bytes."""
    folder.mkdir()
    endings = list(_endings(points))
    for split in Split:
        names = FACTS_OF.files[split][1 if points else 0]
        narratives = FACTS_OF.known["narratives"][split]
        lines = _lines(split, narratives, FACTS_OF.paper[split], endings)
        for place, name in enumerate(names):
            share = narratives * (place + 1) // len(names) - narratives * place // len(names)
            with (folder / name).open("w", encoding="ascii") as file:
                file.writelines(next(lines) for _ in range(share))
    return sum(path.stat().st_size for path in folder.iterdir())


def _lines(split: Split, narratives: int, images: int, endings: list[str]) -> Iterator[str]:
    """As many narratives; those beyond the number of images tell again of the first ones."""
    for place in range(narratives):
        begins = {
            "dataset_id": f"open_images_{split}",
            "image_id": _image_id(split, place % images),
            "annotator_id": place % ANNOTATORS,
        }
        yield json.dumps(begins)[:-1] + endings[place % DISTINCT]


def _endings(points: int) -> Iterator[str]:
    """The rest of a line behind its ids, in a thousand kinds."""
    draw = random.Random(0)
    vocabulary = ["".join(draw.choices("aeioulnrst", k=5)) for _ in range(DISTINCT)]
    for _ in range(DISTINCT):
        words = draw.choices(vocabulary, k=WORDS)
        values: dict[str, object] = {"caption": f"In this image there is {' '.join(words)}."}
        if points:
            values["timed_caption"] = [
                {"utterance": word, "start_time": 0.4 * place, "end_time": 0.4 * place + 0.3}
                for place, word in enumerate(words)
            ]
            values["traces"] = [
                [
                    {"x": round(draw.random(), 4), "y": round(draw.random(), 4), "t": 0.016 * place}
                    for place in range(points)
                ]
            ]
            values["voice_recording"] = "open_images_train_0000000000000000_1.ogg"
        yield ", " + json.dumps(values)[1:] + "\n"


def _image_id(split: Split, place: int) -> str:
    return f"{'0' if split is Split.TRAIN else '1'}{place:015x}"


def _write_media(folder: Path) -> None:
    for split in Split:
        for place in range(FACTS_OF.paper[split]):
            path = folder / FACTS_OF.media[split].format(id=_image_id(split, place))
            if not place:
                path.parent.mkdir(parents=True)
            path.touch()


def _built(folder: Path) -> str:
    """Run the command; what it says, and what it took."""
    command = [sys.executable, "-m", "adaptiveembed.cli", "data", "build", "openimages"]
    command += ["--annotations", folder / "narratives", "--media", folder / "media", "--strict"]
    start = time.perf_counter()
    done = subprocess.run(
        [*map(str, command), "--output", str(folder / "openimages.jsonl")],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return f"{done.stdout}{seconds:.1f} s, at most {peak / GIGABYTE:.2f} GB"


if __name__ == "__main__":
    main()

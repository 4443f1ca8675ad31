"""The benchmarks of the paper's tables with real media, in the publishers' formats: scenes."""

import csv
import json
from itertools import count, islice

import yaml
from PIL import Image as Pillow

from adaptiveembed.data.scenes.corpus import scene_media, scene_text
from adaptiveembed.data.scenes.files import write_media
from adaptiveembed.data.scenes.latent import scene
from adaptiveembed.structure.direction import Modality
from tests.data.datasets.originals import moment, narrative

TRAINING, QUERIES = 26, 6
NARRATED = {
    "coco": ("mscoco", "coco_train", "coco_val", "train2017/{:012}.jpg", "val2017/{:012}.jpg"),
    "flickr30k": (
        "Flickr30k",
        "flickr30k_train",
        "flickr30k_val",
        *["flickr30k-images/{}.jpg"] * 2,
    ),
    "ade20k": (
        "ADE20k",
        "ade20k_train",
        "ade20k_validation",
        "ADEChallengeData2016/images/training/{}.jpg",
        "ADEChallengeData2016/images/validation/{}.jpg",
    ),
    "openimages": (
        "open_images",
        "open_images_train_v6",
        "open_images_validation",
        "train/{}.jpg",
        "validation/{}.jpg",
    ),
}
"""What the dataset is called in its lines, how its files begin, and where its media lie."""


def write_originals(folder, medium):
    """Annotations and media of all benchmarks of a medium, each in a folder of its own."""
    numbers = count()
    if medium is Modality.IMAGE:
        for name, facts in NARRATED.items():
            _write_narratives(folder / name, facts, numbers)
    if medium is Modality.VIDEO:
        _write_activitynet(folder / "activitynet", numbers)
        _write_didemo(folder / "didemo", numbers)
    if medium is Modality.AUDIO:
        _write_clotho(folder / "clotho", numbers)
        _write_macs(folder / "macs", numbers)


def _drawn(medium, numbers, path):
    """The next scene as a file, and what is told of it."""
    one = scene(next(numbers))
    path.parent.mkdir(parents=True, exist_ok=True)
    media = scene_media(one, medium)
    if medium is Modality.IMAGE:
        Pillow.fromarray(media.pixels).resize((56, 56)).save(path)
    else:
        write_media(media, path)
    return scene_text(one, medium).text


def _write_narratives(folder, facts, numbers):
    dataset, train, query, train_path, query_path = facts
    annotations, media = folder / "annotations", folder / "media"
    annotations.mkdir(parents=True)
    images = count(1)
    for begins, place, size in ((train, train_path, TRAINING), (query, query_path, QUERIES)):
        lines = []
        for image in islice(images, size):
            image_id = image if dataset == "mscoco" else f"{begins}_{image:04}"
            text = _drawn(Modality.IMAGE, numbers, media / place.format(image_id))
            lines.append(narrative(dataset, str(image_id), 1, text, traces=False))
        (annotations / f"{begins}_captions.jsonl").write_text("\n".join(lines) + "\n")


def _write_activitynet(folder, numbers):
    (folder / "annotations").mkdir(parents=True)
    for name, size in (("train", TRAINING), ("val_1", QUERIES)):
        videos = {}
        for place in range(size):
            key = f"v_{name}{place:03}"
            text = _drawn(Modality.VIDEO, numbers, folder / "media" / f"{key}.mkv")
            half = len(text) // 2
            parts = [text[:half], text[half:]]
            videos[key] = {"duration": 8.0, "timestamps": [[0, 4], [4, 8]], "sentences": parts}
        (folder / "annotations" / f"{name}.json").write_text(json.dumps(videos))


def _write_didemo(folder, numbers):
    (folder / "annotations").mkdir(parents=True)
    for name, size in (("train", TRAINING), ("test", QUERIES)):
        moments = []
        for place in range(size):
            stem = f"1@N{name}_{place}_x"
            text = _drawn(Modality.VIDEO, numbers, folder / "media" / f"{stem}.mkv")
            moments.append(moment(place, f"{stem}.mov", text))
        (folder / "annotations" / f"{name}_data.json").write_text(json.dumps(moments))


def _write_clotho(folder, numbers):
    (folder / "annotations").mkdir(parents=True)
    for name, size in (("development", TRAINING), ("evaluation", QUERIES)):
        with (folder / "annotations" / f"clotho_captions_{name}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["file_name", *(f"caption_{number}" for number in range(1, 6))])
            for place in range(size):
                path = folder / "media" / name / f"Sound {place}.wav"
                text = _drawn(Modality.AUDIO, numbers, path)
                table.writerow([path.name, text, *(f"Again {number}." for number in range(4))])


def _write_macs(folder, numbers):
    (folder / "annotations").mkdir(parents=True)
    files = []
    for place in range(TRAINING + QUERIES):
        name = f"park-vienna-{place}-{place}-a.wav"
        text = _drawn(Modality.AUDIO, numbers, folder / "media" / "audio" / name)
        told = [{"annotator_id": 1, "sentence": text, "tags": ["birds"]}]
        files.append({"filename": name, "annotations": told})
    (folder / "annotations" / "MACS.yaml").write_text(yaml.safe_dump({"files": files}))

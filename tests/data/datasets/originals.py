"""Annotation files as publishers write them, a few dozen rows each, with the traps of theirs.

Every writer makes the annotation files of a benchmark, its media as empty files, and hands over the
rows as they were written, training split and queries.
"""

import csv
import io
import json

import yaml

from adaptiveembed.data.pairs import read_manifest


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def rows(manifest, media):
    """What a manifest file holds: ids, texts, media below their folder, splits and metadata."""
    return [
        (
            pair.id,
            pair.text,
            pair.media.relative_to(media).as_posix(),
            pair.split,
            dict(pair.metadata),
        )
        for pair in read_manifest(manifest)
    ]


# --- Localized Narratives -------------------------------------------------------------------------


def narrative(dataset, image, annotator, caption, *, traces=True):
    """One line, with every key of the publisher in their order."""
    values = {
        "dataset_id": dataset,
        "image_id": image,
        "annotator_id": annotator,
        "caption": caption,
    }
    if traces:
        words = caption.split()
        values["timed_caption"] = [
            {"utterance": word, "start_time": place / 2, "end_time": place / 2 + 0.4}
            for place, word in enumerate(words)
        ]
        values["traces"] = [
            [{"x": 0.2086, "y": -0.0533, "t": 0.022}, {"x": 0.3, "y": 1, "t": 0.04}]
        ]
        values["voice_recording"] = f"{dataset}/{dataset}_{image}_{annotator}.ogg"
    return json.dumps(values)


COCO_TRAIN = [
    [("mscoco_train2017", str(100 + place), place, f"In this image there is a cat {place}.")]
    for place in range(16)
]
"""Images told of by one annotator each."""

FIVE_TIMES = [
    ("mscoco_val2017", "139", 93, "  There is a room, and a vase.  "),
    ("mscoco_val2017", "139", 7, "A room with a television, a table, two chairs and a window."),
    ("mscoco_val2017", "139", 120, 'A sign says "timed_caption": closed.'),
    ("mscoco_val2017", "139", 15, "\n"),
    ("mscoco_val2017", "139", 7, "Une salle à manger."),
]
"""One image of the query split, told of five times, once by saying nothing."""


def write_coco(annotations, media):
    """Four parts and a file for the queries; one image in two parts, one spelled with zeros."""
    annotations.mkdir()
    train = [line for image in COCO_TRAIN for line in image]
    train.insert(9, ("mscoco_train2017", "103", 2, "The same cat, told of in another part."))
    train.append(("MSCOCO_train2017", "000000000107", 1, "Zeros."))
    for part in range(4):
        name = f"coco_train_localized_narratives-{part:05d}-of-00004.jsonl"
        lines = (narrative(*each) for each in train[part::4])
        (annotations / name).write_text("".join(f"{line}\n" for line in lines))
    queries = [FIVE_TIMES[0], ("mscoco_val2017", "872000", 4, "A field."), *FIVE_TIMES[1:]]
    text = "".join(f"{narrative(*each)}\n" for each in queries)
    (annotations / "coco_val_localized_narratives.jsonl").write_text(text)
    touch(media, *(f"train2017/000000000{number}.jpg" for number in range(100, 116)))
    touch(media, "val2017/000000000139.jpg", "val2017/000000872000.jpg")
    return [each for part in range(4) for each in train[part::4]], queries


# --- ActivityNet Captions -------------------------------------------------------------------------


def write_activitynet(annotations, media):
    annotations.mkdir()
    train = {
        f"v_plain{place:02d}": {
            "duration": 30.5,
            "timestamps": [[0, 9.5], [9.5, 30.5]],
            "sentences": [f"A man {place} runs.", " He stops."],
        }
        for place in range(20)
    }
    train["v_QOlSCBRmfWY"] = {
        "duration": 82.73,
        "timestamps": [[17.37, 60.81], [0.83, 19.86], [0.83, 4], [70, 69.5], [80, 90.0]],
        "sentences": [
            " The girl dances around the room. ",
            "A young woman is seen standing in a room.",
            "  ",
            "  She continues dancing.",
            "It ends\n",
        ],
    }
    queries = {
        "v_-query_1": {"duration": 10, "timestamps": [[2, 3], [0, 1]], "sentences": ["B.", "A."]},
        "v_uqiMw7tQ1Cc": {"duration": 5.0, "timestamps": [[0, 5]], "sentences": ["Snow."]},
    }
    (annotations / "train.json").write_text(json.dumps(train))
    (annotations / "val_1.json").write_text(json.dumps(queries))
    (annotations / "val_2.json").write_text("not read")
    touch(media, *(f"v1-2/train/v_plain{place:02d}.mp4" for place in range(20)))
    touch(media, "v1-3/train_val/v_QOlSCBRmfWY.mkv", "v1-2/val/v_-query_1.webm")
    touch(media, "v1-2/val/v_uqiMw7tQ1Cc.MP4", "v1-2/val/v_uqiMw7tQ1Cc.jpg", "v1-2/val/notes")
    return train, queries


# --- DiDeMo ---------------------------------------------------------------------------------------


def moment(annotation, video, description):
    """One entry of a file, with every key of the publisher."""
    return {
        "num_segments": 6,
        "description": description,
        "dl_link": f"https://www.flickr.com/video_download.gne?id={video.split('_')[1]}",
        "times": [[1, 1], [0, 0], [0, 0]],
        "video": video,
        "annotation_id": annotation,
    }


def write_didemo(annotations, media):
    annotations.mkdir()
    train = [moment(90 - n, f"1@N0{n}_51{n}_a{n}.mov", f"dog {n} barks ") for n in range(9)]
    train += [moment(n, f"1@N0{n}_51{n}_a{n}.mov", f"dog {n} sleeps") for n in range(9)]
    queries = [
        moment(7, "77@N00_5105_77ea.mov", " the man waves"),
        moment(9, "12@N01_333_bb.", "a bare full stop"),
        moment(3, "77@N00_5105_77ea.mp4", "the camera pans\n"),
        moment(5, "77@N00_5105_77ea.mov", "The man is gone."),
        moment(1, "55@N02_4_cc.3gp", "three"),
        moment(2, "66@N03_5_dd.m4v", "copied"),
    ]
    (annotations / "train_data.json").write_text(json.dumps(train))
    (annotations / "test_data.json").write_text(json.dumps(queries))
    touch(media, *(f"train/1@N0{n}_51{n}_a{n}.avi" for n in range(9)))
    touch(media, "test/77@N00_5105_77ea.mp4", "test/77@N00_5105_77ea.avi")
    touch(
        media,
        "test/12@N01_333_bb.",
        "z/12@N01_333_bb.mp4",
        "55@N02_4_cc.MPG",
        "test/66@N03_5_dd.m4v.part",
    )
    touch(media, "b/66@N03_5_dd.wmv", "a/66@N03_5_dd.mp4")
    return train, queries


# --- Clotho ---------------------------------------------------------------------------------------


def write_clotho(annotations, media, *, keywords=True):
    annotations.mkdir()
    train = [[f"Sound {n}.wav", *(f"Rain {n} falls {m}." for m in range(5))] for n in range(24)]
    train += [
        ["Distorted AM Radio noise.wav", "A muddled noise", "B, so to say", 'C "D"', " E ", "F."],
        ["01 A pug struggles to breathe 1_14_2008.wav", "1", "2", "3", "4", "5"],
        ["Café  (2) .wav", "Dishes", "", "clatter", "and\npeople", "talk"],
    ]
    queries = [["Sound 3.wav", "The", "same", "name,", "another", "sound."]]
    header = ["file_name", *(f"caption_{n}" for n in range(1, 6))]
    for name, table in (("development", train), ("evaluation", queries)):
        text = io.StringIO(newline="")
        csv.writer(text).writerows([header, *table])
        (annotations / f"clotho_captions_{name}.csv").write_bytes(text.getvalue().encode())
        touch(media, *(f"{name}/{row[0]}" for row in table))
    if keywords:
        write_keywords(annotations / "clotho_metadata_development.csv")
    return train, queries


def write_keywords(path):
    path.write_bytes(
        "file_name,keywords,sound_id,sound_link,start_end_samples,manufacturer,license\r\n"
        'Sound 0.wav,rain;wet; ,1,https://freesound.org/1,"[0, 5]",Ann,http://cc/0/\r\n'
        "Café  (2) .wav,café;dishes,Not found,,,Bø,http://cc/by/3.0/\r\n".encode("iso-8859-1")
    )


# --- MACS -----------------------------------------------------------------------------------------


def write_macs(annotations, media):
    annotations.mkdir()
    recordings = [
        {
            "filename": f"{scene}-{city}-{n}-{n}-a.wav",
            "annotations": [
                {"annotator_id": 10 + m, "sentence": f"steps {n} {m} ", "tags": ["footsteps"]}
                for m in range(2 + n % 4)
            ],
        }
        for n, (scene, city) in enumerate(
            (scene, city)
            for scene in ("park", "airport", "public_square")
            for city in (
                "vienna",
                "barcelona",
                "london",
                "paris",
                "milan",
                "lyon",
                "prague",
                "oslo",
            )
        )
    ]
    text = yaml.safe_dump({"files": recordings}, sort_keys=False)
    text += (
        "- filename: park-bern-1-1-a.wav\n"
        "  annotations:\n"
        "  - annotator_id: 3\n"
        "    sentence: yes\n"
        "    tags: [adults_talking]\n"
        "  - annotator_id: 4\n"
        "    sentence: 12:30\n"
        "    tags: []\n"
    )
    (annotations / "MACS.yaml").write_text(text)
    bern = {"filename": "park-bern-1-1-a.wav"}
    bern["annotations"] = [{"sentence": "yes"}, {"sentence": "12:30"}]
    touch(media, *(f"audio/{each['filename']}" for each in [*recordings, bern]))
    return [*recordings, bern]

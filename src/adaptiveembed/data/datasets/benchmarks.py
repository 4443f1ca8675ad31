"""The eight benchmarks in facts: the paper's counts, and the names that publishers gave to files.

Counts are those of the paper's table of datasets. What the files themselves hold was counted by
their publishers, or by us where a snapshot of them could be read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from adaptiveembed.data.datasets.items import PerSplit, Split
from adaptiveembed.structure.direction import Modality


class Benchmark(StrEnum):
    """The datasets of the paper's tables."""

    COCO = "coco"
    FLICKR30K = "flickr30k"
    ADE20K = "ade20k"
    OPENIMAGES = "openimages"
    ACTIVITYNET = "activitynet"
    DIDEMO = "didemo"
    CLOTHO = "clotho"
    MACS = "macs"


Names = tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """What is known of a benchmark before any of its files is read."""

    title: str
    modality: Modality
    paper: PerSplit
    """Pairs in the paper's table."""
    files: Mapping[Split, tuple[Names, ...]]
    """Annotation files: of several alternatives, the first that is there as a whole is read."""
    media: Mapping[Split, str]
    """Where media are, below their folder: ``{id}`` is what the annotations call them. Below
    ``**`` they may stand in any folder, with any ending."""
    called: str
    """What the annotations call a medium, in words."""
    annotations_from: str
    """Who publishes the annotations."""
    media_from: str
    """Who publishes the media."""
    known: Mapping[str, Mapping[Split, int]] = field(default_factory=dict)
    """What others counted in the files, by the names under which readers count it."""
    remarks: Sequence[str] = ()
    """Why counts may differ from each other, from the paper's, or from somebody else's."""


def _both(train: int, query: int) -> dict[Split, int]:
    return {Split.TRAIN: train, Split.QUERY: query}


def _narrative_files(
    train: str, query: str, train_parts: int = 1
) -> dict[Split, tuple[Names, ...]]:
    """Files with captions alone, or else those with traces, which hold the same captions."""
    whole = tuple(
        f"{train}_localized_narratives-{part:05d}-of-{train_parts:05d}.jsonl"
        for part in range(train_parts)
    )
    one = (f"{train}_localized_narratives.jsonl",)
    return {
        Split.TRAIN: ((f"{train}_captions.jsonl",), whole if train_parts > 1 else one),
        Split.QUERY: ((f"{query}_captions.jsonl",), (f"{query}_localized_narratives.jsonl",)),
    }


_NARRATIVES_FROM = "Google, Localized Narratives"
_IMAGES_NOT_NARRATIVES = (
    "the paper counts images, the files hold narratives: several of one image become one pair, "
    "by the rule narrative"
)
FACTS: Mapping[Benchmark, Facts] = {
    Benchmark.COCO: Facts(
        title="COCO",
        modality=Modality.IMAGE,
        paper=_both(118_287, 5_000),
        files=_narrative_files("coco_train", "coco_val", train_parts=4),
        media={Split.TRAIN: "train2017/{id:0>12}.jpg", Split.QUERY: "val2017/{id:0>12}.jpg"},
        called="the number of the image in twelve digits",
        annotations_from=_NARRATIVES_FROM,
        media_from="COCO, 2017 train and val images",
        known={"narratives": _both(134_272, 8_573)},
        remarks=(
            _IMAGES_NOT_NARRATIVES,
            (
                "5,000 images were narrated five times, so the rule decides on the text of about "
                "18 % of the queries"
            ),
        ),
    ),
    Benchmark.FLICKR30K: Facts(
        title="Flickr30K",
        modality=Modality.IMAGE,
        paper=_both(29_783, 1_000),
        files=_narrative_files("flickr30k_train", "flickr30k_val"),
        media=dict.fromkeys(Split, "flickr30k-images/{id}.jpg"),
        called="the number of the image",
        annotations_from=_NARRATIVES_FROM,
        media_from="Flickr30k, University of Illinois",
        known={"narratives": _both(30_546, 1_009)},
        remarks=(_IMAGES_NOT_NARRATIVES, "the publisher's test split is not used"),
    ),
    Benchmark.ADE20K: Facts(
        title="ADE20K",
        modality=Modality.IMAGE,
        paper=_both(20_210, 2_000),
        files=_narrative_files("ade20k_train", "ade20k_validation"),
        media={
            Split.TRAIN: "ADEChallengeData2016/images/training/{id}.jpg",
            Split.QUERY: "ADEChallengeData2016/images/validation/{id}.jpg",
        },
        called="the name of the image, such as ADE_train_00000001",
        annotations_from=_NARRATIVES_FROM,
        media_from="MIT, Scene Parsing Challenge 2016",
        known={"narratives": _both(20_476, 2_053)},
        remarks=(_IMAGES_NOT_NARRATIVES,),
    ),
    Benchmark.OPENIMAGES: Facts(
        title="OpenImages",
        modality=Modality.IMAGE,
        paper=_both(504_413, 41_620),
        files=_narrative_files("open_images_train_v6", "open_images_validation", train_parts=10),
        media={Split.TRAIN: "train/{id}.jpg", Split.QUERY: "validation/{id}.jpg"},
        called="the sixteen digits of the image",
        annotations_from=_NARRATIVES_FROM,
        media_from="Open Images V6, train and validation",
        known={"narratives": _both(507_444, 41_691)},
        remarks=(_IMAGES_NOT_NARRATIVES, "the publisher's test split is not used"),
    ),
    Benchmark.ACTIVITYNET: Facts(
        title="ActivityNet Captions",
        modality=Modality.VIDEO,
        paper=_both(10_009, 4_917),
        files={Split.TRAIN: (("train.json",),), Split.QUERY: (("val_1.json",),)},
        media=dict.fromkeys(Split, "**/{id}.*"),
        called="the name of the video, such as v_QOlSCBRmfWY",
        annotations_from="Stanford, Dense-Captioning Events in Videos",
        media_from="ActivityNet, versions 1.2 and 1.3",
        known={
            "sentences": _both(37_421, 17_505),
            "videos with sentences out of order": _both(245, 131),
            "events that end before they start": {Split.TRAIN: 4},
            "events that end behind their video": _both(29, 5),
        },
        remarks=(
            (
                "the paper's table says temporally ordered, its text original order: the rule "
                "event_order decides"
            ),
            "val_2.json describes videos of val_1.json again and is not used",
        ),
    ),
    Benchmark.DIDEMO: Facts(
        title="DiDeMo",
        modality=Modality.VIDEO,
        paper=_both(8_395, 1_004),
        files={Split.TRAIN: (("train_data.json",),), Split.QUERY: (("test_data.json",),)},
        media=dict.fromkeys(Split, "**/{id}.*"),
        called="the file name of the annotations without its ending",
        annotations_from="Berkeley, Localizing Moments",
        media_from="DiDeMo, from Flickr (YFCC100M)",
        known={"descriptions": {Split.QUERY: 4_021}, "file names": {Split.QUERY: 1_037}},
        remarks=(
            (
                "one video stands under file names with several endings: pairs are videos, told by "
                "the name without its ending, so there are fewer of them than file names"
            ),
            "val_data.json is not used",
        ),
    ),
    Benchmark.CLOTHO: Facts(
        title="Clotho",
        modality=Modality.AUDIO,
        paper=_both(3_839, 1_045),
        files={
            Split.TRAIN: (("clotho_captions_development.csv",),),
            Split.QUERY: (("clotho_captions_evaluation.csv",),),
        },
        media={Split.TRAIN: "development/{id}", Split.QUERY: "evaluation/{id}"},
        called="the file name of the sound with its ending",
        annotations_from="Tampere University, Clotho 2.1",
        media_from="Tampere University, Clotho 2.1",
        remarks=(
            "some lists of Clotho print 3,840 sounds for development; the paper counts 3,839",
            "the publisher's validation split is not used",
        ),
    ),
    Benchmark.MACS: Facts(
        title="MACS",
        modality=Modality.AUDIO,
        paper=_both(3_537, 393),
        files=dict.fromkeys(Split, (("MACS.yaml",),)),
        media=dict.fromkeys(Split, "audio/{id}"),
        called="the file name of the recording with its ending",
        annotations_from="Tampere University, MACS",
        media_from="Tampere University, TAU Urban Acoustic Scenes 2019 dev",
        remarks=(
            (
                "MACS has no official split, and the one that others used depends on the order of "
                "a folder: a shuffle has its sizes and other recordings; a list can give the same"
            ),
        ),
    ),
}
"""What is known of each benchmark."""

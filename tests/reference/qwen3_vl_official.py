"""What sentence-transformers and the official processors make of a tiny checkpoint of Qwen3-VL.

Both need torchvision, which the project does without, so this is no part of the test run. It writes
``tests/encoders/pretrained/qwen3_vl_expected.json``, with which the tests compare. Once, from the
root of the project:

    pip install --no-deps --target FOLDER torchvision==0.28.0
    python -m tests.reference.qwen3_vl_official FOLDER

The pictures and videos are of sizes to which they need not be brought, or to which both ways bring
them alike: torchvision and Pillow interpolate pixels that differ by one grey level.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from tests.encoders.items import TEXTS, picture
from tests.encoders.pretrained.qwen_checkpoints import digest, save_qwen3_vl

EXPECTED = Path(__file__).parents[1] / "encoders/pretrained/qwen3_vl_expected.json"
INSTRUCTION = "Represent the user's input."
ASKED = "<|im_start|>system\n{}<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"

PICTURES = ((1, 64, 96), (2, 128, 64), (3, 160, 160))
"""Seed, height and width, which are multiples of 32 within the limits."""

VIDEOS = ((1, 5, 1.0, 384, 352), (2, 20, 4.0, 360, 410), (3, 3, 0.5, 390, 345))
"""Seed, frames, frames per second, height and width, within the limits of a frame."""


def pictures():
    return [picture(*each) for each in PICTURES]


def videos():
    """Frames, and how many a second has."""
    return [
        (np.stack([picture(100 * seed + time, height, width) for time in range(frames)]), rate)
        for seed, frames, rate, height, width in VIDEOS
    ]


def texts():
    """The texts without the empty one, for which the official script alone has a word."""
    return [text for text in TEXTS if text]


def main(folder):
    _use(folder)
    with TemporaryDirectory() as checkpoint:
        save_qwen3_vl(Path(checkpoint))
        found = {"digest": digest(Path(checkpoint))}
        found |= _by_sentence_transformers(checkpoint)
        found |= _by_the_processor(checkpoint)
    EXPECTED.write_text(json.dumps(found) + "\n")
    print({name: np.shape(value) for name, value in found.items()})  # noqa: T201


def _use(folder):
    """Make torchvision importable, whose compiled part needs a build of torch for its own."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    sys.path.insert(0, folder)
    import torchvision  # noqa: F401


def _by_sentence_transformers(checkpoint):
    from PIL import Image
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    body = Transformer(
        checkpoint,
        processing_kwargs={"chat_template": {"add_generation_prompt": True}},
    )
    pooling = Pooling(body.get_embedding_dimension(), "lasttoken")
    model = SentenceTransformer(modules=[body, pooling, Normalize()], device="cpu")
    shown = [Image.fromarray(each) for each in pictures()]
    return {
        "texts": model.encode(texts(), prompt=INSTRUCTION).tolist(),
        "images": model.encode(shown, prompt=INSTRUCTION).tolist(),
    }


def _by_the_processor(checkpoint):
    """Features and tokens of the videos, with a bare video token and with marks around it."""
    from transformers import (
        AutoImageProcessor,
        AutoTokenizer,
        Qwen3VLModel,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    frames = Qwen3VLVideoProcessor(
        patch_size=16,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        size={"shortest_edge": 128 * 1024, "longest_edge": 10 * 768 * 1024},
        fps=1,
        max_frames=64,
        cap_pixels_per_frame=True,
    )
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    images = AutoImageProcessor.from_pretrained(checkpoint)
    processor = Qwen3VLProcessor(images, tokenizer, frames)
    model = Qwen3VLModel.from_pretrained(checkpoint).eval()
    found = {}
    for name, shown in (
        ("videos", "<|video_pad|>"),
        ("wrapped_videos", "<|vision_start|><|video_pad|><|vision_end|>"),
    ):
        inputs = [_video_inputs(processor, shown, *each) for each in videos()]
        found[name] = [_feature(model, each) for each in inputs]
        found[f"{name}_tokens"] = [len(each["input_ids"][0]) for each in inputs]
    return found


def _video_inputs(processor, shown, frames, rate):
    from transformers.video_utils import VideoMetadata

    about = VideoMetadata(
        total_num_frames=len(frames),
        fps=rate,
        duration=len(frames) / rate,
        frames_indices=list(range(len(frames))),
    )
    planes = torch.from_numpy(frames).permute(0, 3, 1, 2)
    return processor(
        text=[ASKED.format(INSTRUCTION, shown)],
        videos=[planes],
        video_metadata=[about],
        do_sample_frames=True,
        return_tensors="pt",
    )


@torch.no_grad()
def _feature(model, inputs):
    last = model(**inputs).last_hidden_state[0, -1]
    return (last / last.norm()).tolist()


if __name__ == "__main__":
    main(sys.argv[1])

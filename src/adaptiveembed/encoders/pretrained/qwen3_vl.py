"""Qwen3-VL-Embedding: texts, pictures and videos in one space."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from adaptiveembed.data.media import Image, Text, Video
from adaptiveembed.encoders.pretrained.checkpoint import (
    checkpoint_fingerprint,
    imported,
    load_strict,
)
from adaptiveembed.encoders.pretrained.encoder import PretrainedEncoder
from adaptiveembed.encoders.pretrained.qwen_inputs import (
    IMAGE_TOKEN,
    VIDEO_TOKEN,
    Composed,
    FrameChoice,
    Grid,
    PatchCutter,
    PixelLimits,
    TokenBatch,
    chosen_frames,
    cut_before,
    frame_limits,
    times_of,
)
from adaptiveembed.encoders.pretrained.qwen_passes import (
    Compose,
    Prompts,
    arguments_of,
    branch,
    last_states,
    load_cutter,
    picture_positions,
)
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality

VERSION = 1
"""Raised whenever anything here, or in what is composed here, changes a feature."""

TOKEN_PIXELS = 32 * 32
"""Pixels that one token of a picture stands for in the published models."""

IMAGE_LIMITS = PixelLimits(4 * TOKEN_PIXELS, 1800 * TOKEN_PIXELS)
FRAME_LIMITS = PixelLimits(128 * TOKEN_PIXELS, 768 * TOKEN_PIXELS)
FRAMES = FrameChoice(1.0, 64)

CLOSING = "<|im_end|>\n<|im_start|>assistant\n"
"""What stands behind every item; the state of its last token is the global feature."""

NOTHING = "NULL"
"""What stands for an empty text."""

NARROWEST_FEATURE = 64
"""The least width to which a feature may be cut; the others are its doubles."""


@dataclass(frozen=True)
class Qwen3VLSettings:
    """How media become inputs. The defaults are those of the published models."""

    instruction: str = "Represent the user's input."
    """What the model is asked to do; where a punctuation mark is missing at its end, a full stop
    is added."""
    image: PixelLimits = IMAGE_LIMITS
    """Pixels of a picture."""
    frame: PixelLimits = FRAME_LIMITS
    """Pixels of a frame of a video."""
    video_pixels: int = 10 * 768 * TOKEN_PIXELS
    """Pixels that all frames of a video share, frames that are seen together counting once."""
    frames: FrameChoice = FRAMES
    """Frames of a video that are looked at."""
    video_wrapper: bool = False
    """Whether marks of beginning and end stand around a whole video too, as transformers writes it
    since 5.10. The models were published without."""
    most_tokens: int = 8192
    """Tokens of a text with all that stands around it; a longer text is cut."""

    def __post_init__(self) -> None:
        if not self.instruction.strip():
            raise SettingError("instruction is empty; leave it out, or say what the model is to do")
        for name in ("video_pixels", "most_tokens"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)}; give at least 1")


def load_qwen3_vl(
    settings: PretrainedSettings, inputs: Qwen3VLSettings = Qwen3VLSettings()
) -> PretrainedEncoder:
    """The state of the last token of a conversation that shows one item and asks for an answer.

    Hidden states are those of all tokens, the ones of the instruction among them. The token budget
    counts tokens; a picture has four times as many patches.
    """
    # The head that says words belongs to no feature, and is left in the checkpoint.
    model: Any = load_strict(imported("transformers").Qwen3VLModel, settings, ignored=("lm_head.",))
    width = model.config.text_config.hidden_size
    prompts = Prompts(settings, model.config)
    ways = composers(prompts, load_cutter(settings), inputs)

    def states_of(batch: TokenBatch) -> Tensor:
        there = batch.to(model.device)
        positions = picture_positions(model, there)
        output = model(**arguments_of(there), position_ids=positions, use_cache=False)
        states: Tensor = output.last_hidden_state
        return states

    return PretrainedEncoder(
        PretrainedKind.QWEN3_VL,
        settings,
        checkpoint_fingerprint(
            settings, {"kind": PretrainedKind.QWEN3_VL, "version": VERSION} | asdict(inputs)
        ),
        width,
        {
            modality: branch(compose, states_of, last_states, prompts.filling)
            for modality, compose in ways.items()
        },
        _facts(model, inputs),
        matryoshka_widths(width),
    )


def composers(
    prompts: Prompts, cutter: PatchCutter, inputs: Qwen3VLSettings
) -> Mapping[Modality, Compose]:
    """How an item of each modality becomes what the model reads."""
    return {
        Modality.TEXT: lambda item: _text(item, prompts, inputs),
        Modality.IMAGE: lambda item: _image(item, prompts, cutter, inputs),
        Modality.VIDEO: lambda item: _video(item, prompts, cutter, inputs),
    }


def conversation(shown: str, instruction: str) -> str:
    """The prompt in which a user shows something and the model is about to answer."""
    asked = instruction.strip()
    if not unicodedata.category(asked[-1]).startswith("P"):
        asked += "."
    return f"<|im_start|>system\n{asked}<|im_end|>\n<|im_start|>user\n{shown}{CLOSING}"


def video_prompt(times: list[float], tokens: int, *, wrapper: bool) -> str:
    """What stands for a video: for each time its seconds, and so many tokens between two marks."""
    marked = f"<|vision_start|>{VIDEO_TOKEN * tokens}<|vision_end|>"
    shown = "".join(f"<{seconds:.1f} seconds>{marked}" for seconds in times)
    return f"<|vision_start|>{shown}<|vision_end|>" if wrapper else shown


def matryoshka_widths(width: int) -> tuple[int, ...]:
    """The doubles of the narrowest feature up to the whole one."""
    doubles = (NARROWEST_FEATURE << power for power in range(width.bit_length()))
    return tuple(narrower for narrower in doubles if narrower <= width)


def _text(item: Text, prompts: Prompts, inputs: Qwen3VLSettings) -> Composed:
    shown = prompts.plain(item.text) or NOTHING
    tokens = prompts.tokens(conversation(shown, inputs.instruction))
    kept = cut_before(tokens, prompts.tokens(CLOSING), inputs.most_tokens)
    return Composed(kept, prompts.kinds(kept))


def _image(item: Image, prompts: Prompts, cutter: PatchCutter, inputs: Qwen3VLSettings) -> Composed:
    grid = cutter.image_grid(item, inputs.image)
    shown = f"<|vision_start|>{IMAGE_TOKEN * cutter.tokens_of(grid)}<|vision_end|>"
    return _composed(shown, grid, lambda: cutter.image_patches(item, inputs.image), prompts, inputs)


def _video(item: Video, prompts: Prompts, cutter: PatchCutter, inputs: Qwen3VLSettings) -> Composed:
    places = chosen_frames(item, inputs.frames)
    limits = frame_limits(len(places), inputs.frame, inputs.video_pixels)
    grid = cutter.video_grid(item, len(places), limits)
    times = times_of(places, item.frames_per_second, cutter.frames_together)
    shown = video_prompt(times, cutter.tokens_of(grid), wrapper=inputs.video_wrapper)
    return _composed(
        shown, grid, lambda: cutter.video_patches(item.frames[places], limits), prompts, inputs
    )


def _composed(
    shown: str,
    grid: Grid,
    patches: Callable[[], Any],
    prompts: Prompts,
    inputs: Qwen3VLSettings,
) -> Composed:
    tokens = prompts.tokens(conversation(shown, inputs.instruction))
    return Composed(tokens, prompts.kinds(tokens), grid, patches)


def _facts(model: Any, inputs: Qwen3VLSettings) -> Mapping[str, str]:  # noqa: ANN401
    return {
        "class": type(model).__name__,
        "pooling": "last token",
        "instruction": inputs.instruction,
        "text limit": f"{inputs.most_tokens} tokens",
        "image limit": f"{inputs.image.least:,} to {inputs.image.most:,} pixels",
        "video limit": f"{inputs.frames.per_second:g} frames a second, at most "
        f"{inputs.frames.most}, of {inputs.frame.least:,} to {inputs.frame.most:,} pixels, "
        f"{inputs.video_pixels:,} together",
    }

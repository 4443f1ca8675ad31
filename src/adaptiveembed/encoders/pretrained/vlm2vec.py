"""VLM2Vec-V2: Qwen2-VL with an adapter, for texts, pictures and videos."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from torch import Tensor

from adaptiveembed.data.media import Image, Text, Video
from adaptiveembed.encoders.pretrained.adapters import adapted, base_of
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
    PatchCutter,
    PixelLimits,
    TokenBatch,
    chosen_frames,
    cut_before,
)
from adaptiveembed.encoders.pretrained.qwen_passes import (
    Prompts,
    arguments_of,
    branch,
    last_states,
    load_cutter,
    plain_positions,
)
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality

VERSION = 1
"""Raised whenever anything here, or in what is composed here, changes a feature."""

TOKEN_PIXELS = 28 * 28
"""Pixels that one token of a picture stands for."""

LIMITS = PixelLimits(4 * TOKEN_PIXELS, 1280 * TOKEN_PIXELS)
FRAMES = FrameChoice(float("inf"), 8)

FOR_IMAGES = "Find me an everyday image that matches the given caption."
FOR_VIDEOS = "Find a video that includes the following described scenes:"
"""What stands before a text that is compared with pictures, and with videos."""


@dataclass(frozen=True)
class VLM2VecSettings:
    """How media become inputs. The defaults are those of the published model."""

    text_prompt: str = FOR_IMAGES
    """What stands before a text; one that is compared with videos takes ``FOR_VIDEOS``."""
    image_prompt: str = "Find an image caption describing the given image."
    """What stands behind a picture."""
    video_prompt: str = "Understand the content of the provided video."
    """What stands behind a video."""
    pixels: PixelLimits = LIMITS
    """Pixels of a picture or a frame."""
    frames: FrameChoice = FRAMES
    """Frames of a video that are looked at."""
    most_tokens: int = 2048
    """Tokens of a text with its prompt; what comes later is not read."""

    def __post_init__(self) -> None:
        if self.most_tokens < 1:
            raise SettingError(f"most_tokens is {self.most_tokens}; give at least 1")
        for name in ("text_prompt", "image_prompt", "video_prompt"):
            if not getattr(self, name).strip():
                raise SettingError(f"{name} is empty; leave it out, or say what is wanted")


def load_vlm2vec(
    settings: PretrainedSettings, inputs: VLM2VecSettings = VLM2VecSettings()
) -> PretrainedEncoder:
    """The state of the last token of a prompt without a conversation around it.

    The source is an adapter, which is merged into the model that it names, or a whole model. Hidden
    states are those of all tokens; a picture has four times as many patches as tokens.
    """
    base = base_of(settings)
    whole = settings if base is None else base
    model: Any = load_strict(imported("transformers").Qwen2VLForConditionalGeneration, whole)
    if base is not None:
        model = adapted(model, settings, current_name)
    prompts, cutter = Prompts(whole, model.config), load_cutter(whole)

    def states_of(batch: TokenBatch) -> Tensor:
        there = batch.to(model.device)
        # Without marks around it, a picture had the positions of text when the model was trained.
        positions = plain_positions(there)
        output = model.model(**arguments_of(there), position_ids=positions, use_cache=False)
        return cast("Tensor", output.last_hidden_state)

    composers = {
        Modality.TEXT: lambda item: _text(item, prompts, inputs),
        Modality.IMAGE: lambda item: _image(item, prompts, cutter, inputs),
        Modality.VIDEO: lambda item: _video(item, prompts, cutter, inputs),
    }
    return PretrainedEncoder(
        PretrainedKind.VLM2VEC,
        settings,
        _fingerprint(settings, base, inputs),
        model.config.text_config.hidden_size,
        {
            modality: branch(compose, states_of, last_states, prompts.filling)
            for modality, compose in composers.items()
        },
        _facts(model, base, inputs),
    )


def current_name(name: str) -> str:
    """What a tensor of Qwen2-VL is called that had this name when the adapter was published.

    peft itself would leave such a tensor out, and all of them are such.
    """
    if name.startswith("visual."):
        return f"model.{name}"
    if name.startswith("model.") and not name.startswith(
        ("model.visual.", "model.language_model.")
    ):
        return f"model.language_model.{name.removeprefix('model.')}"
    return name


def _text(item: Text, prompts: Prompts, inputs: VLM2VecSettings) -> Composed:
    text = prompts.plain(item.text)
    prompt = f"{inputs.text_prompt} {text}" if text else inputs.text_prompt
    kept = cut_before(prompts.tokens(prompt), (), inputs.most_tokens)
    return Composed(kept, prompts.kinds(kept))


def _image(item: Image, prompts: Prompts, cutter: PatchCutter, inputs: VLM2VecSettings) -> Composed:
    grid = cutter.image_grid(item, inputs.pixels)
    shown = IMAGE_TOKEN * cutter.tokens_of(grid)
    tokens = prompts.tokens(f"{shown} {inputs.image_prompt}")
    return Composed(
        tokens, prompts.kinds(tokens), grid, lambda: cutter.image_patches(item, inputs.pixels)
    )


def _video(item: Video, prompts: Prompts, cutter: PatchCutter, inputs: VLM2VecSettings) -> Composed:
    places = chosen_frames(item, inputs.frames)
    grid = cutter.video_grid(item, len(places), inputs.pixels)
    shown = VIDEO_TOKEN * (grid.times * cutter.tokens_of(grid))
    tokens = prompts.tokens(f"{shown} {inputs.video_prompt}")
    return Composed(
        tokens,
        prompts.kinds(tokens),
        grid,
        lambda: cutter.video_patches(item.frames[places], inputs.pixels),
    )


def _fingerprint(
    settings: PretrainedSettings, base: PretrainedSettings | None, inputs: VLM2VecSettings
) -> str:
    what = {"kind": PretrainedKind.VLM2VEC, "version": VERSION} | asdict(inputs)
    under = None if base is None else checkpoint_fingerprint(base, {})
    return checkpoint_fingerprint(settings, what | {"base": under})


def _facts(
    model: Any,  # noqa: ANN401
    base: PretrainedSettings | None,
    inputs: VLM2VecSettings,
) -> Mapping[str, str]:
    return {
        "class": type(model).__name__,
        "adapter on": "nothing" if base is None else base.source,
        "pooling": "last token",
        "prompts": " | ".join((inputs.text_prompt, inputs.image_prompt, inputs.video_prompt)),
        "text limit": f"{inputs.most_tokens} tokens",
        "image limit": f"{inputs.pixels.least:,} to {inputs.pixels.most:,} pixels",
        "video limit": f"{inputs.frames.most} frames of as many pixels as an image",
    }

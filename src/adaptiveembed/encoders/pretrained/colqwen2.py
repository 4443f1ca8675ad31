"""ColQwen2: a vector of length 1 for every token of a text or a picture, compared by MaxSim."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from adaptiveembed.data.media import Image, Text
from adaptiveembed.encoders.pretrained.checkpoint import (
    checkpoint_fingerprint,
    imported,
    load_part,
    load_strict,
)
from adaptiveembed.encoders.pretrained.encoder import PretrainedEncoder
from adaptiveembed.encoders.pretrained.qwen_inputs import (
    IMAGE_TOKEN,
    Composed,
    PatchCutter,
    TokenBatch,
)
from adaptiveembed.encoders.pretrained.qwen_passes import (
    Prompts,
    arguments_of,
    branch,
    load_cutter,
    picture_positions,
)
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.shapes import BatchFeatures, TokenMask, TokenStates
from adaptiveembed.structure.direction import Modality

VERSION = 1
"""Raised whenever anything here, or in what is composed here, changes a feature."""

AUGMENTATION = 10
"""Tokens that follow a text, in which the model notes what else the text asks for."""


def load_colqwen2(settings: PretrainedSettings) -> PretrainedEncoder:
    """Hidden states are the vectors of all tokens; the direction of their mean is the feature.

    The model was trained for MaxSim and not for that mean, which says roughly what an item is
    about. Every text is a query. A picture has four times as many patches as tokens.
    """
    transformers = imported("transformers")
    model: Any = load_strict(transformers.ColQwen2ForRetrieval, settings)
    processor = load_part(transformers.ColQwen2Processor, settings)
    prompts = Prompts(settings, model.config.vlm_config)
    cutter = load_cutter(settings)

    def states_of(batch: TokenBatch) -> Tensor:
        there = batch.to(model.device)
        # Left to itself, the model gives a picture positions as if it were text.
        positions = picture_positions(model.vlm, there)
        output = model(**arguments_in_rows(there), position_ids=positions, use_cache=False)
        return normalize(output.embeddings.float(), dim=-1)

    composers = {
        Modality.TEXT: lambda item: _text(item, prompts, processor),
        Modality.IMAGE: lambda item: _image(item, prompts, processor, cutter),
    }
    return PretrainedEncoder(
        PretrainedKind.COLQWEN2,
        settings,
        checkpoint_fingerprint(settings, {"kind": PretrainedKind.COLQWEN2, "version": VERSION}),
        model.config.embedding_dim,
        {
            modality: branch(compose, states_of, mean_states, prompts.filling)
            for modality, compose in composers.items()
        },
        _facts(model, cutter),
    )


def mean_states(states: TokenStates, mask: TokenMask) -> BatchFeatures:
    """The mean of the real tokens of every item."""
    real = mask[:, :, None]
    mean: Tensor = states.masked_fill(~real, 0).sum(dim=1) / real.sum(dim=1)
    return mean


def arguments_in_rows(batch: TokenBatch) -> Mapping[str, Tensor]:
    """The parts of a batch by the names that the model has; each picture has a row of patches."""
    arguments = arguments_of(batch)
    if batch.patches is None:
        return arguments
    counts = batch.patches.grids.prod(dim=1).tolist()
    rows = pad_sequence(list(torch.split(batch.patches.pixels, counts)), batch_first=True)
    return dict(arguments) | {"pixel_values": rows}


def _text(item: Text, prompts: Prompts, processor: Any) -> Composed:  # noqa: ANN401
    notes = processor.query_augmentation_token * AUGMENTATION
    tokens = prompts.tokens(f"{processor.query_prefix}{prompts.plain(item.text)}{notes}\n")
    return Composed(tokens, prompts.kinds(tokens))


def _image(item: Image, prompts: Prompts, processor: Any, cutter: PatchCutter) -> Composed:  # noqa: ANN401
    grid = cutter.image_grid(item, cutter.limits)
    shown = IMAGE_TOKEN * cutter.tokens_of(grid)
    tokens = prompts.tokens(processor.visual_prompt_prefix.replace(IMAGE_TOKEN, shown))
    return Composed(
        tokens, prompts.kinds(tokens), grid, lambda: cutter.image_patches(item, cutter.limits)
    )


def _facts(model: Any, cutter: PatchCutter) -> Mapping[str, str]:  # noqa: ANN401
    return {
        "class": type(model).__name__,
        "pooling": "mean of the vectors of all tokens, which are the hidden states",
        "image limit": f"{cutter.limits.least:,} to {cutter.limits.most:,} pixels",
    }

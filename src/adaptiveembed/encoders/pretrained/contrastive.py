"""Encoders of two aligned sides: CLIP and SigLIP for texts and images, CLAP for texts and sounds.

A hidden state goes through the projection that the pooled state goes through, so that it has the
width, and lies in the space, of the global feature. SigLIP pools images by attention and has no
such projection for them: its states of an image are those that its pooling attends to.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import PIL.Image
import torch
from torch import Tensor

from adaptiveembed.data.media import Audio, Image, Text
from adaptiveembed.encoders.pretrained.checkpoint import (
    checkpoint_fingerprint,
    imported,
    load_part,
    load_strict,
)
from adaptiveembed.encoders.pretrained.encoder import (
    Branch,
    Prepared,
    PretrainedEncoder,
    encoded,
    padded,
)
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.encoders.pretrained.sounds import at_rate, clap_features
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia

VERSION = 1
"""Raised whenever anything here changes a feature."""

NARROWEST = 200
"""How many times as wide as high a picture may be, or as high as wide. The short side is scaled to
the size of the model, and the long side takes memory in proportion."""

Project = Callable[[Tensor], Tensor]


def load_clip(settings: PretrainedSettings) -> PretrainedEncoder:
    """CLIP: the end token of a text and the class token of an image, projected."""
    model: Any = load_strict(imported("transformers").CLIPModel, settings)
    text_limit = model.config.text_config.max_position_embeddings
    branches = {
        Modality.TEXT: _texts(model, settings, text_limit, model.text_projection),
        Modality.IMAGE: _images(
            model,
            settings,
            lambda states: model.visual_projection(model.vision_model.post_layernorm(states)),
        ),
    }
    facts = {
        "class": type(model).__name__,
        "pooling": "end token of a text, class token of an image, projected",
        "text limit": f"{text_limit} tokens",
        "image limit": _image_limit(model),
    }
    return _encoder(PretrainedKind.CLIP, settings, model.config.projection_dim, branches, facts)


def load_siglip(settings: PretrainedSettings) -> PretrainedEncoder:
    """SigLIP: the last token of a text filled up to its limit, and an image pooled by attention."""
    model: Any = load_strict(imported("transformers").SiglipModel, settings)
    texts, pictures = model.config.text_config, model.config.vision_config
    if texts.projection_size != pictures.hidden_size:
        raise EncoderError(
            f"{settings.source} gives texts {texts.projection_size} numbers and images "
            f"{pictures.hidden_size}, which have no common space; choose another checkpoint"
        )
    text_limit = texts.max_position_embeddings
    branches = {
        Modality.TEXT: _filled_texts(model, settings, text_limit),
        Modality.IMAGE: _images(model, settings, lambda states: states),
    }
    facts = {
        "class": type(model).__name__,
        "pooling": "last token of a text, attention over an image",
        "text limit": f"{text_limit} tokens, and every text is filled up to them",
        "image limit": _image_limit(model),
    }
    return _encoder(PretrainedKind.SIGLIP, settings, pictures.hidden_size, branches, facts)


def load_clap(settings: PretrainedSettings) -> PretrainedEncoder:
    """CLAP: the first token of a text and the mean of all cells of a sound, projected."""
    model: Any = load_strict(imported("transformers").ClapModel, settings)
    extractor = load_part(imported("transformers").AutoFeatureExtractor, settings)
    pooler, config = model.text_model.pooler, model.config.text_config
    # positions are counted from behind the token that fills up
    text_limit = config.max_position_embeddings - config.pad_token_id - 1
    branches = {
        Modality.TEXT: _texts(
            model,
            settings,
            text_limit,
            lambda states: model.text_projection(pooler.activation(pooler.dense(states))),
        ),
        Modality.AUDIO: _sounds(model, extractor),
    }
    facts = {
        "class": type(model).__name__,
        "pooling": "first token of a text, mean of the cells of a sound, projected",
        "text limit": f"{text_limit} tokens",
        "audio limit": f"{extractor.max_length_s} s at {extractor.sampling_rate} Hz, "
        f"{_cut_of(extractor)}",
    }
    return _encoder(PretrainedKind.CLAP, settings, model.config.projection_dim, branches, facts)


def _encoder(
    kind: PretrainedKind,
    settings: PretrainedSettings,
    width: int,
    branches: Mapping[Modality, Branch],
    facts: Mapping[str, str],
) -> PretrainedEncoder:
    fingerprint = checkpoint_fingerprint(settings, {"kind": kind, "version": VERSION})
    return PretrainedEncoder(kind, settings, fingerprint, width, branches, facts)


def _texts(model: Any, settings: PretrainedSettings, limit: int, project: Project) -> Branch:  # noqa: ANN401
    tokenizer = load_part(imported("transformers").AutoTokenizer, settings)

    def prepare(item: Text) -> Prepared:
        tokens = tokenizer(item.text, truncation=True, max_length=limit)["input_ids"]
        return Prepared(len(tokens), tokens)

    def forward(rows: Sequence[Sequence[int]]) -> EncodedMedia:
        tokens, mask = (
            one.to(model.device) for one in padded(rows, filling=tokenizer.pad_token_id)
        )
        output = model.get_text_features(input_ids=tokens, attention_mask=mask.long())
        return encoded(output.pooler_output, project(output.last_hidden_state), mask)

    return Branch(prepare, forward)


def _filled_texts(model: Any, settings: PretrainedSettings, limit: int) -> Branch:  # noqa: ANN401
    """Texts of one length. The model reads what they are filled up with, so all states are real."""
    tokenizer = load_part(imported("transformers").AutoTokenizer, settings)

    def prepare(item: Text) -> Prepared:
        tokens = tokenizer(item.text, truncation=True, max_length=limit, padding="max_length")
        return Prepared(limit, tokens["input_ids"])

    def forward(rows: Sequence[Sequence[int]]) -> EncodedMedia:
        output = model.get_text_features(input_ids=torch.tensor(rows, device=model.device))
        states = model.text_model.head(output.last_hidden_state)
        return encoded(output.pooler_output, states, _all_real(states))

    return Branch(prepare, forward)


def _images(model: Any, settings: PretrainedSettings, project: Project) -> Branch:  # noqa: ANN401
    processor = load_part(
        imported("transformers").AutoImageProcessor,
        settings,
        backend="pil",  # features are the same whether torchvision is installed or not
    )
    patches = len(model.vision_model.embeddings.position_embedding.weight)

    def prepare(item: Image) -> Prepared:
        return Prepared(patches, _picture(item))

    def forward(pictures: Sequence[PIL.Image.Image]) -> EncodedMedia:
        pixels = processor(images=list(pictures), return_tensors="pt")["pixel_values"]
        output = model.get_image_features(pixel_values=pixels.to(model.device, model.dtype))
        states = project(output.last_hidden_state)
        return encoded(output.pooler_output, states, _all_real(states))

    return Branch(prepare, forward)


def _sounds(model: Any, extractor: Any) -> Branch:  # noqa: ANN401
    cells = (model.config.audio_config.spec_size // model.config.audio_config.patch_size) ** 2
    fused = extractor.truncation == "fusion"

    def prepare(item: Audio) -> Prepared:
        return Prepared(cells, at_rate(item, extractor.sampling_rate))

    def forward(sounds: Sequence[Any]) -> EncodedMedia:
        features = torch.stack([torch.tensor(clap_features(one, extractor)) for one in sounds])
        # The official extractor calls one short sound of a batch long, by chance, and so the only
        # one always. Each sound is given what it would be given alone.
        longer = torch.full((len(sounds), 1), fused, device=model.device)
        output = model.get_audio_features(features.to(model.device, model.dtype), is_longer=longer)
        states = model.audio_projection(output.last_hidden_state.flatten(2).transpose(1, 2))
        return encoded(output.pooler_output, states, _all_real(states))

    return Branch(prepare, forward)


def _all_real(states: Tensor) -> Tensor:
    return torch.ones(states.shape[:2], dtype=torch.bool)


def _picture(item: Image) -> PIL.Image.Image:
    height, width = item.pixels.shape[:2]
    if max(height, width) > NARROWEST * min(height, width):
        raise EncoderError(
            f"a picture of {width} × {height} pixels is too narrow; give one whose long side is at "
            f"most {NARROWEST} times the short side"
        )
    return PIL.Image.fromarray(item.pixels)


def _image_limit(model: Any) -> str:  # noqa: ANN401
    size = model.config.vision_config.image_size
    return f"{size} × {size} pixels"


def _cut_of(extractor: Any) -> str:  # noqa: ANN401
    """What is taken of a longer sound."""
    if extractor.truncation == "fusion":
        return "of a longer sound the whole and the middle place of each third"
    return "of a longer sound its middle"

"""WAVE-7B: texts and sounds in one space, by a thinker of Qwen2.5-Omni that hears twice.

A sound is heard by the thinker's own tower and by BEATs, 25 states a second each, and the states of
both stand in turns. Its feature is what a head makes of the last token in all layers; that of a
text is its last token in the last layer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from adaptiveembed.data.media import Audio, Text
from adaptiveembed.encoders.pretrained.beats import (
    RATE,
    Beats,
    beats_sizes,
    beats_tensors,
    spectrum,
)
from adaptiveembed.encoders.pretrained.checkpoint import (
    checkpoint_fingerprint,
    device_of,
    dtype_of,
    fill_strict,
    imported,
    load_part,
    load_strict,
    stored_tensors,
)
from adaptiveembed.encoders.pretrained.encoder import (
    Branch,
    Prepared,
    PretrainedEncoder,
    encoded,
    padded,
)
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.encoders.pretrained.sounds import at_rate
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia

VERSION = 1
"""Raised whenever anything here changes a feature."""

OWN = ("beats.", "beats_ln.", "beats_proj.", "classify_linear.")
"""Tensors that WAVE adds to the thinker."""
UNUSED = ("beats.predictor.",)
"""Of BEATs, what names the classes of sounds."""

END = "<|im_end|>"
HEARD = "<|AUDIO|>"
BEFORE, BEHIND = "<|audio_bos|>", f"<|audio_eos|>Please describe the audio.{END}"

SHORTEST = RATE
"""Samples; a shorter sound is filled up with silence to one second."""

POOLED = 2
"""States of BEATs that become one."""


class Ears(nn.Module):
    """What WAVE adds to the thinker, under the names of its checkpoint."""

    def __init__(self, tensors: Mapping[str, Tensor], width: int, layers: int) -> None:
        super().__init__()
        sizes = beats_sizes(part_of(tensors, "beats."))
        self.beats = Beats(sizes)
        self.beats_ln = nn.LayerNorm(sizes.width)
        self.beats_proj = _two_layers(sizes.width, width)
        self.classify_linear = _two_layers(width * layers, width)

    def hear(self, spectrum_of_one: Tensor, states: int) -> Tensor:
        """So many states of one sound [states, width]; silence where BEATs has fewer."""
        heard = self.beats(spectrum_of_one[None])[0, : states * POOLED]
        filled = functional.pad(heard, (0, 0, 0, states * POOLED - len(heard)))
        pooled = filled.reshape(states, POOLED, -1).mean(dim=1)
        projected: Tensor = self.beats_proj(self.beats_ln(pooled))
        return projected


class Sound(NamedTuple):
    """One sound as both ears take it, and the tokens of its prompt."""

    mels: Tensor  # [bands, frames]
    spectrum: Tensor  # [frames, bands]
    tokens: list[int]
    states: int


def load_wave(settings: PretrainedSettings) -> PretrainedEncoder:
    """The encoder of texts and sounds."""
    transformers = imported("transformers")
    thinker: Any = load_strict(
        transformers.Qwen2_5OmniThinkerForConditionalGeneration, settings, ignored=OWN
    )
    words = load_part(transformers.AutoTokenizer, settings)
    extractor = load_part(transformers.WhisperFeatureExtractor, settings)
    branches = {
        Modality.TEXT: _texts(thinker, words),
        Modality.AUDIO: _sounds(thinker, _ears(thinker, settings), words, extractor),
    }
    facts = {
        "class": f"{type(thinker).__name__} + BEATs",
        "pooling": "last token of a text, last token of a sound in all layers through a head",
        "text limit": f"{_text_limit(thinker)} tokens",
        "audio limit": f"the first {extractor.chunk_length} s at {RATE} Hz",
    }
    fingerprint = checkpoint_fingerprint(
        settings, {"kind": PretrainedKind.WAVE, "version": VERSION}
    )
    width = thinker.config.text_config.hidden_size
    return PretrainedEncoder(PretrainedKind.WAVE, settings, fingerprint, width, branches, facts)


def _ears(thinker: Any, settings: PretrainedSettings) -> Ears:  # noqa: ANN401
    stored = {
        name: tensor
        for name, tensor in stored_tensors(settings, OWN).items()
        if not name.startswith(UNUSED)
    }
    tensors = {name: tensor for name, tensor in stored.items() if not name.startswith("beats.")}
    config = thinker.config.text_config
    try:
        beats = beats_tensors(part_of(stored, "beats."))
        tensors |= {f"beats.{name}": tensor for name, tensor in beats.items()}
        ears = Ears(tensors, config.hidden_size, config.num_hidden_layers)
    except EncoderError as error:
        raise EncoderError(f"{settings.source}: {error}") from error
    fill_strict(ears, tensors, settings)
    return ears.to(device_of(settings), dtype_of(settings))


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under the prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _two_layers(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width))


def _text_limit(thinker: Any) -> int:  # noqa: ANN401
    return int(thinker.config.text_config.max_position_embeddings)


def _texts(thinker: Any, words: Any) -> Branch:  # noqa: ANN401
    end = words.convert_tokens_to_ids(END)

    def prepare(item: Text) -> Prepared:
        tokens = [*words(item.text)["input_ids"][: _text_limit(thinker) - 1], end]
        return Prepared(len(tokens), tokens)

    def forward(rows: Sequence[Sequence[int]]) -> EncodedMedia:
        tokens, mask = (one.to(thinker.device) for one in padded(rows, filling=words.pad_token_id))
        states = _layers(thinker, thinker.get_input_embeddings()(tokens), mask)[-1]
        return encoded(_last(states, mask), states, mask)

    return Branch(prepare, forward)


def _sounds(thinker: Any, ears: Ears, words: Any, extractor: Any) -> Branch:  # noqa: ANN401
    def prepare(item: Audio) -> Prepared:
        sound = _sound(at_rate(item, RATE), words, extractor)
        return Prepared(len(sound.tokens), sound)

    def forward(sounds: Sequence[Sound]) -> EncodedMedia:
        tokens, mask = (
            one.to(thinker.device)
            for one in padded([sound.tokens for sound in sounds], filling=words.pad_token_id)
        )
        heard = torch.cat(_in_turns(thinker, ears, sounds))
        inputs = thinker.get_input_embeddings()(tokens)
        inputs[(tokens == thinker.config.audio_token_id) & mask] = heard
        layers = _layers(thinker, inputs, mask)
        last = torch.cat([_last(states, mask) for states in layers], dim=1)
        return encoded(ears.classify_linear(last), layers[-1], mask)

    return Branch(prepare, forward)


def _sound(samples: np.ndarray, words: Any, extractor: Any) -> Sound:  # noqa: ANN401
    samples = samples[: extractor.chunk_length * RATE]
    samples = np.pad(samples, (0, max(0, SHORTEST - len(samples))))
    # The published code fills up to the longest sound; what lies behind this second is cut anyway.
    seconds = -(-len(samples) // RATE) + 1
    features = extractor(
        samples,
        sampling_rate=RATE,
        padding="max_length",
        max_length=seconds * RATE,
        return_attention_mask=True,
        return_tensors="pt",
    )
    mels = features["input_features"][0][:, features["attention_mask"][0].bool()]
    states = ((mels.shape[1] - 1) // 2 + 1 - 2) // 2 + 1
    tokens = words(BEFORE + HEARD * (2 * states) + BEHIND)["input_ids"]
    return Sound(mels, spectrum(samples), tokens, states)


def _in_turns(thinker: Any, ears: Ears, sounds: Sequence[Sound]) -> list[Tensor]:  # noqa: ANN401
    """Of each sound the states of the tower and of BEATs, in turns [2 states, width]."""
    frames = [sound.mels.shape[1] for sound in sounds]
    mels = nn.utils.rnn.pad_sequence([sound.mels.T for sound in sounds], batch_first=True)
    mask = torch.arange(max(frames)) < torch.tensor(frames)[:, None]
    tower = thinker.model.get_audio_features(
        mels.transpose(1, 2).to(thinker.device, thinker.dtype), mask.long().to(thinker.device)
    ).last_hidden_state
    parts = tower.split([sound.states for sound in sounds])
    heard = [
        ears.hear(sound.spectrum.to(thinker.device, thinker.dtype), sound.states)
        for sound in sounds
    ]
    return [torch.stack(both, dim=1).flatten(0, 1) for both in zip(parts, heard, strict=True)]


def _layers(thinker: Any, inputs: Tensor, mask: Tensor) -> list[Tensor]:  # noqa: ANN401
    """The states behind every layer, the last ones normed."""
    output = thinker.model.language_model(
        inputs_embeds=inputs,
        attention_mask=mask.long(),
        position_ids=(mask.long().cumsum(1) - 1).clamp(min=0).expand(3, -1, -1),
        use_cache=False,
        output_hidden_states=True,
    )
    return list(output.hidden_states[1:])


def _last(states: Tensor, mask: Tensor) -> Tensor:
    """The state of the last real token of each item; rows are filled up behind their ends."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows, mask.sum(dim=1) - 1]

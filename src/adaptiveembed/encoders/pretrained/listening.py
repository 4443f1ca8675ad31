"""Encoders of sounds alone: Whisper's encoder, made for speech, and AST, made for all sounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from adaptiveembed.data.media import Audio
from adaptiveembed.encoders.pretrained.checkpoint import (
    checkpoint_fingerprint,
    imported,
    load_part,
    load_strict,
)
from adaptiveembed.encoders.pretrained.encoder import Branch, Prepared, PretrainedEncoder, encoded
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.encoders.pretrained.sounds import at_rate, narrow_bands
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia

VERSION = 1
"""Raised whenever anything here changes a feature."""

STRIDE = 2
"""Frames of Whisper's spectrum that become one state."""

SHORTEST = 400
"""Samples of one window of AST; a shorter sound is filled up with silence."""


def load_whisper(settings: PretrainedSettings) -> PretrainedEncoder:
    """Whisper's encoder: the mean of the states that hear the sound, not the silence behind it."""
    # published checkpoints are speech recognisers; only the encoder is kept
    encoder: Any = load_strict(
        imported("transformers").WhisperModel, settings, ignored=("proj_out.",)
    ).encoder
    extractor = _extractor(settings)
    states_of_all = encoder.config.max_source_positions

    def prepare(item: Audio) -> Prepared:
        return Prepared(states_of_all, at_rate(item, extractor.sampling_rate))

    def forward(sounds: Sequence[np.ndarray]) -> EncodedMedia:
        spectra = extractor(
            list(sounds), sampling_rate=extractor.sampling_rate, return_tensors="pt"
        )["input_features"]
        states = encoder(spectra.to(encoder.device, encoder.dtype)).last_hidden_state.float().cpu()
        lengths = [_heard(len(sound), extractor.hop_length) for sound in sounds]
        mask = torch.arange(states.shape[1]) < torch.tensor(lengths)[:, None]
        sums = states.masked_fill(~mask[:, :, None], 0).sum(dim=1)
        return encoded(sums / mask.sum(dim=1, keepdim=True), states, mask)

    facts = {
        "class": type(encoder).__name__,
        "pooling": "mean of the states that hear the sound",
        "audio limit": f"the first {extractor.chunk_length} s at {extractor.sampling_rate} Hz",
    }
    return _encoder(
        PretrainedKind.WHISPER, settings, encoder.config.d_model, Branch(prepare, forward), facts
    )


def load_ast(settings: PretrainedSettings) -> PretrainedEncoder:
    """The Audio Spectrogram Transformer: the mean of its two class tokens."""
    # published checkpoints are classifiers, whose last layer is not wanted
    model: Any = load_strict(imported("transformers").ASTModel, settings, ignored=("classifier.",))
    extractor = _extractor(settings)
    patches = model.embeddings.position_embeddings.shape[1]

    def prepare(item: Audio) -> Prepared:
        samples = at_rate(item, extractor.sampling_rate)
        return Prepared(patches, np.pad(samples, (0, max(0, SHORTEST - len(samples)))))

    def forward(sounds: Sequence[np.ndarray]) -> EncodedMedia:
        spectra = extractor(
            list(sounds), sampling_rate=extractor.sampling_rate, return_tensors="pt"
        )["input_values"]
        output = model(spectra.to(model.device, model.dtype))
        states = output.last_hidden_state
        return encoded(output.pooler_output, states, torch.ones(states.shape[:2]))

    facts = {
        "class": type(model).__name__,
        "pooling": "mean of the two class tokens",
        "audio limit": f"the first {extractor.max_length} frames of 10 ms at "
        f"{extractor.sampling_rate} Hz",
    }
    return _encoder(
        PretrainedKind.AST, settings, model.config.hidden_size, Branch(prepare, forward), facts
    )


def _extractor(settings: PretrainedSettings) -> Any:  # noqa: ANN401
    with narrow_bands():
        return load_part(imported("transformers").AutoFeatureExtractor, settings)


def _heard(samples: int, hop: int) -> int:
    """States of which the first frame lies within the sound; at least one."""
    return max(1, -(-samples // (hop * STRIDE)))


def _encoder(
    kind: PretrainedKind,
    settings: PretrainedSettings,
    width: int,
    branch: Branch,
    facts: dict[str, str],
) -> PretrainedEncoder:
    fingerprint = checkpoint_fingerprint(settings, {"kind": kind, "version": VERSION})
    return PretrainedEncoder(kind, settings, fingerprint, width, {Modality.AUDIO: branch}, facts)

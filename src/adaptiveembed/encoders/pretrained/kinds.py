"""What loads each kind of pretrained encoder, imported when it is asked for."""

import importlib
from collections.abc import Callable, Mapping
from typing import cast
from weakref import WeakValueDictionary

from adaptiveembed.encoders.pretrained.checkpoint import checkpoint_fingerprint, pinned
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.errors import EncoderError

LOADERS: Mapping[PretrainedKind, tuple[str, str]] = {
    PretrainedKind.CLIP: ("contrastive", "load_clip"),
    PretrainedKind.SIGLIP: ("contrastive", "load_siglip"),
    PretrainedKind.CLAP: ("contrastive", "load_clap"),
    PretrainedKind.QWEN3_VL: ("qwen3_vl", "load_qwen3_vl"),
    PretrainedKind.COLQWEN2: ("colqwen2", "load_colqwen2"),
    PretrainedKind.VLM2VEC: ("vlm2vec", "load_vlm2vec"),
    PretrainedKind.WAVE: ("wave", "load_wave"),
    PretrainedKind.SENTENCE_TRANSFORMERS: ("sentences", "load_sentences"),
    PretrainedKind.WHISPER: ("listening", "load_whisper"),
    PretrainedKind.AST: ("listening", "load_ast"),
}
"""Of each kind, a module of this package and what in it makes an encoder of PretrainedSettings.

An encoder may also have ``facts``, a mapping of short texts, which ``inspect encoder`` prints.
"""

_loaded: WeakValueDictionary[tuple[PretrainedKind, PretrainedSettings, str], Encoder] = (
    WeakValueDictionary()
)


def load_pretrained(kind: PretrainedKind, settings: PretrainedSettings) -> Encoder:
    """The encoder of this kind and checkpoint.

    While one is in use it is given again, so that both sides of a pair share one set of weights.
    """
    found = pinned(settings)
    key = (kind, found, checkpoint_fingerprint(found, {}))
    encoder = _loaded.get(key)
    if encoder is None:
        encoder = _loaded[key] = loader_of(kind)(found)
    return encoder


def loader_of(kind: PretrainedKind) -> Callable[[PretrainedSettings], Encoder]:
    """What makes an encoder of this kind."""
    if kind not in LOADERS:
        raise EncoderError(f"{kind} is not written yet; give one of {', '.join(LOADERS)}")
    module, name = LOADERS[kind]
    found = importlib.import_module(f"adaptiveembed.encoders.pretrained.{module}")
    return cast("Callable[[PretrainedSettings], Encoder]", getattr(found, name))

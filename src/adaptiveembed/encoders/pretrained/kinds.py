"""The class of every kind of pretrained encoder, imported when one is loaded."""

import importlib
from collections.abc import Callable, Mapping
from typing import cast
from weakref import WeakValueDictionary

from adaptiveembed.encoders.pretrained.checkpoint import checkpoint_fingerprint, pinned
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.errors import EncoderError

CLASSES: Mapping[PretrainedKind, tuple[str, str]] = {}
"""Module of this package and class of each kind; the class is called with PretrainedSettings."""

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
        encoder = _loaded[key] = class_of(kind)(found)
    return encoder


def class_of(kind: PretrainedKind) -> Callable[[PretrainedSettings], Encoder]:
    """The class of this kind."""
    if kind not in CLASSES:
        raise EncoderError(f"{kind} is not written yet; give one of {', '.join(CLASSES)}")
    module, name = CLASSES[kind]
    found = importlib.import_module(f"adaptiveembed.encoders.pretrained.{module}")
    return cast("Callable[[PretrainedSettings], Encoder]", getattr(found, name))

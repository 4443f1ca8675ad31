"""Encoders by name: the built-in one, published checkpoints, and anyone's own."""

import importlib
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from adaptiveembed.data.media import Media
from adaptiveembed.encoders.fingerprints import DerivedFingerprintWarning, derived_fingerprint
from adaptiveembed.encoders.pretrained.kinds import load_pretrained
from adaptiveembed.encoders.pretrained.settings import (
    PretrainedKind,
    is_pretrained_name,
    parse_name,
)
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.encoders.training_free.encoder import TrainingFreeEncoder
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia

TRAINING_FREE = "training-free"
"""The name of the built-in encoder."""


def load_encoder(name: str, modality: Modality) -> Encoder:
    """The encoder of this name, if it encodes this modality and has all that an encoder needs.

    ``KIND:SOURCE[,key=value...]`` names a published checkpoint, and a kind goes before a module of
    the same name. ``module:object`` names a class or a function, which is called without arguments,
    or an encoder; the module may also lie in the folder in which the process runs.
    """
    if name == TRAINING_FREE:
        return TrainingFreeEncoder(modality)
    encoder = named_encoder(name)
    if modality not in encoder.modalities:
        served = ", ".join(encoder.modalities)
        raise EncoderError(
            f"{name} encodes {served}, not {modality}; choose another for {modality}"
        )
    return encoder


def load_encoders(names: Mapping[Modality, str]) -> dict[Modality, Encoder]:
    """An encoder for every modality; what one name stands for is loaded once for all it encodes."""
    found: dict[Modality, Encoder] = {}
    for modality, name in names.items():
        loaded = (one for other, one in found.items() if names[other] == name)
        shared = next((one for one in loaded if modality in one.modalities), None)
        found[modality] = shared or load_encoder(name, modality)
    return found


def named_encoder(name: str) -> Encoder:
    """The encoder of this name, whatever it encodes; the built-in one is not meant."""
    if is_pretrained_name(name):
        return load_pretrained(*parse_name(name))
    return complete_encoder(_made(_found(name), name), name)


def complete_encoder(encoder: object, name: str) -> Encoder:
    """The encoder, if it has all that an encoder needs; the error names everything that is wrong.

    One without a fingerprint is given one that is derived from it, with a warning.
    """
    problems = list(_problems(encoder))
    if problems:
        raise EncoderError(f"{name} is no encoder: {'; '.join(problems)}")
    if getattr(encoder, "fingerprint", None) is None:
        return _with_fingerprint(encoder, name)
    return cast("Encoder", encoder)


@dataclass(frozen=True)
class FingerprintedEncoder:
    """An encoder as it is, with a fingerprint that was derived from it."""

    encoder: Any
    fingerprint: str

    @property
    def name(self) -> str:
        return cast("str", self.encoder.name)

    @property
    def modalities(self) -> Collection[Modality]:
        return cast("Collection[Modality]", self.encoder.modalities)

    @property
    def width(self) -> int:
        return cast("int", self.encoder.width)

    @property
    def space(self) -> str:
        return cast("str", self.encoder.space)

    @property
    def matryoshka_widths(self) -> tuple[int, ...]:
        return tuple(self.encoder.matryoshka_widths)

    def encode(self, batch: Sequence[Media]) -> EncodedMedia:
        return cast("EncodedMedia", self.encoder.encode(batch))


def _with_fingerprint(encoder: object, name: str) -> FingerprintedEncoder:
    fingerprint = derived_fingerprint(encoder)
    warnings.warn(
        f"{name} has no fingerprint; {fingerprint} was derived from the source of its module, its "
        f"attributes and its weights. It does not see other files: give the encoder a fingerprint "
        f"that changes whenever its features do",
        DerivedFingerprintWarning,
        stacklevel=4,
    )
    return FingerprintedEncoder(encoder, fingerprint)


def _found(name: str) -> object:
    """The object that ``module:object`` names."""
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise EncoderError(
            f"{name!r} names no encoder; give {TRAINING_FREE!r}, or module:object, for "
            f"example my_encoders:MyEncoder, or KIND:SOURCE with one of {', '.join(PretrainedKind)}"
        )
    module = _imported(module_name, name)
    try:
        return attrgetter(path)(module)
    except AttributeError as error:
        raise EncoderError(
            f"{name} names nothing: {error}; {module_name} is {module.__file__}"
        ) from error


def _imported(module_name: str, name: str) -> Any:  # noqa: ANN401 - a module, whatever is in it
    here = str(Path.cwd())
    if here not in sys.path:
        # It stays, because an encoder may import more when it is used.
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except Exception as error:
        raise EncoderError(
            f"{name} cannot be imported: {_said(error)}; {module_name} is no kind of pretrained "
            f"encoder ({', '.join(PretrainedKind)}), and as a module it is looked for in {here} "
            f"and where packages are installed"
        ) from error


def _made(thing: object, name: str) -> object:
    """An encoder: what was named, or what it gives when it is called."""
    is_ready = hasattr(thing, "encode") and not isinstance(thing, type)
    if is_ready or not callable(thing):
        return thing
    try:
        return thing()
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(
            f"{name} cannot be made: {_said(error)}; it is called without arguments"
        ) from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _problems(encoder: object) -> Iterator[str]:
    """All that is missing or wrong, in words."""
    for attribute, (is_right, needed) in NEEDED.items():
        try:
            value = getattr(encoder, attribute)
        except AttributeError:
            if attribute != "fingerprint":
                yield f"{attribute} is missing ({needed})"
            continue
        if not is_right(value):
            yield f"{attribute} is {value!r}, needed is {needed}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_text_or_none(value: object) -> bool:
    return value is None or _is_text(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_modalities(value: object) -> bool:
    known = set(Modality)
    return (
        isinstance(value, Collection)
        and not isinstance(value, str)
        and len(value) > 0
        and all(isinstance(one, str) and one in known for one in value)
    )


def _is_ascending_counts(value: object) -> bool:
    if not isinstance(value, tuple | list) or not all(map(_is_count, value)):
        return False
    return list(value) == sorted(set(value))


NEEDED: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "name": (_is_text, "a text"),
    "fingerprint": (_is_text_or_none, "a text that changes whenever the features do"),
    "modalities": (_is_modalities, f"some of {', '.join(Modality)}"),
    "width": (_is_count, "a whole number"),
    "space": (_is_text, "a text; equal names mean aligned spaces"),
    "matryoshka_widths": (_is_ascending_counts, "whole numbers in ascending order, or ()"),
    "encode": (callable, "a method that takes a batch of media and gives EncodedMedia"),
}
"""What every encoder has, how that is checked, and what it is in words."""

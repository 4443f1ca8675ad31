"""Which checkpoint a pretrained encoder is made of and how it runs, and how people write that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from adaptiveembed.errors import EncoderError, SettingError


class PretrainedKind(StrEnum):
    """How a checkpoint becomes features: its inputs, its model and its pooling."""

    CLIP = "clip"
    SIGLIP = "siglip"
    CLAP = "clap"
    QWEN3_VL = "qwen3-vl"
    WAVE = "wave"
    COLQWEN2 = "colqwen2"
    VLM2VEC = "vlm2vec"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    WHISPER = "whisper"
    AST = "ast"


class EncoderDtype(StrEnum):
    """The type of number that a model computes in."""

    AUTO = "auto"
    """float32 on a CPU, bfloat16 on CUDA."""
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"


class EncoderDevice(StrEnum):
    """Where a model runs."""

    AUTO = "auto"
    """On CUDA if there is a device, else on the CPU."""
    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True)
class PretrainedSettings:
    """A checkpoint, and how its model runs."""

    source: str
    """An id on the Hugging Face hub, or a folder."""
    revision: str | None = None
    """Branch, tag or commit on the hub; open: the main branch."""
    local_files_only: bool = False
    """Whether only files that are on this machine already are looked at."""
    dtype: EncoderDtype = EncoderDtype.AUTO
    """What the model computes in: ``auto``, ``float32``, ``float16`` or ``bfloat16``."""
    device: EncoderDevice = EncoderDevice.AUTO
    """Where it runs: ``auto``, ``cpu`` or ``cuda``."""
    attention: str | None = None
    """The implementation of attention, as transformers names it (``eager``, ``sdpa``,
    ``flash_attention_2``); open: what transformers chooses."""
    token_budget: int = 8192
    """The most tokens, frames or patches, padding included, of one forward pass; a batch is cut to
    it. An item that is longer by itself goes alone."""
    trust_remote_code: bool = False
    """Whether code that lies beside the weights may run. It can do anything that you can."""

    def __post_init__(self) -> None:
        if not self.source:
            raise SettingError("source is empty; give an id on the Hugging Face hub, or a folder")
        if self.token_budget < 1:
            raise SettingError(f"token_budget is {self.token_budget}; give at least 1")


def is_pretrained_name(text: str) -> bool:
    """Whether the text begins with a kind of pretrained encoder and a colon."""
    kind, colon, _ = text.partition(":")
    return bool(colon) and kind in set(PretrainedKind)


def parse_name(text: str) -> tuple[PretrainedKind, PretrainedSettings]:
    """What ``KIND:SOURCE[,key=value...]`` says.

    >>> kind, settings = parse_name("clip:openai/clip-vit-base-patch32,dtype=bfloat16")
    >>> kind.value, settings.source, settings.dtype.value
    ('clip', 'openai/clip-vit-base-patch32', 'bfloat16')
    """
    kind, _, rest = text.partition(":")
    source, *options = rest.split(",")
    if not (is_pretrained_name(text) and source):
        raise EncoderError(
            f"{text!r} names no pretrained encoder; write KIND:SOURCE[,key=value...] with one of "
            f"{', '.join(PretrainedKind)}"
        )
    return PretrainedKind(kind), PretrainedSettings(source, **_read_options(options, text))


def _read_options(options: list[str], name: str) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in READERS or not equals:
            raise SettingError(
                f"{option!r} in {name!r} sets nothing; write key=value with one of "
                f"{', '.join(READERS)}"
            )
        if key in read:
            raise SettingError(f"{key} stands twice in {name!r}; give it once")
        read[key] = READERS[key](key, value)
    return read


def _text(key: str, value: str) -> str:
    if not value:
        raise SettingError(f"{key} is empty; give a value, or leave {key} out")
    return value


def _truth(key: str, value: str) -> bool:
    if value not in {"true", "false"}:
        raise SettingError(f"{key} is {value!r}; give true or false")
    return value == "true"


def _count(key: str, value: str) -> int:
    # Python reads no number of more than some thousand digits
    if not (value.isascii() and value.isdecimal() and len(value) < 19 and int(value) > 0):
        raise SettingError(f"{key} is {value!r}; give a whole number, at least 1")
    return int(value)


def _one_of(choices: type[StrEnum]) -> Callable[[str, str], StrEnum]:
    def read(key: str, value: str) -> StrEnum:
        if value not in set(choices):
            raise SettingError(f"{key} is {value!r}; give one of {', '.join(choices)}")
        return choices(value)

    return read


_BY_FIELD: Mapping[str, Callable[[str, str], object]] = {
    "local_files_only": _truth,
    "dtype": _one_of(EncoderDtype),
    "device": _one_of(EncoderDevice),
    "token_budget": _count,
    "trust_remote_code": _truth,
}

READERS: Mapping[str, Callable[[str, str], object]] = {
    field.name: _BY_FIELD.get(field.name, _text)
    for field in fields(PretrainedSettings)
    if field.name != "source"
}
"""Every key that may be written behind the source, and how its value is read."""

"""The kind of encoder that a folder holds, by what its checkpoint says of itself."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adaptiveembed.encoders.pretrained.settings import PretrainedKind
from adaptiveembed.errors import EncoderError

KINDS: Mapping[str, PretrainedKind] = {
    "audio-spectrogram-transformer": PretrainedKind.AST,
    "clap": PretrainedKind.CLAP,
    "clip": PretrainedKind.CLIP,
    "colqwen2": PretrainedKind.COLQWEN2,
    "qwen2_5_omni_thinker": PretrainedKind.WAVE,
    "qwen3_vl": PretrainedKind.QWEN3_VL,
    "siglip": PretrainedKind.SIGLIP,
    "whisper": PretrainedKind.WHISPER,
}
"""By the ``model_type`` of the configuration. A plain Qwen2-VL is not among them: only the adapter
beside it makes it an encoder."""


def kind_of_folder(folder: Path) -> PretrainedKind:
    """The kind that fits; a model that we know goes before how sentence-transformers runs it."""
    known = KINDS.get(_read(folder / "config.json").get("model_type", ""))
    if known is not None:
        return known
    if (folder / "modules.json").is_file():
        return PretrainedKind.SENTENCE_TRANSFORMERS
    if (folder / "adapter_config.json").is_file():
        return PretrainedKind.VLM2VEC
    raise EncoderError(
        f"{folder} does not say which kind of encoder it holds; write KIND:{folder} with one of "
        f"{', '.join(PretrainedKind)}"
    )


def _read(path: Path) -> dict[str, Any]:
    """What the file says; nothing if it is not there."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path} cannot be read ({error}); get the checkpoint again") from error
    return said if isinstance(said, dict) else {}

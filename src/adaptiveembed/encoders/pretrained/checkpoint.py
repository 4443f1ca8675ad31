"""Checkpoints: loaded whole or not at all, and a fingerprint of what they hold."""

import hashlib
import importlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from torch import Tensor, nn

from adaptiveembed.encoders.pretrained.settings import (
    EncoderDevice,
    EncoderDtype,
    PretrainedSettings,
)
from adaptiveembed.errors import EncoderError, SettingError

SHOWN_TENSORS = 5
"""Tensors that an error names before it counts the others."""

WHOLE_BYTES = 1 << 25
"""A file up to this size is hashed whole; a larger one is sampled."""
SAMPLES = 256
"""Blocks of a large file that are hashed, evenly spaced, the first and the last among them."""
SAMPLE_BYTES = 1 << 14
HEADER_LENGTH = 8
"""Bytes that say how long the header of a safetensors file is."""

CONTENT = frozenset({".bin", ".jinja", ".json", ".model", ".pt", ".py", ".safetensors", ".txt"})
"""Endings of the files of a checkpoint that can change its features."""

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""Names of the file of weights; with ``.index.json``, of the list of several."""

LANDMARKS = ("config.json", "modules.json", "adapter_config.json")
"""Files one of which every checkpoint on the hub has."""


def load_strict(
    model_class: Any,  # noqa: ANN401 - any class of transformers with from_pretrained
    settings: PretrainedSettings,
    *,
    ignored: Collection[str] = (),
    unused: Collection[str] = (),
    subfolder: str = "",
) -> nn.Module:
    """The model with every tensor from the checkpoint, ready to encode and never to be trained.

    Tensors of the checkpoint that begin with a prefix in ``ignored`` may be left over. All tensors
    of the model that begin with a prefix in ``unused`` may be missing together, which is for parts
    that nobody reads. Any other that is missing, left over or of another shape is an error that
    names it.
    """
    model, found = load_part(
        model_class,
        settings,
        dtype=dtype_of(settings),
        # as an error of transformers it would not name the tensor; we name and refuse it
        ignore_mismatched_sizes=True,
        output_loading_info=True,
        **({"subfolder": subfolder} if subfolder else {}),
        **({} if settings.attention is None else {"attn_implementation": settings.attention}),
    )
    missing = _missing(model, found["missing_keys"], unused)
    _require_whole(settings, found | {"missing_keys": missing}, tuple(ignored))
    moved = cast("nn.Module", model).to(device_of(settings))
    return moved.eval().requires_grad_(requires_grad=False)


def load_part(part_class: Any, settings: PretrainedSettings, **arguments: Any) -> Any:  # noqa: ANN401
    """What ``from_pretrained`` of this class gives: a model, a tokenizer, a processor of media."""
    try:
        with quiet():
            return part_class.from_pretrained(
                location(settings),
                local_files_only=settings.local_files_only,
                trust_remote_code=settings.trust_remote_code,
                **({} if settings.revision is None else {"revision": settings.revision}),
                **arguments,
            )
    except ImportError as error:
        raise _missing_library(f"{settings.source} cannot be loaded", error) from error
    except Exception as error:
        raise EncoderError(
            f"{settings.source} cannot be loaded as {part_class.__name__} "
            f"({type(error).__name__}: {error}); correct the source, the kind or the settings"
        ) from error


def fill_strict(
    module: nn.Module, tensors: Mapping[str, Tensor], settings: PretrainedSettings
) -> None:
    """Give the module exactly these tensors; it encodes from now on and is never trained."""
    own = module.state_dict()
    common = own.keys() & tensors.keys()
    found = {
        "missing_keys": own.keys() - tensors.keys(),
        "unexpected_keys": tensors.keys() - own.keys(),
        "mismatched_keys": [
            (name, tensors[name].shape, own[name].shape)
            for name in common
            if tensors[name].shape != own[name].shape
        ],
    }
    _require_whole(settings, found, ())
    module.load_state_dict(dict(tensors))
    module.eval().requires_grad_(requires_grad=False)


def stored_tensors(settings: PretrainedSettings, prefixes: tuple[str, ...]) -> dict[str, Tensor]:
    """The tensors of the checkpoint whose names begin so, from safetensors or PyTorch files."""
    return {
        name: tensor
        for path in _weight_files(settings)
        for name, tensor in _tensors_of(path, prefixes).items()
    }


def _weight_files(settings: PretrainedSettings) -> list[Path]:
    for whole in WEIGHTS:
        path = checkpoint_file(settings, whole)
        index = checkpoint_file(settings, f"{whole}.index.json")
        if path is not None:
            return [path]
        if index is not None:
            names = sorted(
                set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            )
            parts = [checkpoint_file(settings, name) for name in names]
            return [part for part in parts if part is not None]
    raise EncoderError(f"{settings.source} has none of {', '.join(WEIGHTS)}; correct the source")


def _tensors_of(path: Path, prefixes: tuple[str, ...]) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                names = [name for name in file.keys() if name.startswith(prefixes)]  # noqa: SIM118
                return {name: file.get_tensor(name) for name in names}
        # only tensors are read: weights_only refuses whatever would run code
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:
        raise EncoderError(f"{path} cannot be read ({error}); get the checkpoint again") from error
    return {name: tensor for name, tensor in tensors.items() if name.startswith(prefixes)}


def imported(library: str) -> Any:  # noqa: ANN401 - a module, whatever is in it
    """An optional library; without it, the error says how it is installed."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise _missing_library(f"{library} cannot be imported", error) from error


def device_of(settings: PretrainedSettings) -> torch.device:
    """Where the model runs on this machine."""
    if settings.device is EncoderDevice.AUTO:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if settings.device is EncoderDevice.CUDA and not torch.cuda.is_available():
        raise SettingError("device is cuda, and torch sees no CUDA device; give cpu or auto")
    return torch.device(settings.device)


def dtype_of(settings: PretrainedSettings) -> torch.dtype:
    """What the model computes in on this machine."""
    if settings.dtype is EncoderDtype.AUTO:
        return torch.bfloat16 if device_of(settings).type == "cuda" else torch.float32
    return cast("torch.dtype", getattr(torch, settings.dtype))


def local_folder(settings: PretrainedSettings) -> Path | None:
    """The folder of the checkpoint, or None if it comes from the hub."""
    path = Path(settings.source).expanduser()
    if path.is_dir():
        return path
    if settings.source.startswith(("/", ".", "~")):
        raise EncoderError(f"there is no folder {settings.source}; correct the path")
    return None


def location(settings: PretrainedSettings) -> str:
    """What ``from_pretrained`` is given."""
    return str(local_folder(settings) or settings.source)


def pinned(settings: PretrainedSettings) -> PretrainedSettings:
    """The same settings with the commit that the revision names now; a folder has none."""
    if local_folder(settings) is not None:
        return settings
    return replace(settings, revision=_commit(settings))


def checkpoint_fingerprint(settings: PretrainedSettings, what: Mapping[str, object]) -> str:
    """A text that changes with the weights, with what they are computed in, and with ``what``.

    Of the hub it sees the commit. Of a folder it sees the names and sizes of all files that can
    change a feature, and what is in them: the whole of a small file, of a large one its beginning
    and blocks of it. A change of a large file between these blocks it does not see, nor where the
    folder lies, nor the versions of libraries. ``what`` holds what JSON can.
    """
    folder = local_folder(settings)
    facts = {
        "checkpoint": _commit(settings) if folder is None else folder_digest(folder),
        "dtype": str(dtype_of(settings)),
        "attention": settings.attention,
        "trust_remote_code": settings.trust_remote_code,
        "what": dict(what),
    }
    text = json.dumps(facts, sort_keys=True)
    return f"pretrained-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def folder_digest(folder: Path) -> str:
    """A digest of every file that can change a feature, by its path in the folder."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(_content_files(folder)):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name} {path.stat().st_size} ".encode())
        digest.update(_file_digest(path))
    return digest.hexdigest()


def _content_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix in CONTENT and not hidden and path.is_file():
            yield path


def _file_digest(path: Path) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= WHOLE_BYTES:
            digest.update(file.read())
        else:
            digest.update(_header(file.read(HEADER_LENGTH), path, file, size))
            for place in range(SAMPLES):
                file.seek((size - SAMPLE_BYTES) * place // (SAMPLES - 1))
                digest.update(file.read(SAMPLE_BYTES))
    return digest.digest()


def _header(length: bytes, path: Path, file: Any, size: int) -> bytes:  # noqa: ANN401
    """The names, types and shapes of a safetensors file; nothing of another file."""
    if path.suffix != ".safetensors":
        return b""
    return cast("bytes", file.read(min(int.from_bytes(length, "little"), size)))


def checkpoint_file(settings: PretrainedSettings, name: str) -> Path | None:
    """A file of the checkpoint, got from the hub if it lies there; None if there is none."""
    folder = local_folder(settings)
    if folder is not None:
        return folder / name if (folder / name).is_file() else None
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - only for checkpoints of the hub
    from huggingface_hub.errors import EntryNotFoundError  # noqa: PLC0415

    try:
        path = hf_hub_download(
            settings.source,
            name,
            revision=settings.revision,
            local_files_only=settings.local_files_only,
        )
    except EntryNotFoundError:
        return None
    except Exception as error:
        raise EncoderError(
            f"{settings.source} is neither a folder nor found on the hub "
            f"({type(error).__name__}: {error}); correct the source or the revision"
        ) from error
    return Path(path)


def _commit(settings: PretrainedSettings) -> str:
    for landmark in LANDMARKS:
        path = checkpoint_file(settings, landmark)
        if path is not None:
            return path.parent.name  # .../snapshots/COMMIT/config.json
    raise EncoderError(
        f"{settings.source} is neither a folder nor a checkpoint that can be reached: none of "
        f"{', '.join(LANDMARKS)} was found; correct the source, or allow the network"
    )


def _missing(model: nn.Module, names: Collection[str], unused: Collection[str]) -> set[str]:
    """The names without those of whole parts that are not used."""
    missing = set(names)
    for prefix in unused:
        part = {name for name in model.state_dict() if name.startswith(prefix)}
        if part <= missing:
            missing -= part
    return missing


def _require_whole(
    settings: PretrainedSettings, found: Mapping[str, Any], ignored: tuple[str, ...]
) -> None:
    left_over = [name for name in found["unexpected_keys"] if not name.startswith(ignored)]
    shapes = [
        f"{name} is {tuple(stored)}, needed is {tuple(needed)}"
        for name, stored, needed in found["mismatched_keys"]
    ]
    problems = {
        "missing": found["missing_keys"],
        "not part of the model": left_over,
        "of another shape": shapes,
    }
    said = [f"{what}: {shown(names)}" for what, names in problems.items() if names]
    if said:
        raise EncoderError(
            f"the weights of {settings.source} do not fit the model: {'; '.join(said)}; choose "
            f"the kind of this checkpoint, or get it again"
        )


def shown(names: Collection[str]) -> str:
    """The first names, and how many more there are."""
    first = sorted(names)[:SHOWN_TENSORS]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def _missing_library(what: str, error: ImportError) -> EncoderError:
    return EncoderError(f"{what} ({error}); run: pip install adaptiveembed[encoders]")


@contextmanager
def quiet() -> Iterator[None]:
    """Without the reports and bars of transformers, whose content our errors say."""
    logging = importlib.import_module("transformers.utils.logging")  # only when something is loaded
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

"""A model as a folder: JSON and safetensors, written whole or not at all, read strictly.

model/
  config.json           what the model is, and checksums of itself and of every file of tensors
  README.md             the model card
  embedder.safetensors
  policy-*.safetensors  the policies, if it has any
  bank-*/               what each direction's policy reads
  selftest.safetensors  inputs, and what the model made of them
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from adaptiveembed.errors import ModelFormatError

FORMAT, VERSION = "adaptiveembed.model", 1
CONFIG, CARD = "config.json", "README.md"
CHECKSUM = "checksum"
"""The key of the checksum that ``config.json`` holds of everything else in it."""
KNOWN = {CONFIG, CARD}
"""What a model's folder holds beside tensors and banks."""
BANK, ENDING = "bank-", ".safetensors"

Tensors = dict[str, Tensor]


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder beside this one and put it in its place; an older model there is replaced."""
    _require_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    partial, older = place / "new", place / "older"
    try:
        partial.mkdir()
        fill(partial)
        if folder.exists():
            folder.rename(older)
        partial.rename(folder)
    finally:
        if older.exists() and not folder.exists():
            older.rename(folder)
        shutil.rmtree(place)


def _require_replaceable(folder: Path) -> None:
    """Refuse a file, and a folder in which anything but a model would be lost."""
    if folder.is_file():
        raise ModelFormatError(f"{folder} is a file; choose a new or an empty folder")
    held = sorted(folder.iterdir()) if folder.exists() else []
    strange = [each.name for each in held if not _is_of_a_model(each)]
    if strange or (held and not is_model(folder)):
        raise ModelFormatError(
            f"{folder} holds something other than a model ({(strange or [held[0].name])[0]}); "
            f"choose a new or an empty folder"
        )


def _is_of_a_model(path: Path) -> bool:
    return path.name in KNOWN or path.suffix == ENDING or path.name.startswith(BANK)


def write_tensors(folder: Path, parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, str]:
    """A file of tensors for every part; the checksums of the files."""
    checksums = {}
    for name, tensors in parts.items():
        path = folder / f"{name}{ENDING}"
        save_file({key: each.detach().cpu().contiguous() for key, each in tensors.items()}, path)
        checksums[name] = checksum(path)
    return checksums


def write_config(folder: Path, facts: Mapping[str, Any]) -> None:
    """The facts, as JSON that says what it is of, and would show that it was changed."""
    content = {"format": FORMAT, "version": VERSION, **facts}
    content[CHECKSUM] = _checksum_of(content)
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8")


def is_model(folder: Path) -> bool:
    """Whether the folder says of itself that it is a model."""
    try:
        return bool(json.loads((folder / CONFIG).read_text(encoding="utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_config(folder: Path) -> dict[str, Any]:
    """The facts of a model's folder."""
    path = folder / CONFIG
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFormatError(
            f"{path} cannot be read ({error}); give the folder of a saved model"
        ) from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ModelFormatError(f"{path} does not describe a model; give a saved model's folder")
    if facts.get("version") != VERSION:
        raise ModelFormatError(
            f"{folder} is a model of version {facts.get('version')} and this library reads version "
            f"{VERSION}; train it again, or install the library that made it"
        )
    if facts.pop(CHECKSUM, None) != _checksum_of(facts):
        raise ModelFormatError(
            f"{path} was changed after it was written; bring the folder back from a copy"
        )
    return facts


def _checksum_of(facts: Mapping[str, Any]) -> str:
    """A number that changes with any of the facts."""
    text = json.dumps(facts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read_tensors(folder: Path, name: str, expected: str) -> Tensors:
    """The tensors of one part, if not a byte of their file was changed."""
    path = folder / f"{name}{ENDING}"
    try:
        found = checksum(path)
        if found != expected:
            raise ModelFormatError(
                f"{path} is not the file that was saved with the model (checksum {found}, needed "
                f"{expected}); bring the folder back from a copy"
            )
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelFormatError(
            f"{path} cannot be read ({error}); bring the folder back from a copy"
        ) from error


def load_strictly(module: nn.Module, tensors: Tensors, part: str) -> None:
    """Give a module its tensors, if they are exactly those that it has, each of its kind."""
    wanted = module.state_dict()
    missing = sorted(set(wanted) - set(tensors))
    unexpected = sorted(set(tensors) - set(wanted))
    wrong = [
        f"{name} is {_kind(tensors[name])} and must be {_kind(tensor)}"
        for name, tensor in wanted.items()
        if name in tensors and _kind(tensors[name]) != _kind(tensor)
    ]
    problems = [
        *(f"{name} is missing" for name in missing),
        *(f"{name} is not known" for name in unexpected),
        *wrong,
    ]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise ModelFormatError(
            f"the tensors of {part} do not fit the model: {'; '.join(problems[:3])}{more}; bring "
            f"the folder back from a copy"
        )
    module.load_state_dict(tensors)


def _kind(tensor: Tensor) -> str:
    """Shape and number type in words."""
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def checksum(path: Path) -> str:
    """A number that changes with any byte of the file."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()

"""A fingerprint for an encoder that has none: its source, its settings and its weights."""

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import PurePath
from types import FunctionType, MethodType, ModuleType

import numpy as np
import torch
from torch import Tensor, nn

from adaptiveembed.errors import EncoderError

PLAIN = (bool, int, float, complex, str, bytes, PurePath, type(None), np.generic, torch.dtype)
"""What is known by how it is written."""

CODE = (type, FunctionType, MethodType, ModuleType)
"""What is not looked into: the source of the encoder stands for it, or it comes from elsewhere."""


class DerivedFingerprintWarning(UserWarning):
    """An encoder has no fingerprint, and one was derived from what can be seen of it."""


def derived_fingerprint(encoder: object) -> str:
    """A digest of the source of the encoder's module, and of every number and text it holds.

    It sees what stands in that one module and in the attributes of the object: settings, arrays,
    tensors, and the weights of torch's modules. It sees no other file, no imported code, and
    nothing that is loaded later.
    """
    digest = hashlib.blake2b(_source(type(encoder)), digest_size=16)
    for part in _parts(encoder, "", {}):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return f"derived-{digest.hexdigest()}"


def _source(kind: type) -> bytes:
    try:
        return inspect.getsource(inspect.getmodule(kind) or kind).encode()
    except (OSError, TypeError) as error:
        raise EncoderError(
            f"the source of {kind.__qualname__} cannot be read ({error}), so no fingerprint can be "
            f"derived from it; give the encoder a fingerprint"
        ) from error


def _parts(value: object, path: str, seen: dict[int, object]) -> Iterator[bytes]:
    """Names and contents of all that can be seen, in an order that does not change.

    ``seen`` keeps what was met before, which is not met again and, being kept, is not confused
    with what comes later.
    """
    if isinstance(value, PLAIN):
        yield f"{path}={value!r}".encode("utf-8", "surrogatepass")
    elif isinstance(value, Tensor):
        yield from _numbers(path, str(value.dtype), value.shape, _bytes(value))
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield from _numbers(path, str(value.dtype), value.shape, value.tobytes())
    elif id(value) not in seen:
        seen[id(value)] = value
        for name, below in _below(value):
            yield from _parts(below, f"{path}.{name}", seen)


def _numbers(path: str, kind: str, shape: Iterable[int], content: bytes) -> Iterator[bytes]:
    yield f"{path}:{kind}:{tuple(shape)}".encode("utf-8", "surrogatepass")
    yield content


def _bytes(tensor: Tensor) -> bytes:
    # numpy does not have every number type of torch; bytes it has
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _below(value: object) -> list[tuple[str, object]]:
    """What a value is made of, each part with its name."""
    if isinstance(value, CODE):
        return []
    if isinstance(value, nn.Module):
        return _of_module(value)
    if isinstance(value, Mapping):
        return _by_name((repr(key), below) for key, below in value.items())
    if isinstance(value, Set):
        return _by_name((repr(member), None) for member in value)
    if isinstance(value, list | tuple | np.ndarray):
        return [(str(place), below) for place, below in enumerate(value)]
    return _by_name(getattr(value, "__dict__", {}).items())


def _of_module(module: nn.Module) -> list[tuple[str, object]]:
    """Weights and settings; whether the module is training says nothing of what it is."""
    settings = (
        (name, value)
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "training"
    )
    return _by_name([*module.state_dict().items(), *settings])


def _by_name(parts: Iterable[tuple[str, object]]) -> list[tuple[str, object]]:
    return sorted(parts, key=lambda part: part[0])

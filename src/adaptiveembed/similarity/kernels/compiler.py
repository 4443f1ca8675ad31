"""From LLVM IR to a callable: compiled once per kernel and processor, kept on disk for the next process."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

Kernel: TypeAlias = Callable[..., int]


@lru_cache(maxsize=1)
def lanes() -> int:
    """Floats in one vector register of this processor; narrower machines split a vector of eight."""
    return 16 if "avx512f" in _features() else 8


@lru_cache(maxsize=1)
def has_byte_product() -> bool:
    """Whether the processor sums products of four bytes at once, which the int8 screen needs."""
    features = _features()
    return "avx512vnni" in features and (lanes() == 16 or "avx512vl" in features)


def compile_kernel(module: ir.Module, name: str, arguments: Sequence[type]) -> Kernel:
    """The named function of a module, as a callable that releases the interpreter while it runs."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(_object_code(str(module))))
    address = engine.get_function_address(name)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)(address)


@lru_cache(maxsize=1)
def _features() -> frozenset[str]:
    return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)


@lru_cache(maxsize=1)
def _machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


@lru_cache(maxsize=1)
def _engine() -> llvm.ExecutionEngine:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())


def _object_code(source: str) -> bytes:
    place = _cache_folder() / f"{_fingerprint(source)}.o"
    with contextlib.suppress(OSError):
        return place.read_bytes()
    code = _optimized(source)
    with contextlib.suppress(
        OSError
    ):  # a folder that cannot be written costs a second, never a result
        _write_whole(place, code)
    return code


def _optimized(source: str) -> bytes:
    module = llvm.parse_assembly(source)
    module.verify()
    # The IR is vectorised by hand: the vectorisers would only cost time.
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(_machine(), tuning)
    builder.getModulePassManager().run(module, builder)
    return _machine().emit_object(module)


def _fingerprint(source: str) -> str:
    machine = f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {sorted(_features())}"
    return hashlib.sha256(f"{machine}\n{source}".encode()).hexdigest()


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "adaptiveembed" / "kernels"


def _write_whole(place: Path, code: bytes) -> None:
    """Another process sees the whole file or none of it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
        file.write(code)
    Path(file.name).replace(place)

"""From LLVM IR to a callable, compiled once per kernel and processor and kept on disk."""

import contextlib
import ctypes
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

Kernel: TypeAlias = Callable[..., int]
_compiling: dict[int, threading.Lock] = {}
"""A lock for every process, since a forked child would inherit it locked.

LLVM's compilers are not made for two threads at once.
"""

_DIGEST_SIZE = hashlib.sha256().digest_size

Argument: TypeAlias = type[ctypes.c_void_p] | type[ctypes.c_int64]


@lru_cache(maxsize=1)
def lanes() -> int:
    """Floats in one vector register; narrower processors split a vector of eight."""
    return 16 if "avx512f" in _features() else 8


@lru_cache(maxsize=1)
def has_byte_product() -> bool:
    """Whether the processor sums products of four bytes at once, which the int8 screen needs."""
    features = _features()
    return "avx512vnni" in features and (lanes() == 16 or "avx512vl" in features)


def compile_kernel(module: ir.Module, name: str, arguments: Sequence[Argument]) -> Kernel:
    """The named function of a module, as a callable that releases the interpreter while it runs."""
    with _compiling.setdefault(os.getpid(), threading.Lock()):
        # An engine of its own: names are looked up in the whole engine.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(_object_code(str(module))))
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)(engine.get_function_address(name))

    def kernel(*values: int | None, engine: llvm.ExecutionEngine = engine) -> int:
        # The code lives as long as the engine, which the default argument holds.
        return int(function(*values))

    return kernel


@lru_cache(maxsize=1)
def _features() -> frozenset[str]:
    return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)


def _new_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


def _object_code(source: str) -> bytes:
    # A cache that cannot be found, read or written costs a second, never a result.
    with contextlib.suppress(OSError, RuntimeError):
        kept = _cached(source).read_bytes()
        # Damaged code would end the process.
        if kept[:_DIGEST_SIZE] == _digest(kept[_DIGEST_SIZE:]):
            return kept[_DIGEST_SIZE:]
    code = _optimized(source)
    with contextlib.suppress(OSError, RuntimeError):
        _write_whole(_cached(source), _digest(code) + code)
    return code


def _optimized(source: str) -> bytes:
    module = llvm.parse_assembly(source)
    module.verify()
    # The IR is vectorised by hand: the vectorisers would only cost time.
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    machine = _new_machine()
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


def _fingerprint(source: str) -> str:
    machine = f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {sorted(_features())}"
    return hashlib.sha256(f"{machine}\n{source}".encode()).hexdigest()


def _cached(source: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "adaptiveembed" / "kernels" / f"{_fingerprint(source)}.o"


def _digest(code: bytes) -> bytes:
    return hashlib.sha256(code).digest()


def _write_whole(place: Path, content: bytes) -> None:
    """Another process sees the whole file or none of it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=place.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor is no path
            file.write(content)
        Path(name).replace(place)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise

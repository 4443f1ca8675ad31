"""Sample-adaptive multi-vector retrieval.

The public names stand once, in `__init__.pyi`, where type checkers read them. Here each is imported
when it is first asked for, so that `adaptiveembed --help` starts without torch.
"""

import ast
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"


def _read_homes() -> dict[str, str]:
    """Every public name with the module that defines it."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {name.name: f"{node.module}" for node in imports for name in node.names}


_HOMES = _read_homes()
__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list, made from the stub


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'adaptiveembed' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

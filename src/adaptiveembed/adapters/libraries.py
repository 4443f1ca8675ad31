"""Optional libraries, imported when they are needed."""

from importlib import import_module
from types import ModuleType

from adaptiveembed.errors import SettingError


def library(name: str) -> ModuleType:
    """The module of an optional library."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise SettingError(
            f"{error.name} is not installed; use pip install 'adaptiveembed[adapters]'"
        ) from error

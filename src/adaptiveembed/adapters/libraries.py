"""Optional libraries, imported when they are needed."""

from importlib import import_module
from types import ModuleType

from adaptiveembed.errors import SettingError


def library(name: str, install: str = "'adaptiveembed[adapters]'") -> ModuleType:
    """The module of an optional library, which pip installs by ``install``."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise SettingError(f"{error.name} is not installed; use pip install {install}") from error

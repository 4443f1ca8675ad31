"""How long work says how far it is, without knowing who listens."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Called as work goes on; a listener may show it, keep it, or do nothing."""

    def __call__(
        self, done: int, total: int, facts: Mapping[str, float | str] | None = None
    ) -> None:
        """So many of so many parts are done; ``facts`` are figures worth showing beside that."""
        ...


def silent(done: int, total: int, facts: Mapping[str, float | str] | None = None) -> None:
    """Tell nobody."""

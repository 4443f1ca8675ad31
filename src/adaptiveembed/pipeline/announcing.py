"""Long work of several parts says what begins, without knowing who listens."""

from typing import Protocol, runtime_checkable

from adaptiveembed.structure.progress import Progress, silent


@runtime_checkable
class Announce(Protocol):
    """Told what begins; gives back whom to tell how far it is."""

    def __call__(self, title: str) -> Progress:
        """A new part of the work, by its name."""
        ...


def unannounced(title: str) -> Progress:
    """Tell nobody."""
    return silent

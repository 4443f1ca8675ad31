"""Ctrl-C as a wish to end well."""

import signal
import threading
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """While it is open, the first Ctrl-C or SIGTERM is only noted; a second one interrupts."""

    def __init__(self) -> None:
        self.wished = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interruption":
        # Python lets the main thread alone decide on signals.
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._note) for each in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.wished:
            raise KeyboardInterrupt
        self.wished = True

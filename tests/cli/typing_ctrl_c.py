"""Ctrl-C at a moment that a test chooses."""

import signal
from contextlib import contextmanager

from adaptiveembed.cli.progress import ShownProgress


@contextmanager
def ctrl_c_in(part, monkeypatch):
    """Whoever runs a command in here presses Ctrl-C as soon as this part of it has done a step."""

    class Interrupting(ShownProgress):
        def __call__(self, title):
            told, pressed = super().__call__(title), []

            def progress(done, total, facts=None):
                told(done, total, facts)
                if title.startswith(part) and done and not pressed:
                    pressed.append(True)
                    signal.raise_signal(signal.SIGINT)

            return progress

    with monkeypatch.context() as patched:
        patched.setattr("adaptiveembed.cli.progress.ShownProgress", Interrupting)
        yield

"""The command line ``adaptiveembed``: a thin layer that reads arguments and prints results.

Nothing heavy is imported before a command needs it, so that ``--help`` answers at once.
"""

from adaptiveembed.cli.program import main

__all__ = ["main"]

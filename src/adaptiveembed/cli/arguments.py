"""Kinds of arguments, each with an error that says what is wanted. Imports nothing heavy."""

import argparse
from collections.abc import Callable
from pathlib import Path

Parser = argparse.ArgumentParser
Commands = "argparse._SubParsersAction[argparse.ArgumentParser]"

LARGEST_SEED = 2**63 - 1


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    *,
    summary: str,
    about: str,
    examples: str,
) -> argparse.ArgumentParser:
    """A parser whose help begins with what the command does and ends with examples."""
    return commands.add_parser(
        name,
        help=summary,
        description=about,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Whole numbers within bounds."""

    def read(text: str) -> int:
        # more digits than the bound has are not read, for Python refuses thousands of them
        if text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")

    return read


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value


def path(text: str) -> Path:
    """A file or a folder."""
    if not text:
        raise argparse.ArgumentTypeError("'' is no path; write . for the current folder")
    return Path(text)


def folder(text: str) -> Path:
    """A folder, there or not."""
    found = path(text)
    if found.is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is a file; give a new or an empty folder")
    return found


def words(text: str) -> str:
    """A text that says something."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} says nothing; write what is looked for")
    return text


def assignment(text: str) -> str:
    """A text such as key=value."""
    if "=" not in text or text.startswith("="):
        raise argparse.ArgumentTypeError(f"{text!r} sets nothing; write key=value")
    return text


def named_path(text: str) -> tuple[str, Path]:
    """A text such as image=features.npz."""
    name, _, value = assignment(text).partition("=")
    return name, path(value)


def named_text(text: str) -> tuple[str, str]:
    """A text such as image=module:object."""
    name, _, value = assignment(text).partition("=")
    return name, value

"""The command line answers at once, teaches, and fails in one line that says why."""

import re
import subprocess
import sys
from contextlib import suppress

import pytest

import adaptiveembed
from adaptiveembed.cli import main, program
from adaptiveembed.errors import SettingError

HEAVY = {"torch", "numpy", "rich", "jaxtyping"}


def test_help_and_version_import_nothing_heavy():
    code = (
        "import sys\n"
        "from adaptiveembed.cli import main\n"
        "try: main([sys.argv[1]])\n"
        f"except SystemExit: sys.exit(' '.join({HEAVY} & set(sys.modules)) or 0)"
    )
    for argument in ("--help", "--version"):
        subprocess.run([sys.executable, "-c", code, argument], check=True, capture_output=True)


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "adaptiveembed.cli", "--version"], check=True, capture_output=True
    )
    assert done.stdout.decode().strip() == f"adaptiveembed {adaptiveembed.__version__}"


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], []])
def test_help_explains_and_gives_examples_within_eighty_columns(capsys, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "80")
    with suppress(SystemExit):
        main(arguments)
    text = capsys.readouterr().out
    assert re.search(r"examples?:\n  adaptiveembed demo", text)
    assert max(map(len, text.splitlines())) <= 80


def test_every_command_has_an_example(capsys):
    main([])
    text = capsys.readouterr().out
    commands = re.findall(r"^    (\w+)  ", text.split("commands:")[1], flags=re.MULTILINE)
    assert commands == ["demo"]
    for command in commands:
        assert f"\n  adaptiveembed {command}" in text


@pytest.mark.parametrize("items", ["29", "-5", "many", "3.5"])
def test_a_wrong_number_of_items_is_refused_by_value(capsys, items):
    with pytest.raises(SystemExit) as leaving:
        main(["demo", "--items", items])
    assert leaving.value.code == 2
    assert f"'{items}' is not a whole number from 30" in capsys.readouterr().err


def failing_with(error):
    def fail(_arguments):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "adaptiveembed: interrupted\n"),
        (SettingError("it is 3; give 4"), 1, "adaptiveembed: error: it is 3; give 4\n"),
        (OSError(28, "No space left"), 1, "adaptiveembed: error: [Errno 28] No space left\n"),
    ],
)
def test_a_failure_is_one_line_and_its_own_status(capsys, monkeypatch, error, status, line):
    monkeypatch.setattr(program, "_demo", failing_with(error))
    assert main(["demo"]) == status
    assert capsys.readouterr().err == line


def test_a_mistake_of_ours_is_not_disguised_as_a_mistake_of_the_user(monkeypatch):
    monkeypatch.setattr(program, "_demo", failing_with(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["demo"])

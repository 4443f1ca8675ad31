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


@pytest.mark.parametrize(
    ("option", "given", "bounds"),
    [
        *(
            ("--items", given, "30 to 1000000")
            for given in ("29", "-5", "many", "3.5", "", "1000001", "99999999999", "9" * 5000)
        ),
        *(
            ("--seed", given, f"0 to {2**63 - 1}")
            for given in ("-1", "1.0", "x", str(2**63), "99999999999999999999", "9" * 5000)
        ),
    ],
)
def test_a_number_out_of_bounds_is_refused_by_value(capsys, option, given, bounds):
    with pytest.raises(SystemExit) as leaving:
        main(["demo", f"{option}={given}"])
    assert leaving.value.code == 2
    assert f"'{given}' is not a whole number from {bounds}\n" in capsys.readouterr().err


NO_MEMORY = "adaptiveembed: error: not enough memory for so many items; give fewer --items\n"


def test_an_output_without_a_name_is_refused(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["demo", "--output", ""])
    assert leaving.value.code == 2
    assert "'' is no folder; write . for the current one\n" in capsys.readouterr().err


def failing_with(error):
    def fail(_arguments):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "adaptiveembed: interrupted\n"),
        (SettingError("it is 3; give 4"), 1, "adaptiveembed: error: it is 3; give 4\n"),
        (MemoryError(), 1, NO_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), 1, NO_MEMORY),
        (OSError(28, "No space left"), 1, "adaptiveembed: error: [Errno 28] No space left\n"),
    ],
)
def test_a_failure_is_one_line_and_its_own_status(capsys, monkeypatch, error, status, line):
    monkeypatch.setattr(program, "_demo", failing_with(error))
    assert main(["demo"]) == status
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("error", [ZeroDivisionError(), RuntimeError("shapes do not fit")])
def test_a_mistake_of_ours_is_not_disguised_as_a_mistake_of_the_user(monkeypatch, error):
    monkeypatch.setattr(program, "_demo", failing_with(error))
    with pytest.raises(type(error)):
        main(["demo"])


def test_torch_is_understood_when_it_has_no_memory(capsys, monkeypatch):
    import torch

    monkeypatch.setattr(program, "_demo", lambda _arguments: torch.empty(1 << 50))
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == NO_MEMORY

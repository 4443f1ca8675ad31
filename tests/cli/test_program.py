"""The command line answers at once, teaches, and fails in one line that says why."""

import re
import subprocess
import sys
import time

import pytest

import adaptiveembed
from adaptiveembed.cli import main
from adaptiveembed.cli.commands import data, demo
from adaptiveembed.cli.program import COMMANDS
from adaptiveembed.errors import SettingError

HEAVY = {"torch", "numpy", "rich", "jaxtyping"}
NAMES = [command.NAME for command in COMMANDS]
ACTIONS = ("scenes", "check", "import", "export")


def test_help_and_version_import_nothing_heavy():
    code = (
        "import sys\n"
        "from adaptiveembed.cli import main\n"
        "try: main(sys.argv[1:])\n"
        f"except SystemExit: sys.exit(' '.join({HEAVY} & set(sys.modules)) or 0)"
    )
    for arguments in (["--help"], ["--version"], ["train", "--help"]):
        subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)


def test_help_takes_less_than_a_second_of_work():
    before = time.process_time()
    main([])
    assert time.process_time() - before < 1


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "adaptiveembed.cli", "--version"], check=True, capture_output=True
    )
    assert done.stdout.decode().strip() == f"adaptiveembed {adaptiveembed.__version__}"


@pytest.mark.parametrize(
    "arguments", [["--help"], [], *([name, "--help"] for name in NAMES)], ids="-".join
)
def test_help_explains_and_gives_examples_within_eighty_columns(call, arguments):
    done = call(*arguments)
    assert done.status == 0
    assert re.search(r"examples?:\n  adaptiveembed \w+", done.out)
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_every_option_is_in_the_help_of_its_command(call, command):
    told = call(command.NAME, "--help").out
    assert command.ABOUT.strip() in told
    assert command.EXAMPLES.rstrip() in told
    options = told.split("examples:")[0]
    if command is data:
        options = "".join(call("data", action, "--help").out for action in ACTIONS)
    for option in re.findall(r"--[a-z-]+", command.EXAMPLES):
        assert option in options


def test_every_command_has_an_example(call):
    text = call().out
    commands = re.findall(r"^    (\w+)  ", text.split("commands:")[1], flags=re.MULTILINE)
    assert commands == NAMES
    for command in commands:
        assert f"\n  adaptiveembed {command}" in text


BOUNDS = [
    *(
        ("demo", "--items", given, "200 to 100000")
        for given in ("199", "-5", "many", "3.5", "", "100001", "9" * 5000)
    ),
    *(
        ("demo", "--seed", given, f"0 to {2**63 - 1}")
        for given in ("-1", "1.0", "x", str(2**63), "9" * 5000)
    ),
    ("search", "-k", "0", "1 to 100000"),
    ("search", "--capacity", "9", "1 to 8"),
    ("encode", "--batch-size", "0", "1 to 1000000"),
    ("study", "--seeds", "0", "1 to 100"),
]


@pytest.mark.parametrize(("command", "option", "given", "bounds"), BOUNDS)
def test_a_number_out_of_bounds_is_refused_by_value(call, command, option, given, bounds):
    value = [f"{option}={given}"] if option.startswith("--") else [option, given]
    done = call(command, "somewhere", *value) if command != "demo" else call(command, *value)
    assert done.status == 2
    assert f"'{given}' is not a whole number from {bounds}\n" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["demo", "--output", ""], "'' is no path; write . for the current folder"),
        (["search", "run", " "], "' ' says nothing; write what is looked for"),
        (["search", "run", "a", "--threshold", "2"], "'2' is not a number from 0 to 1"),
        (["train", "features", "--set", "seed"], "'seed' sets nothing; write key=value"),
        (["encode", "a.csv", "--output", "f", "--encoder", "me"], "'me' sets nothing"),
        (["encode", "a.csv", "--output", __file__], "is a file; give a new or an empty folder"),
        (["evaluate", "run", "--output", __file__], "is a file; give a new or an empty folder"),
        (["study", "scenes", "--output", __file__], "is a file; give a new or an empty folder"),
        (["data", "scenes", __file__], "is a file; give a new or an empty folder"),
        (["data"], "ACTION"),
        (["dance"], "invalid choice: 'dance'"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong_with_it(call, arguments, told):
    done = call(*arguments)
    assert done.status == 2
    assert told in done.err


def failing_with(error):
    def fail(_arguments):
        raise error

    return fail


NO_MEMORY = "adaptiveembed: error: not enough memory; use fewer items or smaller batches\n"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "adaptiveembed: interrupted\n"),
        (KeyboardInterrupt("go on"), 130, "adaptiveembed: interrupted; go on\n"),
        (SettingError("it is 3; give 4"), 1, "adaptiveembed: error: it is 3; give 4\n"),
        (MemoryError(), 1, NO_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), 1, NO_MEMORY),
        (OSError(28, "No space left"), 1, "adaptiveembed: error: [Errno 28] No space left\n"),
    ],
)
def test_a_failure_is_one_line_and_its_own_status(call, monkeypatch, error, status, line):
    monkeypatch.setattr(demo, "run", failing_with(error))
    done = call("demo")
    assert done.status == status
    assert done.err == line


@pytest.mark.parametrize("error", [SettingError("it is 3"), OSError(28, "full"), MemoryError()])
def test_debug_shows_where_an_error_was_raised(monkeypatch, error):
    monkeypatch.setattr(demo, "run", failing_with(error))
    with pytest.raises(type(error)):
        main(["--debug", "demo"])


@pytest.mark.parametrize("error", [ZeroDivisionError(), RuntimeError("shapes do not fit")])
def test_a_mistake_of_ours_is_not_disguised_as_a_mistake_of_the_user(monkeypatch, error):
    monkeypatch.setattr(demo, "run", failing_with(error))
    with pytest.raises(type(error)):
        main(["demo"])


def test_torch_is_understood_when_it_has_no_memory(call, monkeypatch):
    import torch

    monkeypatch.setattr(demo, "run", lambda _arguments: torch.empty(1 << 50))
    assert call("demo").err == NO_MEMORY


def test_a_reader_that_leaves_early_is_no_error():
    """As in ``adaptiveembed train --recipe paper --dry-run | head -1``."""
    code = (
        "import sys, os\n"
        "from adaptiveembed.cli import main\n"
        "status = main(['train', '--dry-run'])\n"
        "os.write(2, str(status).encode())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b"1"

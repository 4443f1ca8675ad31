"""The command line in this process, and the tiny corpus, dataset, run and model."""

from dataclasses import dataclass

import pytest

from adaptiveembed.cli import main
from tests.pipeline.conftest import corpus, dataset, model, run  # noqa: F401 - the same fixtures


@dataclass(frozen=True)
class Done:
    """What became of a command."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """What the last line says, where the command failed as a user should see it fail."""
        assert self.status == 1, self
        assert "Traceback" not in self.err
        message = self.err[self.err.index("adaptiveembed: error: ") :]
        return message.removeprefix("adaptiveembed: error: ").rstrip("\n")


@pytest.fixture
def call(capsys, monkeypatch):
    """Run a command as if it was typed into a terminal of eighty columns whose output is piped."""
    monkeypatch.setenv("COLUMNS", "80")

    def called(*arguments):
        capsys.readouterr()
        try:
            status = main([*map(str, arguments)])
        except SystemExit as leaving:
            status = leaving.code
        return Done(status, *capsys.readouterr())

    return called

"""The wheel and the sdist hold what they should, and the command answers without heavy imports."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import adaptiveembed

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/adaptiveembed"
HEAVY = ("torch", "numpy", "llvmlite")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def source_files():
    return {
        f"adaptiveembed/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(only(built, "*.whl")).namelist()
    assert {name for name in names if ".dist-info/" not in name} == source_files()


def test_the_wheel_is_pure_python_typed_and_licensed(built):
    wheel = only(built, "*.whl")
    assert wheel.name == f"adaptiveembed-{adaptiveembed.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert "adaptiveembed/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_holds_sources_tests_and_documents(built):
    with tarfile.open(only(built, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in source_files()} <= names
    assert {"tests/conftest.py", "docs/index.md", "pyproject.toml", "LICENSE", "README.md"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/", "shared"))]


def test_every_dependency_is_pinned_by_name_and_version_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [re.fullmatch(r"([a-z0-9.-]+)==[a-z0-9.]+", line) for line in lines if line[0] != "#"]
    assert all(pins)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    needed = {re.match(r"[\w-]+", line)[0] for group in groups for line in group}
    assert needed <= {pin[1] for pin in pins}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_answers_without_importing_anything_heavy(option):
    code = (
        "import sys; from adaptiveembed.cli import main\n"
        f"sys.argv = ['adaptiveembed', {option!r}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not heavy, heavy"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert (adaptiveembed.__version__ if option == "--version" else "demo") in answer.stdout

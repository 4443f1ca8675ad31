"""What the documents say is true: their code runs, their names exist, their lists are complete."""

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import adaptiveembed

ROOT = Path(__file__).parents[1]
DOTTED = re.compile(r"`(\w+(?:\.\w+)+)`")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def table_rows(text):
    """The cells of every row of the Markdown tables in `text`, without headings."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    rules = [place for place, row in enumerate(cells) if set(row[0]) == {"-"}]
    headings = {place - 1 for place in rules} | set(rules)
    return [row for place, row in enumerate(cells) if place not in headings]


def resolve(dotted):
    """What a dotted path names: a module, or an attribute of one however deep."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            thing = getattr(thing, name)
        return thing
    raise ModuleNotFoundError(dotted)


def module_names():
    """Every module but those that run when imported."""
    found = pkgutil.walk_packages(adaptiveembed.__path__, "adaptiveembed.")
    return [module.name for module in found if not module.name.endswith("__main__")]


@pytest.mark.parametrize("path", ["README.md", "docs/quickstart.md"])
def test_the_code_of_a_page_runs_from_top_to_bottom(path):
    blocks = python_blocks(read(path))
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, path, "exec"), namespace)


@pytest.mark.parametrize("name", module_names())
def test_the_examples_of_docstrings_print_what_they_say(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("row", table_rows(read("docs/paper-to-code.md")), ids=lambda row: row[0])
def test_an_equation_names_code_and_a_twin_that_exist(row):
    _, code, twin = row
    assert DOTTED.findall(code)
    for name in DOTTED.findall(code):
        resolve(f"adaptiveembed.{name}")
    for name in DOTTED.findall(twin):
        resolve(f"tests.reference.{name}")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/decisions").glob("*.md")), ids=lambda p: p.stem
)
def test_a_decision_names_only_code_that_exists(path):
    for dotted in DOTTED.findall(path.read_text(encoding="utf-8")):
        if dotted.startswith("adaptiveembed."):
            resolve(dotted)


def test_every_reading_of_the_paper_has_a_page_in_the_index_and_in_the_menu():
    pages = {f"R{number:02}.md" for number in range(1, 22)}
    assert {path.name for path in (ROOT / "docs/decisions").glob("R*.md")} == pages
    assert set(re.findall(r"\((R\d+\.md)\)", read("docs/decisions/index.md"))) == pages
    assert set(re.findall(r"decisions/(R\d+\.md)", read("mkdocs.yml"))) == pages


def test_the_reference_shows_every_public_name_and_nothing_else():
    shown = re.findall(r"^::: (\S+)$", read("docs/api.md"), flags=re.MULTILINE)
    listed = [f"{home}.{name}" for name, home in adaptiveembed._HOMES.items()]
    assert sorted(shown) == sorted(listed)


def test_the_drawing_is_the_contract_that_the_layers_are_held_to():
    drawing = re.search(r"^```\n(.*?)^```", read("ARCHITECTURE.md"), re.DOTALL | re.MULTILINE)
    drawn = [re.findall(r"\(?[a-z]+\)?(?=\s{2})", line) for line in drawing[1].splitlines()]
    contract = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    enforced = [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
    assert drawn == enforced


def test_the_readme_lists_the_selections_that_the_policy_can_reach():
    space = adaptiveembed.coarse_to_fine(adaptiveembed.GroupLayout((4, 4)))
    rows = [row[:3] for row in table_rows(read("README.md"))]
    assert rows == [
        [f"`{node}`", str(node.capacity), " ".join(map(str, node.positions))]
        for node in space.nodes
    ]


def test_every_dependency_at_run_time_has_its_reason():
    page = read("docs/decisions/dependencies.md").partition("## For development")[0]
    explained = [name for row in table_rows(page) if row[0] for name in row[0].split(", ")]
    needed = tomllib.loads(read("pyproject.toml"))["project"]["dependencies"]
    assert sorted(explained) == sorted(re.match(r"[\w-]+", line)[0] for line in needed)


def test_the_readme_draws_every_folder():
    tree = re.search(r"^## The tree\n\n```\n(.*?)^```", read("README.md"), re.DOTALL | re.MULTILINE)
    drawn = set(re.findall(r"^ *(\w+)/ ", tree[1], flags=re.MULTILINE))
    package = {path.parent.name for path in ROOT.glob("src/adaptiveembed/*/__init__.py")}
    folders = {"benchmarks", "docs", "examples", "recipes", "tests"}
    assert drawn == package | folders
    assert all((ROOT / folder).is_dir() for folder in folders)
